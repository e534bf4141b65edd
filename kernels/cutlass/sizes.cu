// Shared storage of every kernel of Table 2, as constants in PTX: compile with `nvcc -ptx` and read them there. Nothing
// has to be linked or run, so no GPU is needed. Built twice: with CUTLASS as it is, and with the union edit in front.
#include "kernel.hpp"

#include "cutlass/version.h"

// One row: bytes in all, of the main loop's tiles, of the epilogue's tiles, of both together; 1 if they share memory.
#define ROW(name, ...)                                                          \
  extern "C" __device__ const unsigned name##_total = __VA_ARGS__::kTotal;       \
  extern "C" __device__ const unsigned name##_mainloop = __VA_ARGS__::kMainloop; \
  extern "C" __device__ const unsigned name##_epilogue = __VA_ARGS__::kEpilogue; \
  extern "C" __device__ const unsigned name##_tensors = __VA_ARGS__::kTensors;   \
  extern "C" __device__ const unsigned name##_union = __VA_ARGS__::kUnion;

ROW(coop_128x128_2s, Gemm<Cooperative, 128, 128, 2>)
ROW(coop_128x128_3s, Gemm<Cooperative, 128, 128, 3>)
ROW(coop_128x128_4s, Gemm<Cooperative, 128, 128, 4>)
ROW(coop_128x256_2s, Gemm<Cooperative, 128, 256, 2>)
ROW(pingpong_64x128_3s, Gemm<PingPong, 64, 128, 3>)
ROW(nonpersistent_128x128_3s, Gemm<NonPersistent, 128, 128, 3>)
ROW(coop_128x128_3s_half, Gemm<Cooperative, 128, 128, 3, HalfCD>)

extern "C" __device__ const unsigned cutlass_version = CUTLASS_MAJOR * 10000 + CUTLASS_MINOR * 100 + CUTLASS_PATCH;
