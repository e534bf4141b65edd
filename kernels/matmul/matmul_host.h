// Host part of the GEMM programs: C = A · Bᵀ, A is M × K, B is N × K, C is M × N in f16.
// Arguments: --m --n --k (2048 each), and those of ../program.h.
#ifndef KERNELS_MATMUL_HOST_H
#define KERNELS_MATMUL_HOST_H

#include "../program.h"

// One thread per output element, over the whole K.
template <typename T>
__global__ void matmul_reference(const T* a, const T* b, float* c, int M, int N, int K) {
  const std::size_t element = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (element >= std::size_t(M) * N) return;
  const T* row = a + element / N * K;
  const T* column = b + element % N * K;
  float sum = 0;
  constexpr int vector = 16 / sizeof(T);  // rows are multiples of 16 bytes: the copy engine needs it too
  for (int k = 0; k < K; k += vector) {
    const uint4 row_words = *reinterpret_cast<const uint4*>(row + k);
    const uint4 column_words = *reinterpret_cast<const uint4*>(column + k);
    const T* x = reinterpret_cast<const T*>(&row_words);
    const T* y = reinterpret_cast<const T*>(&column_words);
    for (int i = 0; i < vector; ++i) sum += choreo::to_f32(x[i]) * choreo::to_f32(y[i]);
  }
  c[element] = sum;
}

template <typename T, typename Matmul>
int matmul_program(int argc, char** argv, Matmul matmul) {
  program::Arguments arguments(argc, argv);
  const long long M = arguments.integer("--m", 2048, "rows of A and C");
  const long long N = arguments.integer("--n", 2048, "rows of B, columns of C");
  const long long K = arguments.integer("--k", 2048, "columns of A and B");
  arguments.close();
  std::printf("GEMM M=%lld N=%lld K=%lld\n", M, N, K);

  // Products of mean zero: a wrong tile is then far outside the tolerance, which it would not be in sums of positive
  // numbers, all near their mean.
  auto a = choreo::make_spandata<T>(M, K);
  auto b = choreo::make_spandata<T>(N, K);
  auto c = choreo::make_spandata<choreo::f16>(M, N);
  a.fill_random(-1, 1);
  b.fill_random(-1, 1);
  const program::DeviceTensor<T, 2> a_device(a), b_device(b);
  program::DeviceTensor<choreo::f16, 2> c_device(c);

  // 5 % of the reference; where a sum cancels, 5 % of its standard deviation, √K / 3.
  const float relative = 0.05f, base = relative * std::sqrt(static_cast<float>(K)) / 3;
  return program::run(
      arguments, {10, 500}, 2.0 * M * N * K, c_device, c,
      [&] { matmul(a_device.view(), b_device.view(), c_device.view()); },
      [&] {
        choreo::verify_matmul_row_row_sampled(a, b, c, choreo::SampledVerifierConfig{4096, base, relative});
        std::printf("CPU reference: sampled elements agree within 5 %%\n");
        program::verify_whole(c_device, base, relative, [&](float* reference) {
          const unsigned int blocks = static_cast<unsigned int>((M * N + 255) / 256);
          matmul_reference<<<blocks, 256>>>(a_device.data(), b_device.data(), reference, int(M), int(N), int(K));
        });
      });
}

#endif
