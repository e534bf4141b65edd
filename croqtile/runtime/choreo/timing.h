// Mean time of a call, by CUDA events on the default stream.
#ifndef CHOREO_TIMING_H
#define CHOREO_TIMING_H

#include <cuda_runtime.h>

#include "errors.h"
#include "setting.h"

namespace choreo {

// Brace-initialised in order or by name: TimerOption{10, 100}, TimerOption{.repeat = 500}.
struct TimerOption {
  setting<int> warmup = 10;
  setting<int> repeat = 100;
};

// Calls fn exactly warmup + repeat times; returns milliseconds per timed call (0 if there is none).
template <typename F>
float timing(F&& fn, const TimerOption& option = {}) {
  cudaEvent_t start, stop;
  abend_true(cudaEventCreate(&start));
  abend_true(cudaEventCreate(&stop));
  for (int i = 0; i < option.warmup; ++i) fn();
  abend_true(cudaEventRecord(start));
  for (int i = 0; i < option.repeat; ++i) fn();
  abend_true(cudaEventRecord(stop));
  abend_true(cudaEventSynchronize(stop));
  float milliseconds = 0;
  abend_true(cudaEventElapsedTime(&milliseconds, start, stop));
  abend_true(cudaEventDestroy(start));
  abend_true(cudaEventDestroy(stop));
  return option.repeat > 0 ? milliseconds / option.repeat : 0.0f;
}

}  // namespace choreo

#endif
