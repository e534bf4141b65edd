// What the kernels of stress builds use beside choreo_device.cuh, and how the host sets it. One build serves all seeds.
//
// CHOREO_STRESS_SEED=n   stresses every launch with seed n; a program that defines its own seeds sets `seed()` instead.
// Without a seed nothing is delayed and nothing is poisoned but shared memory at the start of the kernel.
#ifndef CHOREO_STRESS_CUH
#define CHOREO_STRESS_CUH

#define CHOREO_STRESS 1  // tells the program that its kernels can be stressed

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace choreo {
namespace stress {

constexpr uint32_t warpgroups_most = 8;  // of a CTA
constexpr uint32_t every_warp = 4;

struct Settings {
  uint32_t seed;
  uint32_t poison;                        // bit 0: warpgroups poison what is dead; bit 1: single threads do, too
  uint32_t warp;                          // of each warpgroup that is delayed; or every_warp
  uint32_t longest_ns[warpgroups_most];  // delay, per warpgroup
};

__constant__ Settings settings;  // all zero: no delay, no poison

// Spreads the bits of x (the finaliser of MurmurHash3).
__host__ __device__ __forceinline__ uint32_t spread(uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

// ---------------------------------------------------------------------------------------------------------------------
// Device

// A random sequence of delays for one warp: it depends on the seed, the CTA and the warp, and goes on with every delay,
// so that each operation of each iteration has its own. The same in all lanes of a warp.
struct Delays {
  uint32_t state, longest_ns;

  __device__ __forceinline__ explicit Delays(int warpgroup) {
    const uint32_t cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), warp = threadIdx.x / 32;
    state = spread(settings.seed ^ spread(cta * 64 + warp));
    const bool delayed = settings.warp == every_warp || settings.warp == warp % 4;
    longest_ns = delayed ? settings.longest_ns[warpgroup] : 0;
  }

  // One operation in four is delayed. Without a branch, so that matrix instructions stay in flight across it.
  __device__ __forceinline__ void operator()(uint32_t operation) {
    state = state * 1664525u + 1013904223u + operation;
    const uint32_t random = spread(state);
    const uint32_t ns = random % 4 == 0 ? __umulhi(random, longest_ns) : 0;
    asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory");
  }
};

__device__ __forceinline__ bool warpgroup_poisons() { return (settings.poison & 1) != 0; }
__device__ __forceinline__ bool thread_poisons() { return (settings.poison & 2) != 0; }

// All bits set is NaN in every floating-point type, of 8, 16 and 32 bits.
__device__ __forceinline__ void poison_chunk(uint32_t address) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(~0u) : "memory");
}

// All of `bytes` (a multiple of 16), by `threads` threads together.
__device__ __forceinline__ void poison(uint32_t address, uint32_t bytes, uint32_t thread, uint32_t threads) {
#pragma unroll 1
  for (uint32_t at = 16 * thread; at < bytes; at += 16 * threads) poison_chunk(address + at);
}

// At most 64 chunks of 16 bytes spread evenly over `bytes`, by one thread. Where they start is random, so that over many
// launches every byte is hit.
__device__ __forceinline__ void poison_sample(uint32_t address, uint32_t bytes, uint32_t random) {
  const uint32_t chunks = bytes / 16, step = (chunks + 63) / 64;
#pragma unroll 1
  for (uint32_t chunk = (random >> 16) % step; chunk < chunks; chunk += step) poison_chunk(address + 16 * chunk);
}

// ---------------------------------------------------------------------------------------------------------------------
// Host

// The seed of the next launches, or -1 for none.
inline long long& seed() {
  static long long value = [] {
    const char* text = std::getenv("CHOREO_STRESS_SEED");
    return text == nullptr || *text == '\0' ? -1 : std::atoll(text);
  }();
  return value;
}

// Four kinds of schedule take turns: all roles at random; one role (warpgroup) held up; one role ahead of all others;
// one warp of each role held up. Which role or warp, and whether single threads poison, follows from the seed.
inline Settings settings_of(long long seed, int warpgroups) {
  Settings made = {};
  if (seed < 0) return made;
  const uint32_t roles = static_cast<uint32_t>(warpgroups);
  const uint32_t number = static_cast<uint32_t>(seed), kind = number % 4, turn = number / 4;
  made.seed = spread(number + 1);
  made.poison = turn / roles % 2 == 0 ? 3 : 1;
  made.warp = kind == 3 ? turn % 4 : every_warp;
  for (uint32_t role = 0; role < roles && role < warpgroups_most; ++role) {
    const bool chosen = turn % roles == role;
    const uint32_t longest[] = {2000, chosen ? 30000u : 200u, chosen ? 0u : 8000u, 16000};
    made.longest_ns[role] = longest[kind];
  }
  return made;
}

// Before a launch. `warning` is what is wrong with a deliberately wrong build; it is printed once.
inline void prepare(const char* warning, int warpgroups) {
  static bool warned = false;
  if (*warning != '\0' && !warned) {
    std::fflush(stdout);
    std::fprintf(stderr, "WARNING: deliberately wrong build, for tests only: %s\n", warning);
    warned = true;
  }
  const Settings wanted = settings_of(seed(), warpgroups);
  choreo::abend_true(cudaMemcpyToSymbol(settings, &wanted, sizeof wanted));
}

}  // namespace stress
}  // namespace choreo

#endif  // CHOREO_STRESS_CUH
