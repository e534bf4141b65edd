// Device-side building blocks of the generated kernels (sm_90a): one short inline function per hardware operation.
//
// Addresses of shared memory are 32-bit numbers in the shared window (what `shared_address` returns), so that address
// arithmetic stays in one register. Everything that touches shared memory behind the compiler's back has a "memory"
// clobber. Functions that a whole warp or warpgroup must call together say so.
#ifndef CHOREO_DEVICE_CUH
#define CHOREO_DEVICE_CUH

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

template <class T>
__device__ __forceinline__ T* shared_pointer(uint32_t address) {
  return static_cast<T*>(__cvta_shared_to_generic(address));
}

__host__ __device__ constexpr uint32_t align_up(uint32_t value, uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Rounded up for a > 0, without the overflow of (a + b - 1) / b; b > 0.
__host__ __device__ constexpr int divide_up(int a, int b) { return a > 0 ? (a - 1) / b + 1 : (a + b - 1) / b; }

// The slot after `slot` in a ring.
template <int Slots>
__host__ __device__ constexpr int next_slot(int slot) {
  return slot + 1 == Slots ? 0 : slot + 1;
}

// ---------------------------------------------------------------------------------------------------------------------
// mbarrier: a phase completes when `count` arrivals have come and all expected bytes have landed. Waiting for the k-th
// completed phase (k = 0, 1, …) is waiting with parity k & 1.

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// After the inits by one thread, before the block barrier: makes them visible to the copy engine and the cluster.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier at the same address in each of the `ctas` CTAs of the cluster.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier, int ctas) {
  for (int rank = 0; rank < ctas; ++rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(barrier),
        "r"(rank)
        : "memory");
  }
}

// Adds bytes to what the current phase waits for, without arriving.
__device__ __forceinline__ void mbarrier_expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Threads of a warp may find the phase complete at different times: the branches are not uniform.
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@complete bra done;\n"
      "bra again;\n"
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
      "@complete bra done;\n"
      "bra again;\n"
      "done:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Waits for the next setting of a slot of an event (an array of mbarriers, 8 bytes each). Bit s of `phases` is the parity
// of the phase of slot s that this role waits for next: it counts the role's own waits, whatever their order.
__device__ __forceinline__ void event_wait(uint32_t event, int slot, uint32_t& phases) {
  mbarrier_wait(event + 8 * slot, phases >> slot & 1);
  phases ^= 1u << slot;
}

__device__ __forceinline__ void event_wait_cluster(uint32_t event, int slot, uint32_t& phases) {
  mbarrier_wait_cluster(event + 8 * slot, phases >> slot & 1);
  phases ^= 1u << slot;
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

// The same tile into every CTA of a cluster of Ctas, at the same address; its bytes count at the same barrier in each.
template <int Ctas>
__device__ __forceinline__ void tma_load_multicast(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4}], [%2], %3;" ::"r"(tile),
      "l"(&map), "r"(barrier), "h"(static_cast<uint16_t>((1 << Ctas) - 1)), "r"(c0)
      : "memory");
}

template <int Ctas>
__device__ __forceinline__ void tma_load_multicast(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5}], [%2], %3;" ::"r"(tile),
      "l"(&map), "r"(barrier), "h"(static_cast<uint16_t>((1 << Ctas) - 1)), "r"(c0), "r"(c1)
      : "memory");
}

template <int Ctas>
__device__ __forceinline__ void tma_load_multicast(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(tile),
      "l"(&map), "r"(barrier), "h"(static_cast<uint16_t>((1 << Ctas) - 1)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}

template <int Ctas>
__device__ __forceinline__ void tma_load_multicast(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(tile),
      "l"(&map), "r"(barrier), "h"(static_cast<uint16_t>((1 << Ctas) - 1)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}

template <int Ctas>
__device__ __forceinline__ void tma_load_multicast(uint32_t tile, const CUtensorMap& map, uint32_t barrier, int c0, int c1, int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(tile),
      "l"(&map), "r"(barrier), "h"(static_cast<uint16_t>((1 << Ctas) - 1)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
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
// themselves complete before the kernel does, but possibly after later stores and loads.)
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// The same, and waits until what they have written is complete, too.
__device__ __forceinline__ void tma_store_complete() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Orders this thread's ordinary accesses to shared memory before later ones by the copy engine and the matrix units
// (by whoever follows it through a barrier).
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The same for accesses to global memory as well.
__device__ __forceinline__ void fence_proxy_async_everywhere() { asm volatile("fence.proxy.async;" ::: "memory"); }

// ---------------------------------------------------------------------------------------------------------------------
// Barriers among warps

// Barrier `id` (1 … 15; 0 is __syncthreads) among `threads` threads, a multiple of 32, by whole warps.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
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

// Keeps the compiler from moving reads of these accumulators up past the wait for them. No instruction comes of it.
template <int N>
__device__ __forceinline__ void registers_complete(float (&registers)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

template <int N>
__device__ __forceinline__ void registers_complete(uint32_t (&registers)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(registers[i])::"memory");
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

__device__ __forceinline__ float round_f16(float x) { return f16_low(pack_f16(x, 0.0f)); }
__device__ __forceinline__ float round_bf16(float x) { return bf16_low(pack_bf16(x, 0.0f)); }
__device__ __forceinline__ float round_e4m3(float x) { return static_cast<float>(__nv_fp8_e4m3(x)); }
__device__ __forceinline__ float round_e5m2(float x) { return static_cast<float>(__nv_fp8_e5m2(x)); }

// 2^x in one instruction; 2^-inf = 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---------------------------------------------------------------------------------------------------------------------
// Fragments: what a thread holds of a 64-row accumulator of its warpgroup. Of every group g of 8 columns it has columns
// 8g + fragment_column() and the next, of rows fragment_row() (h = 0) and fragment_row() + 8 (h = 1). 32-bit elements:
// register 4g + 2h + (0, 1); pairs of 16-bit elements: register 2g + h. Per-row vectors have registers h = 0, 1.

__device__ __forceinline__ int fragment_row() { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4; }
__device__ __forceinline__ int fragment_column() { return threadIdx.x % 4 * 2; }

template <class T, int N, class Value>
__device__ __forceinline__ void fill_registers(T (&registers)[N], Value value) {
#pragma unroll
  for (int i = 0; i < N; ++i) registers[i] = static_cast<T>(value);
}

template <class T, int N>
__device__ __forceinline__ void copy_registers(T (&target)[N], const T (&source)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) target[i] = source[i];
}

// Registers that hold pairs, as registers of one f32 each.
template <int N>
__device__ __forceinline__ void widen_f16(float (&wide)[2 * N], const uint32_t (&pairs)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) wide[2 * i] = f16_low(pairs[i]), wide[2 * i + 1] = f16_high(pairs[i]);
}

template <int N>
__device__ __forceinline__ void widen_bf16(float (&wide)[2 * N], const uint32_t (&pairs)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) wide[2 * i] = bf16_low(pairs[i]), wide[2 * i + 1] = bf16_high(pairs[i]);
}

// Over the four threads that hold a row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Along the columns of a matrix, into its per-row vector. Even and odd columns are separate chains, for speed.
template <int N>
__device__ __forceinline__ void reduce_max(float (&rows)[2], const float (&matrix)[N]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float even = matrix[2 * h], odd = matrix[2 * h + 1];
#pragma unroll
    for (int i = 4; i < N; i += 4) {
      even = fmaxf(even, matrix[i + 2 * h]);
      odd = fmaxf(odd, matrix[i + 2 * h + 1]);
    }
    rows[h] = quad_max(fmaxf(even, odd));
  }
}

template <int N>
__device__ __forceinline__ void reduce_sum(float (&rows)[2], const float (&matrix)[N]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float even = matrix[2 * h], odd = matrix[2 * h + 1];
#pragma unroll
    for (int i = 4; i < N; i += 4) {
      even += matrix[i + 2 * h];
      odd += matrix[i + 2 * h + 1];
    }
    rows[h] = quad_sum(even + odd);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Fragments → shared memory. `tile` is the address of the whole tile of a buffer, (row, column) where the 64-row part
// starts in it, column in bytes.

// Four 8×8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. By a whole warp.
__device__ __forceinline__ void stmatrix(uint32_t row, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m0), "r"(m1), "r"(m2),
               "r"(m3)
               : "memory");
}

__device__ __forceinline__ void stmatrix(uint32_t row, uint32_t m0, uint32_t m1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(m0), "r"(m1) : "memory");
}

// Rows of Pitch bytes in panels that are PanelBytes apart; with a swizzle (of Pitch bytes then), chunks of 16 bytes are
// exchanged in a pattern of 8 · Swizzle bytes, as the copy engine does. The tile starts where the pattern does.
template <int Swizzle, int Pitch, int PanelBytes>
struct TileLayout {
  static_assert(Pitch % 16 == 0, "rows are whole chunks");

  // Byte offset of a chunk; chunks are counted through the panels of a row.
  static __device__ __forceinline__ uint32_t chunk(uint32_t row, uint32_t index) {
    constexpr uint32_t per_row = Pitch / 16;
    uint32_t inside = index % per_row;
    if constexpr (Swizzle != 0) inside ^= row * Swizzle / 128 % (Swizzle / 16);
    return index / per_row * PanelBytes + row * Pitch + inside * 16;
  }
};

// Pairs of 16-bit elements, N / 4 groups of 16 columns (and 8 more if N % 4 == 2).
template <class Layout, int N>
__device__ __forceinline__ void store_pairs(uint32_t tile, int row, int column, const uint32_t (&pairs)[N]) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t lane_row = row + threadIdx.x % 128 / 32 * 16 + lane % 16;
  const uint32_t lane_chunk = column / 16 + lane / 16;
#pragma unroll
  for (int g = 0; g < N / 4; ++g) {
    stmatrix(tile + Layout::chunk(lane_row, lane_chunk + 2 * g), pairs[4 * g], pairs[4 * g + 1], pairs[4 * g + 2],
             pairs[4 * g + 3]);
  }
  if constexpr (N % 4 == 2)
    stmatrix(tile + Layout::chunk(lane_row, column / 16 + N / 2 - 1), pairs[N - 2], pairs[N - 1]);
}

template <class Layout, int N>
__device__ __forceinline__ void store_f16(uint32_t tile, int row, int column, const uint32_t (&pairs)[N]) {
  store_pairs<Layout>(tile, row, column, pairs);
}

template <class Layout, int N>
__device__ __forceinline__ void store_f16(uint32_t tile, int row, int column, const float (&matrix)[N]) {
  uint32_t pairs[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) pairs[i] = pack_f16(matrix[2 * i], matrix[2 * i + 1]);
  store_pairs<Layout>(tile, row, column, pairs);
}

template <class Layout, int N>
__device__ __forceinline__ void store_bf16(uint32_t tile, int row, int column, const uint32_t (&pairs)[N]) {
  store_pairs<Layout>(tile, row, column, pairs);
}

template <class Layout, int N>
__device__ __forceinline__ void store_bf16(uint32_t tile, int row, int column, const float (&matrix)[N]) {
  uint32_t pairs[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) pairs[i] = pack_bf16(matrix[2 * i], matrix[2 * i + 1]);
  store_pairs<Layout>(tile, row, column, pairs);
}

// Calls store(address, first element of the pair) for every pair of neighbours that the thread holds.
template <class Layout, int Bytes, int N, class Store>
__device__ __forceinline__ void store_each_pair(uint32_t tile, int row, int column, const float (&matrix)[N],
                                                Store store) {
#pragma unroll
  for (int pair = 0; pair < N / 2; ++pair) {
    const uint32_t at_row = row + fragment_row() + 8 * (pair % 2);
    const uint32_t at_byte = column + (8 * (pair / 2) + fragment_column()) * Bytes;
    store(tile + Layout::chunk(at_row, at_byte / 16) + at_byte % 16, matrix[2 * pair], matrix[2 * pair + 1]);
  }
}

template <class Layout, int N>
__device__ __forceinline__ void store_f32(uint32_t tile, int row, int column, const float (&matrix)[N]) {
  store_each_pair<Layout, 4>(tile, row, column, matrix, [](uint32_t address, float first, float second) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
  });
}

template <class Layout, int N>
__device__ __forceinline__ void store_e4m3(uint32_t tile, int row, int column, const float (&matrix)[N]) {
  store_each_pair<Layout, 1>(tile, row, column, matrix, [](uint32_t address, float first, float second) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(pack_e4m3(first, second)) : "memory");
  });
}

template <class Layout, int N>
__device__ __forceinline__ void store_e5m2(uint32_t tile, int row, int column, const float (&matrix)[N]) {
  store_each_pair<Layout, 1>(tile, row, column, matrix, [](uint32_t address, float first, float second) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(pack_e5m2(first, second)) : "memory");
  });
}

}  // namespace device
}  // namespace choreo

#endif  // CHOREO_DEVICE_CUH
