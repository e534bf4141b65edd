// Host part of the form programs: small sizes, every output element against a plain loop on the CPU.
#ifndef FORMS_H
#define FORMS_H

#include "../../../kernels/program.h"

template <typename T>
choreo::spanned_data<T, 2> random_matrix(long rows, long columns) {
  auto matrix = choreo::make_spandata<T>(rows, columns);
  matrix.fill_random(-1, 1);
  return matrix;
}

// The kernel's output, which starts as NaN, against reference(row, column). Prints the verdict and gives the exit status.
template <typename T, typename Run, typename Reference>
int check(choreo::spanned_data<T, 2>& output, Run run, Reference reference, float tolerance) {
  program::DeviceTensor<T, 2> device(output);
  device.poison();
  run(device.view());
  device.copy_to(output);
  for (std::size_t i = 0; i < output.shape()[0]; ++i) {
    for (std::size_t j = 0; j < output.shape()[1]; ++j) {
      const float found = choreo::to_f32(output.view()[i][j]), expected = reference(i, j);
      if (!(std::fabs(found - expected) <= tolerance * (1 + std::fabs(expected)))) {
        std::printf("element (%zu, %zu) is %g, expected %g\nTest FAILED\n", i, j, found, expected);
        return 1;
      }
    }
  }
  std::printf("Test Passed\n");
  return 0;
}

// Σ over k of a[i][k] · b[j][k], or b[k][j] if `b_by_columns`.
template <typename A, typename B>
float dot(const A& a, const B& b, std::size_t i, std::size_t j, bool b_by_columns = false) {
  float sum = 0;
  for (std::size_t k = 0; k < a.shape()[1]; ++k)
    sum += choreo::to_f32(a.view()[i][k]) * choreo::to_f32(b_by_columns ? b.view()[k][j] : b.view()[j][k]);
  return sum;
}

#endif
