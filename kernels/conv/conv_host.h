// Host part of the convolution program: stride 1, symmetric zero padding, NHWC input, KRSC filter, NPQK output in f16.
// Arguments: --batch --height --width --channels --filters --filter-size --padding, and those of ../program.h.
#ifndef KERNELS_CONV_HOST_H
#define KERNELS_CONV_HOST_H

#include "../program.h"

struct ConvShape {
  int N, H, W, C, K, R, S, pad;
  __host__ __device__ int P() const { return H + 2 * pad - R + 1; }
  __host__ __device__ int Q() const { return W + 2 * pad - S + 1; }
};

// One output element, on the CPU or the GPU.
__host__ __device__ inline float conv2d_element(const choreo::f16* input, const choreo::f16* filter,
                                                const ConvShape& shape, int n, int p, int q, int k) {
  float sum = 0;
  for (int r = 0; r < shape.R; ++r) {
    for (int s = 0; s < shape.S; ++s) {
      const int h = p + r - shape.pad, w = q + s - shape.pad;
      if (h < 0 || h >= shape.H || w < 0 || w >= shape.W) continue;
      const choreo::f16* pixel = input + ((std::size_t(n) * shape.H + h) * shape.W + w) * shape.C;
      const choreo::f16* tap = filter + ((std::size_t(k) * shape.R + r) * shape.S + s) * shape.C;
      for (int c = 0; c < shape.C; ++c) sum += choreo::to_f32(pixel[c]) * choreo::to_f32(tap[c]);
    }
  }
  return sum;
}

// One thread per output element.
__global__ void conv2d_reference(const choreo::f16* input, const choreo::f16* filter, float* output, ConvShape shape) {
  const std::size_t element = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  const int K = shape.K, Q = shape.Q(), P = shape.P();
  if (element >= std::size_t(shape.N) * P * Q * K) return;
  const std::size_t pixel = element / K;
  output[element] = conv2d_element(input, filter, shape, int(pixel / Q / P), int(pixel / Q % P), int(pixel % Q),
                                   int(element % K));
}

template <typename Conv>
int conv2d_program(int argc, char** argv, Conv conv2d) {
  program::Arguments arguments(argc, argv);
  const int taps = int(arguments.integer("--filter-size", 3, "height and width of a filter"));
  const ConvShape shape{int(arguments.integer("--batch", 8, "images")),
                        int(arguments.integer("--height", 64, "rows of an image")),
                        int(arguments.integer("--width", 64, "columns of an image")),
                        int(arguments.integer("--channels", 256, "input channels")),
                        int(arguments.integer("--filters", 256, "output channels")),
                        taps,
                        taps,
                        int(arguments.integer("--padding", taps / 2, "zeros around an image", 0))};
  arguments.close();
  if (shape.P() < 1 || shape.Q() < 1) program::fail("the filter is larger than the padded image");
  std::printf("conv2d N=%d H=%d W=%d C=%d K=%d R=%d S=%d padding=%d\n", shape.N, shape.H, shape.W, shape.C, shape.K,
              shape.R, shape.S, shape.pad);

  auto input = choreo::make_spandata<choreo::f16>(shape.N, shape.H, shape.W, shape.C);
  auto filter = choreo::make_spandata<choreo::f16>(shape.K, shape.R, shape.S, shape.C);
  auto output = choreo::make_spandata<choreo::f16>(shape.N, shape.P(), shape.Q(), shape.K);
  input.fill_random(-1, 1);
  filter.fill_random(-1, 1);
  const program::DeviceTensor<choreo::f16, 4> input_device(input), filter_device(filter);
  program::DeviceTensor<choreo::f16, 4> output_device(output);

  // 5 % of the reference; where a sum cancels, 5 % of its standard deviation, √(R · S · C) / 3.
  const double depth = double(shape.R) * shape.S * shape.C;
  const float relative = 0.05f, base = relative * std::sqrt(static_cast<float>(depth)) / 3;
  return program::run(
      arguments, {10, 200}, 2.0 * output.element_count() * depth, output_device, output,
      [&] { conv2d(input_device.view(), filter_device.view(), output_device.view()); },
      [&] {
        // Whole rows of the implicit GEMM: all filters of a sampled pixel.
        const std::size_t pixels = output.element_count() / shape.K, samples = std::min<std::size_t>(pixels, 64);
        const std::size_t stride = choreo::pick_coprime_stride(pixels, shape.Q(), samples);
        for (std::size_t i = 0; i < samples; ++i) {
          const std::size_t pixel = i * stride % pixels;
          const int q = int(pixel % shape.Q()), p = int(pixel / shape.Q() % shape.P());
          const int n = int(pixel / shape.Q() / shape.P());
          for (int k = 0; k < shape.K; ++k) {
            const float expected = conv2d_element(input.data(), filter.data(), shape, n, p, q, k);
            const float value = choreo::to_f32(output[n][p][q][k]);
            if (std::fabs(value - expected) <= base + relative * std::fabs(expected)) continue;
            program::fail("CPU reference: output[" + std::to_string(n) + "][" + std::to_string(p) + "][" +
                          std::to_string(q) + "][" + std::to_string(k) + "] = " + std::to_string(value) +
                          ", expected " + std::to_string(expected));
          }
        }
        std::printf("CPU reference: %zu sampled pixels × %d filters, 0 failed\n", samples, shape.K);
        program::verify_whole(output_device, base, relative, [&](float* reference) {
          const unsigned int blocks = static_cast<unsigned int>((output.element_count() + 255) / 256);
          conv2d_reference<<<blocks, 256>>>(input_device.data(), filter_device.data(), reference, shape);
        });
      });
}

#endif
