// Stopping with a reason. Every failure goes to standard error and ends the program with exit status 1.
#ifndef CHOREO_ERRORS_H
#define CHOREO_ERRORS_H

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include <cuda_runtime.h>

namespace choreo {

[[noreturn]] inline void abend(const std::string& reason, const char* file, int line) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%d: error: %s\n", file, line, reason.c_str());
  std::exit(EXIT_FAILURE);
}

inline std::string error_text(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

// Stops unless `error` is cudaSuccess. File and line are the caller's.
inline void abend_true(cudaError_t error, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (error != cudaSuccess) abend("CUDA: " + error_text(error), file, line);
}

// Stops if `error` is true or not zero. File and line are the caller's.
template <typename T>
inline void abend_true(const T& error, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (error == T{}) return;
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
    abend("error code " + std::to_string(static_cast<long long>(error)), file, line);
  else
    abend("an error is set", file, line);
}

// Stops with `message` unless `condition` holds. File and line are the caller's.
inline void choreo_assert(bool condition, const char* message = "assertion failed", const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  if (!condition) abend(message, file, line);
}

inline void choreo_assert(bool condition, const std::string& message, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  if (!condition) abend(message, file, line);
}

}  // namespace choreo

#endif
