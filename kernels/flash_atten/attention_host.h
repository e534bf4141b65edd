// Host part of the attention programs: O = softmax(Q · Kᵀ / √D) · V per batch and head, tensors [B, SEQ, H, D].
// Arguments: --batch --seq --heads, and those of ../program.h.
#ifndef KERNELS_ATTENTION_HOST_H
#define KERNELS_ATTENTION_HOST_H

#include "../program.h"

struct AttentionDefaults {
  long long batch, heads, seq;
  bool causal;
};

// One block per query, one thread per output element. Keys are taken DIM at a time: first thread d computes the score of
// key d, then every thread sums its own column over these keys. The softmax is rescaled whenever the maximum grows.
template <typename T, int DIM>
__global__ void attention_reference(const T* query, const T* key, const T* value, float* output, int SEQ, int H,
                                    bool causal) {
  __shared__ float q[DIM], score[DIM];
  const int d = threadIdx.x, row = blockIdx.x % SEQ;
  const std::size_t head = blockIdx.x / SEQ, pitch = std::size_t(H) * DIM;
  const std::size_t start = (head / H * SEQ) * pitch + head % H * DIM;  // of (batch, position 0, head)
  q[d] = choreo::to_f32(query[start + row * pitch + d]) * rsqrtf(DIM);
  const int keys = causal ? row + 1 : SEQ;
  float maximum = -INFINITY, sum = 0, result = 0;
  for (int first = 0; first < keys; first += DIM) {
    __syncthreads();
    float s = -INFINITY;
    if (first + d < keys) {
      s = 0;
      const T* k = key + start + (first + d) * pitch;
      constexpr int vector = 16 / sizeof(T);
      for (int i = 0; i < DIM; i += vector) {
        const uint4 words = *reinterpret_cast<const uint4*>(k + i);
        for (int j = 0; j < vector; ++j) s += q[i + j] * choreo::to_f32(reinterpret_cast<const T*>(&words)[j]);
      }
    }
    score[d] = s;
    __syncthreads();
    const int count = min(DIM, keys - first);
    float block_maximum = maximum;
    for (int j = 0; j < count; ++j) block_maximum = fmaxf(block_maximum, score[j]);
    const float rescale = expf(maximum - block_maximum);
    maximum = block_maximum;
    sum *= rescale;
    result *= rescale;
    for (int j = 0; j < count; ++j) {
      const float weight = expf(score[j] - maximum);
      sum += weight;
      result += weight * choreo::to_f32(value[start + (first + j) * pitch + d]);
    }
  }
  output[start + row * pitch + d] = result / sum;
}

// Naive attention of one query on the CPU.
template <typename T>
std::vector<float> attention_row(const choreo::spanned_data<T, 4>& q, const choreo::spanned_data<T, 4>& k,
                                 const choreo::spanned_data<T, 4>& v, std::size_t b, std::size_t row, std::size_t h,
                                 bool causal) {
  const std::size_t keys = causal ? row + 1 : q.shape()[1], dim = q.shape()[3];
  std::vector<float> score(keys), output(dim, 0.0f);
  float maximum = -INFINITY, sum = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    float dot = 0;
    const T *query = &q[b][row][h][0], *key = &k[b][j][h][0];
    for (std::size_t d = 0; d < dim; ++d) dot += choreo::to_f32(query[d]) * choreo::to_f32(key[d]);
    score[j] = dot / std::sqrt(static_cast<float>(dim));
    maximum = std::fmax(maximum, score[j]);
  }
  for (std::size_t j = 0; j < keys; ++j) {
    const float weight = std::exp(score[j] - maximum);
    const T* value = &v[b][j][h][0];
    sum += weight;
    for (std::size_t d = 0; d < dim; ++d) output[d] += weight * choreo::to_f32(value[d]);
  }
  for (float& element : output) element /= sum;
  return output;
}

template <typename T, int DIM, typename Attention>
int attention_program(int argc, char** argv, const AttentionDefaults& defaults, Attention attention) {
  program::Arguments arguments(argc, argv);
  const long long B = arguments.integer("--batch", defaults.batch, "batch size");
  const long long H = arguments.integer("--heads", defaults.heads, "heads");
  const long long SEQ = arguments.integer("--seq", defaults.seq, "queries and keys of a head");
  arguments.close();
  std::printf("attention B=%lld H=%lld SEQ=%lld D=%d%s\n", B, H, SEQ, DIM, defaults.causal ? " causal" : "");

  auto q = choreo::make_spandata<T>(B, SEQ, H, DIM);
  auto k = choreo::make_spandata<T>(B, SEQ, H, DIM);
  auto v = choreo::make_spandata<T>(B, SEQ, H, DIM);
  auto o = choreo::make_spandata<T>(B, SEQ, H, DIM);
  // Scores with a standard deviation of 3 (range² / 3): a few keys decide each output. With smaller ones every output
  // would be a mean of thousands of values, near zero, and an error would hide in the tolerance.
  q.fill_random(-3, 3);
  k.fill_random(-3, 3);
  v.fill_random(-1, 1);
  const program::DeviceTensor<T, 4> q_device(q), k_device(k), v_device(v);
  program::DeviceTensor<T, 4> o_device(o);

  const float base = 0.02f, relative = 0.02f;
  const double scores = static_cast<double>(SEQ) * SEQ * (defaults.causal ? 0.5 : 1.0);
  return program::run(
      arguments, {5, 20}, 4.0 * B * H * scores * DIM, o_device, o,
      [&] { attention(q_device.view(), k_device.view(), v_device.view(), o_device.view()); },
      [&] {
        const std::size_t rows = static_cast<std::size_t>(B * H * SEQ), samples = std::min<std::size_t>(rows, 128);
        const std::size_t stride = choreo::pick_coprime_stride(rows, static_cast<std::size_t>(SEQ), samples);
        for (std::size_t s = 0; s < samples; ++s) {
          const std::size_t sample = s * stride % rows, row = sample % SEQ, h = sample / SEQ % H, b = sample / SEQ / H;
          const std::vector<float> expected = attention_row(q, k, v, b, row, h, defaults.causal);
          for (std::size_t d = 0; d < expected.size(); ++d) {
            const float value = choreo::to_f32(o[b][row][h][d]);
            if (std::fabs(value - expected[d]) <= base + relative * std::fabs(expected[d])) continue;
            program::fail("CPU reference: o[" + std::to_string(b) + "][" + std::to_string(row) + "][" +
                          std::to_string(h) + "][" + std::to_string(d) + "] = " + std::to_string(value) +
                          ", expected " + std::to_string(expected[d]));
          }
        }
        std::printf("CPU reference: %zu sampled rows, 0 failed\n", samples);
        program::verify_whole(o_device, base, relative, [&](float* reference) {
          attention_reference<T, DIM><<<static_cast<unsigned int>(rows), DIM>>>(
              q_device.data(), k_device.data(), v_device.data(), reference, int(SEQ), int(H), defaults.causal);
        });
      });
}

#endif
