// What the host wrappers of tile functions share: checks of their arguments, tensor maps, the launch.
//
// A wrapper refuses what the kernel or the copy engine (TMA) cannot do before anything runs, and names the function, the
// parameter and the value. Limits of tensor maps are those of cuTensorMapEncodeTiled.
#ifndef CHOREO_LAUNCH_H
#define CHOREO_LAUNCH_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <cuda.h>
#include <cuda_runtime.h>

#include "errors.h"

namespace choreo {
namespace launch {

// The tile function that a wrapper belongs to, and where it stands in the user's file.
struct Site {
  const char* function;
  const char* file;
  int line;

  [[noreturn]] void refuse(const std::string& reason) const { abend(std::string(function) + ": " + reason, file, line); }
};

inline std::string nth_dimension(const char* parameter, std::size_t index) {
  return "dimension " + std::to_string(index) + " of `" + parameter + "`";
}

// An extent that binds a symbolic dimension. The kernel counts in 32-bit integers.
inline long long dimension(const Site& site, const char* symbol, const char* parameter, std::size_t index,
                           std::size_t extent) {
  if (extent == 0) site.refuse(nth_dimension(parameter, index) + " (" + symbol + ") is 0: there is nothing to compute");
  if (extent > 0x7fffffff)
    site.refuse(nth_dimension(parameter, index) + " (" + symbol + ") is " + std::to_string(extent) +
                ": the limit is 2147483647");
  return static_cast<long long>(extent);
}

// The same symbolic dimension in another parameter, or in another place of the same one.
inline void same_dimension(const Site& site, const char* symbol, const char* first, std::size_t first_index,
                           long long bound, const char* second, std::size_t second_index, std::size_t extent) {
  if (static_cast<unsigned long long>(bound) == extent) return;
  site.refuse(std::string("dimension ") + symbol + " is " + std::to_string(bound) + " in `" + first + "` (dimension " +
              std::to_string(first_index) + ") but " + std::to_string(extent) + " in `" + second + "` (dimension " +
              std::to_string(second_index) + ")");
}

inline void constant_dimension(const Site& site, const char* parameter, std::size_t index, long long wanted,
                               std::size_t extent) {
  if (static_cast<unsigned long long>(wanted) == extent) return;
  site.refuse(nth_dimension(parameter, index) + " must be " + std::to_string(wanted) + ", but the argument has " +
              std::to_string(extent));
}

// A tensor dimension that the program cuts into pieces which tensor maps address as a dimension of their own.
inline void whole_pieces(const Site& site, const char* parameter, const char* what, long long dimension,
                         long long piece) {
  if (piece > 0 && dimension % piece == 0) return;
  site.refuse(std::string("`") + parameter + "`: " + what + " = " + std::to_string(dimension) +
              " is not a whole number of pieces of " + std::to_string(piece) + ", into which the program cuts it");
}

// The extent of one grid axis. CUDA's limits: 2^31 − 1 for x, 65535 for y and z.
inline unsigned int grid_extent(const Site& site, const char* index, char axis, long long count) {
  const long long limit = axis == 'x' ? 0x7fffffffLL : 65535LL;
  if (count < 1) site.refuse(std::string("the grid has no tile: `") + index + "` counts " + std::to_string(count));
  if (count > limit)
    site.refuse("too many tiles: `" + std::string(index) + "` counts " + std::to_string(count) + ", the limit of grid." +
                axis + " is " + std::to_string(limit));
  return static_cast<unsigned int>(count);
}

// CTAs of a cluster are consecutive along the first grid index.
inline void whole_clusters(const Site& site, const char* index, unsigned int count, unsigned int cluster) {
  if (count % cluster != 0)
    site.refuse(std::string("`") + index + "` counts " + std::to_string(count) +
                " tiles, which is not a multiple of the cluster's " + std::to_string(cluster) + " CTAs");
}

inline constexpr long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }

// The largest value of an integer expression of the kernel, computed here in 64 bits.
inline void fits(const Site& site, const char* what, long long value) {
  if (value >= -2147483648LL && value <= 2147483647LL) return;
  site.refuse(std::string("`") + what + "` reaches " + std::to_string(value) +
              ": the kernel computes it in 32 bits, where the limit is 2147483647");
}

inline void check_pointer(const Site& site, const char* parameter, const void* pointer, std::size_t alignment) {
  if (pointer == nullptr) site.refuse(std::string("`") + parameter + "` is a null pointer");
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return;
  char text[32];
  std::snprintf(text, sizeof text, "%p", pointer);
  site.refuse(std::string("`") + parameter + "` is misaligned: its address " + text + " is not a multiple of " +
              std::to_string(alignment) + " bytes");
}

// cuTensorMapEncodeTiled, from the driver that the CUDA runtime has loaded: programs need no -lcuda.
inline decltype(&cuTensorMapEncodeTiled) encode_function(const Site& site) {
  static const auto function = [&site] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess) site.refuse("CUDA: " + error_text(error));
    if (found != cudaDriverEntryPointSuccess || entry == nullptr)
      site.refuse("the CUDA driver has no cuTensorMapEncodeTiled: update it to version 525 or newer");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  return function;
}

// How the copy engine sees one parameter: dimensions innermost first, extents and strides in elements.
template <std::size_t N>
struct TileMap {
  const char* parameter;
  const void* data;
  CUtensorMapDataType type;
  std::size_t element_bytes;
  std::array<long long, N> extent, stride;
  std::array<cuuint32_t, N> box;  // elements per copy
  CUtensorMapSwizzle swizzle;
};

template <std::size_t N>
CUtensorMap encode(const Site& site, const TileMap<N>& map) {
  static_assert(N >= 1 && N <= 5, "tensor maps have one to five dimensions");
  check_pointer(site, map.parameter, map.data, 16);
  cuuint64_t extent[N], pitch[N];
  cuuint32_t step[N];
  for (std::size_t d = 0; d < N; ++d) {
    extent[d] = static_cast<cuuint64_t>(map.extent[d]);
    step[d] = 1;
    if (map.extent[d] < 1 || map.extent[d] > (1LL << 32))
      site.refuse(std::string("`") + map.parameter + "`: an extent of " + std::to_string(map.extent[d]) +
                  " is outside the copy engine's range, 1 … 2^32");
    if (d == 0) continue;
    cuuint64_t bytes = static_cast<cuuint64_t>(map.stride[d]) * map.element_bytes;
    if (map.extent[d] == 1) bytes = (bytes + 15) / 16 * 16;  // never used, so that any value the driver accepts will do
    if (bytes % 16 != 0)
      site.refuse(std::string("`") + map.parameter + "`: the row pitch is " + std::to_string(map.stride[d]) +
                  " elements = " + std::to_string(bytes) + " bytes; the copy engine needs a multiple of 16 bytes");
    if (bytes >= (1ULL << 40))
      site.refuse(std::string("`") + map.parameter + "`: a stride of " + std::to_string(bytes) +
                  " bytes is too large for the copy engine, which needs less than 2^40");
    pitch[d - 1] = bytes;
  }
  CUtensorMap result;
  const CUresult status = encode_function(site)(
      &result, map.type, N, const_cast<void*>(map.data), extent, pitch, map.box.data(), step,
      CU_TENSOR_MAP_INTERLEAVE_NONE, map.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    site.refuse(std::string("`") + map.parameter + "`: cuTensorMapEncodeTiled failed with CUDA driver error " +
                std::to_string(static_cast<int>(status)));
  return result;
}

// CHOREO_CARVEOUT_KIB=n: the SM keeps n KiB for shared memory and the rest for L1. That bounds the CTAs per SM without
// touching the kernel, so that it can be measured at an occupancy that it would exceed. Rounded down, because the driver
// takes the next larger of its splits (… 100, 132, 164, 196, 228 KiB).
template <typename Kernel>
cudaError_t set_carveout(Kernel* kernel, int device) {
  const char* wish = std::getenv("CHOREO_CARVEOUT_KIB");
  if (wish == nullptr || *wish == '\0') return cudaSuccess;
  int most = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error != cudaSuccess) return error;
  const long long percent = std::atoll(wish) * 1024 * 100 / most;
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributePreferredSharedMemoryCarveout,
                              static_cast<int>(percent < 0 ? 0 : percent > 100 ? 100 : percent));
}

// Raises the kernel's limit of dynamic shared memory, once per device (bit d of `done`; devices above 63 every time).
template <typename Kernel>
void allow_dynamic_memory(const Site& site, Kernel* kernel, int bytes, std::atomic<std::uint64_t>& done) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  const std::uint64_t bit = device < 64 ? std::uint64_t{1} << device : 0;
  if (error == cudaSuccess && (done.load(std::memory_order_relaxed) & bit) != 0) return;
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 bytes);
  if (error == cudaSuccess) error = set_carveout(kernel, device);
  if (error != cudaSuccess)
    site.refuse("cannot get " + std::to_string(bytes) + " bytes of shared memory per block: CUDA: " + error_text(error));
  done.fetch_or(bit, std::memory_order_relaxed);
}

template <typename T>
struct exactly {
  using type = T;
};

// One launch on the default stream. The result of the call itself is examined, not cudaGetLastError(), which could
// report an error that the program left behind earlier.
template <typename... P>
void enqueue(const Site& site, void (*kernel)(P...), dim3 grid, int threads, int dynamic_bytes,
             const typename exactly<P>::type&... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  const cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, dim3(threads), pointers,
                                             static_cast<std::size_t>(dynamic_bytes), nullptr);
  if (error != cudaSuccess) {
    cudaGetLastError();  // reported here: not again by a later call
    site.refuse("the kernel was not launched (grid " + std::to_string(grid.x) + " × " + std::to_string(grid.y) + " × " +
                std::to_string(grid.z) + ", " + std::to_string(threads) + " threads, " + std::to_string(dynamic_bytes) +
                " bytes of dynamic shared memory): CUDA: " + error_text(error));
  }
}

// Waits for the kernel and reports how it ended.
inline void finish(const Site& site) {
  const cudaError_t error = cudaStreamSynchronize(nullptr);
  if (error != cudaSuccess) site.refuse("the kernel failed: CUDA: " + error_text(error));
}

}  // namespace launch
}  // namespace choreo

#endif
