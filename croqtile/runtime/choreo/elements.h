// Element types: the language's names for the CUDA types.
#ifndef CHOREO_ELEMENTS_H
#define CHOREO_ELEMENTS_H

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

namespace choreo {

using f16 = __half;
using bf16 = __nv_bfloat16;
using f32 = float;
using f8_e4m3 = __nv_fp8_e4m3;
using f8_e5m2 = __nv_fp8_e5m2;
using s32 = std::int32_t;
using u32 = std::uint32_t;
using s8 = std::int8_t;
using u8 = std::uint8_t;

// The value of an element as f32; integers above 2^24 are rounded.
template <typename T>
__host__ __device__ inline float to_f32(T value) {
  return static_cast<float>(value);
}

}  // namespace choreo

// Device functions of a program (`call f(…)`) name their element types as the tile functions do.
using choreo::bf16;
using choreo::f16;
using choreo::f8_e4m3;
using choreo::f8_e5m2;

#endif
