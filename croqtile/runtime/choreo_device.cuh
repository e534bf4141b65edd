// Device-side building blocks of the generated kernels (sm_90a): one short inline function per hardware operation.
//
// Addresses of shared memory are 32-bit numbers in the shared window (what `shared_address` returns), so that address
// arithmetic stays in one register. Everything that touches shared memory behind the compiler's back has a "memory"
// clobber. Functions that a whole warp or warpgroup must call together say so.
#pragma once

#include <cuda.h>  // CUtensorMap
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace choreo {
namespace device {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A value that is the same in all lanes of the warp, told to the compiler as such (so that branches on it are uniform).
__device__ __forceinline__ int warp_uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// ---------------------------------------------------------------------------------------------------------------------
// mbarrier: a phase completes when `count` arrivals have come and all expected bytes have landed. Waiting for the k-th
// completed phase (k = 0, 1, …) is waiting with parity k & 1.

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// After the inits by one thread, before the block barrier: makes them visible to the copy engine and the cluster.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier at the same address in CTA `rank` of the cluster.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// Adds bytes to what the current phase waits for, without arriving.
__device__ __forceinline__ void mbarrier_expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@complete bra.uni done;\n"
      "bra.uni again;\n"
      "done:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// The same for a barrier at which other CTAs of the cluster arrive.
__device__ __forceinline__ void mbarrier_wait_cluster(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%0], %1;\n"
      "@complete bra.uni done;\n"
      "bra.uni again;\n"
      "done:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// Bulk tensor copies. Coordinates innermost first, in elements, may be negative or past the end: what is out of range
// reads as zero (and counts in the bytes of the barrier) and is not written. To be called by one thread.

__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(tile),
      "l"(&map), "r"(barrier), "r"(c0)
      : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          tile),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1)
      : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1,
                                         int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(tile),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1,
                                         int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(tile),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1,
                                         int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(tile),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t tile, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%2}], [%1];" ::"l"(&map), "r"(tile), "r"(c0)
               : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t tile, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(tile),
               "r"(c0), "r"(c1)
               : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t tile, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map), "r"(tile),
               "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t tile, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(tile), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, uint32_t tile, int c0, int c1, int c2, int c3,
                                          int c4) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
               "r"(tile), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
               : "memory");
}

// Closes the group of stores issued by this thread and waits until their shared source may be overwritten. (The stores
// themselves complete before the kernel does.)
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Orders this thread's ordinary accesses to shared memory before later ones by the copy engine and the matrix units
// (by whoever follows it through a barrier).
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---------------------------------------------------------------------------------------------------------------------
// Barriers among warps

// Barrier `id` (1 … 15; 0 is __syncthreads) among `threads` threads, a multiple of 32, by whole warps.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// ---------------------------------------------------------------------------------------------------------------------
// Registers of a warpgroup: all its 128 threads call these together; Count is a multiple of 8 in 24 … 256.

template <int Count>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

// ---------------------------------------------------------------------------------------------------------------------
// Warpgroup matrix instructions (the instructions themselves are generated per shape)

// Before the first instruction of a sequence: orders the warpgroup's accesses to accumulator and operand registers.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most Pending groups of this warp are still running.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Layout code of a swizzle of 32, 64 or 128 bytes in a matrix descriptor.
__host__ __device__ constexpr uint64_t swizzle_code(int swizzle) {
  return swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
}

// Operand whose rows (M or N) are `Swizzle` bytes of K each: groups of 8 rows are 8 · Swizzle bytes apart. The next
// instruction step along K (32 bytes) is descriptor + 2.
template <int Swizzle>
__device__ __forceinline__ uint64_t k_major_descriptor(uint32_t tile) {
  constexpr uint64_t layout = swizzle_code(Swizzle) << 62 | uint64_t(8 * Swizzle >> 4) << 32 | uint64_t(1) << 16;
  return layout | ((tile & 0x3ffff) >> 4);
}

// Operand whose rows (K) are `Swizzle` bytes of N each; panels of `Swizzle` bytes of N are PanelBytes apart, groups of 8
// rows 8 · Swizzle bytes. The next instruction step along K (16 rows) is descriptor + Swizzle.
template <int Swizzle, int PanelBytes>
__device__ __forceinline__ uint64_t mn_major_descriptor(uint32_t tile) {
  constexpr uint64_t layout =
      swizzle_code(Swizzle) << 62 | uint64_t(8 * Swizzle >> 4) << 32 | uint64_t((PanelBytes >> 4) & 0x3fff) << 16;
  return layout | ((tile & 0x3ffff) >> 4);
}

// ---------------------------------------------------------------------------------------------------------------------
// Registers → shared memory

// Four 8×8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. By a whole warp.
__device__ __forceinline__ void stmatrix(uint32_t row, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m0), "r"(m1), "r"(m2),
               "r"(m3)
               : "memory");
}

__device__ __forceinline__ void stmatrix(uint32_t row, uint32_t m0, uint32_t m1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(m0), "r"(m1) : "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, uint16_t value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// Element conversions; two elements per register, the first in the low half

__device__ __forceinline__ uint32_t pack_f16(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ __forceinline__ uint32_t pack_bf16(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ __forceinline__ uint16_t pack_e4m3(float first, float second) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ __forceinline__ uint16_t pack_e5m2(float first, float second) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ __forceinline__ float f16_low(uint32_t pair) { return __half2float(__ushort_as_half(pair & 0xffff)); }
__device__ __forceinline__ float f16_high(uint32_t pair) { return __half2float(__ushort_as_half(pair >> 16)); }
__device__ __forceinline__ float bf16_low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float bf16_high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// 2^x in one instruction; 2^-inf = 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---------------------------------------------------------------------------------------------------------------------
// Reductions over the four threads that hold one row of an accumulator

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

}  // namespace device
}  // namespace choreo
