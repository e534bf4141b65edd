// Runs one CUTLASS kernel of Table 2 on square problems and checks it. One configuration per program, given by macros:
//   SCHEDULE (Cooperative | PingPong | NonPersistent), TILE_M, TILE_N, STAGES, OUTPUT (FloatD | HalfCD),
//   EXPECT_UNION (0 | 1), KERNEL (a name).
//
//   gemm [--size N] [--launches L] [--beta B]
//
// Prints "name: value" lines; with --launches 0 it describes the launch and runs nothing.
// D = A*B + beta*C is compared with f32 references, tolerance 0.1 + 1 % of |reference|: 4096 sampled elements on the
// host, and every element on the GPU by a plain kernel. The worst launch is reported.
// Exit status: 0 every element right, 1 some wrong, 2 bad arguments, 3 CUDA or CUTLASS failed (nothing was measured).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernel.hpp"

#include "cutlass/version.h"

using Config = Gemm<SCHEDULE, TILE_M, TILE_N, STAGES, OUTPUT>;
using Device = cutlass::gemm::device::GemmUniversalAdapter<Config::Kernel>;
using ElementC = Config::ElementC;
using ElementD = Config::ElementD;
constexpr bool kHasC = !std::is_void_v<ElementC>;
static_assert(Config::kUnion == bool(EXPECT_UNION), "the shared storage is not of the kind that this build asks for");

constexpr int kSamples = 4096;

#define TEXT_OF(macro) #macro
#define TEXT(macro) TEXT_OF(macro)

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "error: %s: %s\n", what, why);
  std::exit(3);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(what, cudaGetErrorString(error));
}

void check(cutlass::Status status, const char* what) {
  if (status != cutlass::Status::kSuccess) fail(what, cutlass::cutlassGetStatusString(status));
}

// Written so that a NaN is wrong.
__host__ __device__ bool is_wrong(float got, float want) { return !(fabsf(got - want) <= 0.1f + 0.01f * fabsf(want)); }

// Uniform in [-0.5, 0.5), a function of the seed and the index alone (splitmix64).
float uniform(uint64_t seed, uint64_t index) {
  uint64_t z = (seed << 40) + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return float(z >> 40) / float(1 << 24) - 0.5f;
}

struct Matrix {  // n*n halves, on the host and on the device
  std::vector<__half> host;
  __half* device = nullptr;

  Matrix(size_t elements, uint64_t seed) : host(elements) {
    for (size_t i = 0; i < elements; ++i) host[i] = __float2half(uniform(seed, i));
    check(cudaMalloc(&device, elements * sizeof(__half)), "allocating a matrix");
    check(cudaMemcpy(device, host.data(), elements * sizeof(__half), cudaMemcpyHostToDevice), "copying a matrix");
  }
};

struct Tally {
  unsigned long long wrong;
  float max_error;  // over the elements that are not NaN
};

// Plain reference, one element per thread, compared on the spot. A row-major, B, C and D column-major.
__global__ void compare_all(const __half* a, const __half* b, const __half* c, const ElementD* d, int n, float beta,
                            Tally* tally) {
  constexpr int kTile = 16;
  __shared__ float tile_a[kTile][kTile + 1], tile_b[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = __half2float(a[size_t(row) * n + k + threadIdx.x]);
    tile_b[threadIdx.y][threadIdx.x] = __half2float(b[size_t(blockIdx.x * kTile + threadIdx.y) * n + k + threadIdx.x]);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[threadIdx.x][i];
    __syncthreads();
  }
  const size_t at = size_t(col) * n + row;
  const float want = sum + beta * __half2float(c[at]), got = float(d[at]);
  if (is_wrong(got, want)) atomicAdd(&tally->wrong, 1ull);
  const float error = fabsf(got - want);
  // Floats ≥ 0 order like their bits.
  if (error == error) atomicMax(reinterpret_cast<int*>(&tally->max_error), __float_as_int(error));
}

// The same comparison for sampled elements, computed on the host.
Tally compare_samples(const Matrix& a, const Matrix& b, const Matrix& c, const std::vector<ElementD>& d, int n,
                      float beta) {
  Tally tally{0, 0};
  for (int s = 0; s < kSamples; ++s) {
    const size_t row = size_t((uniform(17, s) + 0.5f) * n), col = size_t((uniform(18, s) + 0.5f) * n);
    float want = 0;
    for (int k = 0; k < n; ++k) want += __half2float(a.host[row * n + k]) * __half2float(b.host[col * n + k]);
    want += beta * __half2float(c.host[col * n + row]);
    const float got = float(d[col * n + row]);
    if (is_wrong(got, want)) ++tally.wrong;
    if (const float error = std::fabs(got - want); error > tally.max_error) tally.max_error = error;
  }
  return tally;
}

struct Options {
  int size = 2048, launches = 3;
  float beta = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    const bool whole = *value && !*end && number == std::floor(number) && number >= 0;
    const bool fits = number > 0 && number <= 16384 && std::fmod(number, 256) == 0;
    if (!std::strcmp(argv[i], "--size") && whole && fits) options.size = int(number);
    else if (!std::strcmp(argv[i], "--launches") && whole && number <= 1000) options.launches = int(number);
    else if (!std::strcmp(argv[i], "--beta") && *value && !*end && (kHasC || number == 0)) options.beta = float(number);
    else {
      std::fprintf(stderr, "usage: %s [--size N] [--launches L] [--beta B]\n"
                           "N: a multiple of 256, at most 16384. B: 0 unless the kernel has a C (got '%s %s')\n", argv[0], argv[i], value);
      std::exit(2);
    }
  }
  return options;
}

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const int n = options.size;

  cudaDeviceProp gpu{};
  check(cudaGetDeviceProperties(&gpu, 0), "looking for a GPU");
  if (gpu.major != 9) fail("looking for a GPU", "this program is built for sm_90a (H100, H200, H800)");

  const size_t elements = size_t(n) * n;
  const Matrix a(elements, 1), b(elements, 2), c(elements, 3);
  ElementD* d = nullptr;
  Tally* tally = nullptr;
  check(cudaMalloc(&d, elements * sizeof(ElementD)), "allocating D");
  check(cudaMalloc(&tally, sizeof(Tally)), "allocating the counters");

  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = gpu.multiProcessorCount;
  auto element = [](const __half* p) { return reinterpret_cast<const cutlass::half_t*>(p); };
  // Packed strides: A is (M, K) row-major, B is (N, K) and so K-major, C and D are (M, N) column-major.
  Device::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {n, n, n, 1},
      {element(a.device), {int64_t(n), cute::_1{}, int64_t(0)}, element(b.device), {int64_t(n), cute::_1{}, int64_t(0)}},
      {{1.0f, options.beta},
       reinterpret_cast<const ElementC*>(c.device), {cute::_1{}, int64_t(n), int64_t(0)},
       d, {cute::_1{}, int64_t(n), int64_t(0)}},
      hardware};

  Device gemm;
  void* workspace = nullptr;
  check(gemm.can_implement(arguments), "CUTLASS cannot run this problem");
  check(cudaMalloc(&workspace, Device::get_workspace_size(arguments) + 1), "allocating the workspace");
  check(gemm.initialize(arguments, workspace), "initialising the kernel");

  const dim3 grid = Device::get_grid_shape(gemm.params());
  const int tiles = ((n + Config::kTileM - 1) / Config::kTileM) * ((n + Config::kTileN - 1) / Config::kTileN);
  const int ctas = int(grid.x * grid.y * grid.z);
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, cutlass::device_kernel<Config::Kernel>), "reading the kernel's attributes");

  Tally sampled{0, 0}, full{0, 0};
  int wrong_launches = 0;
  std::vector<ElementD> result(elements);
  for (int launch = 0; launch < options.launches; ++launch) {
    check(cudaMemset(d, 0xFF, elements * sizeof(ElementD)), "filling D with NaN");  // what is never written is wrong
    check(gemm.run(), "launching the kernel");
    check(cudaDeviceSynchronize(), "running the kernel");

    Tally now{0, 0};
    check(cudaMemset(tally, 0, sizeof(Tally)), "clearing the counters");
    compare_all<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a.device, b.device, c.device, d, n, options.beta, tally);
    check(cudaMemcpy(&now, tally, sizeof(Tally), cudaMemcpyDeviceToHost), "comparing on the GPU");
    if (now.wrong) ++wrong_launches;
    full = {std::max(full.wrong, now.wrong), std::max(full.max_error, now.max_error)};

    check(cudaMemcpy(result.data(), d, elements * sizeof(ElementD), cudaMemcpyDeviceToHost), "copying D");
    now = compare_samples(a, b, c, result, n, options.beta);
    sampled = {std::max(sampled.wrong, now.wrong), std::max(sampled.max_error, now.max_error)};
  }

  std::printf("kernel: %s\n", TEXT(KERNEL));
  std::printf("cutlass: %d.%d.%d\n", CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH);
  std::printf("gpu: %s\n", gpu.name);
  std::printf("sms: %d\n", gpu.multiProcessorCount);
  std::printf("storage: %s\n", Config::kUnion ? "union" : "struct");
  std::printf("size: %d\n", n);
  std::printf("beta: %g\n", options.beta);
  std::printf("tiles: %d\n", tiles);
  std::printf("ctas: %d\n", ctas);
  std::printf("dynamic_smem_bytes: %d\n", int(Config::Kernel::SharedStorageSize));
  std::printf("static_smem_bytes: %zu\n", attributes.sharedSizeBytes);
  std::printf("registers: %d\n", attributes.numRegs);
  std::printf("ctas_per_sm: %d\n", Device::maximum_active_blocks());
  std::printf("launches: %d\n", options.launches);
  std::printf("wrong_launches: %d\n", wrong_launches);
  std::printf("sampled_wrong: %llu\n", sampled.wrong);
  std::printf("sampled: %d\n", kSamples);
  std::printf("sampled_max_error: %.6f\n", sampled.max_error);
  std::printf("full_wrong: %llu\n", full.wrong);
  std::printf("full: %zu\n", elements);
  std::printf("full_max_error: %.6f\n", full.max_error);
  return sampled.wrong || full.wrong ? 1 : 0;
}
