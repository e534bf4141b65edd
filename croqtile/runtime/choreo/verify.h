// Checking results on the CPU by samples.
#ifndef CHOREO_VERIFY_H
#define CHOREO_VERIFY_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <string>

#include "elements.h"
#include "errors.h"
#include "setting.h"

namespace choreo {

// A value c passes if |c − ref| ≤ base_tol + rel_tol · |ref|; NaN never does. base_tol is for sums that cancel.
struct SampledVerifierConfig {
  setting<std::size_t> num_samples = 4096;
  setting<float> base_tol = 0.1f;
  setting<float> rel_tol = 0.05f;
};

// A stride ≥ 1 near total / samples, coprime to `total` and `dim`: its multiples modulo `total` visit different elements,
// and, in rows of `dim` elements, every column.
inline std::size_t pick_coprime_stride(std::size_t total, std::size_t dim, std::size_t samples) {
  const std::size_t wanted = std::max<std::size_t>(1, total / std::max<std::size_t>(1, samples));
  const auto fits = [&](std::size_t stride) { return std::gcd(stride, total) <= 1 && std::gcd(stride, dim) <= 1; };
  for (std::size_t distance = 0; distance < wanted; ++distance) {
    if (fits(wanted - distance)) return wanted - distance;
    if (fits(wanted + distance)) return wanted + distance;
  }
  return 1;
}

// Checks num_samples elements of c (all of them if there are fewer) against Σ_k a[i][k] · b[j][k], summed in f32 over the
// whole K: c is M × N, a M × K, b N × K, spanned_data or spanned_view on the host. Stops with the first bad element and
// the number of bad ones if any fails.
template <typename A, typename B, typename C>
void verify_matmul_row_row_sampled(const A& a, const B& b, const C& c, const SampledVerifierConfig& config = {},
                                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const std::size_t M = c.shape()[0], N = c.shape()[1], K = a.shape()[1];
  choreo_assert(a.shape()[0] == M && b.shape()[0] == N && b.shape()[1] == K,
                "verify_matmul_row_row_sampled: the shapes of a (M × K), b (N × K) and c (M × N) do not agree", file,
                line);
  const std::size_t wanted = config.num_samples;
  choreo_assert(static_cast<std::ptrdiff_t>(wanted) >= 1, "verify_matmul_row_row_sampled: num_samples must be at least 1",
                file, line);
  const std::size_t total = M * N, samples = std::min(total, wanted);
  const std::size_t stride = pick_coprime_stride(total, N, samples);
  std::size_t bad = 0;
  std::string first;
  for (std::size_t s = 0; s < samples; ++s) {
    const std::size_t element = s * stride % total, i = element / N, j = element % N;
    const auto* row = a.data() + i * K;
    const auto* column = b.data() + j * K;
    float reference = 0;
    for (std::size_t k = 0; k < K; ++k) reference += to_f32(row[k]) * to_f32(column[k]);
    const float value = to_f32(c[i][j]), allowed = config.base_tol + config.rel_tol * std::fabs(reference);
    if (std::fabs(value - reference) <= allowed) continue;
    if (bad++ == 0) {
      char text[160];
      std::snprintf(text, sizeof text, "c[%zu][%zu] = %g, expected %g ± %g", i, j, value, reference, allowed);
      first = text;
    }
  }
  if (bad == 0) return;
  std::printf("Test FAILED\n");
  abend("verification failed: " + first + "; " + std::to_string(bad) + " of " + std::to_string(samples) +
            " samples are wrong",
        file, line);
}

}  // namespace choreo

#endif
