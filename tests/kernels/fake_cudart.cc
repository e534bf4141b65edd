// Stands in for the CUDA runtime, so that the host part of a program runs without a GPU: memory is the host's, and a launch
// only fills the tensor that was allocated last. With FAKE_BAD_SEED=n, the launch with seed n of a stress build gives
// another output; FAKE_ALWAYS_BAD=1: every launch does; FAKE_FAULT=1: launches with a seed fail.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

static void* newest = nullptr;
static std::size_t newest_bytes = 0;
static std::uint32_t seed_number = 0;  // `Settings::seed`, the first word of what the host sets; 0 without a seed

static std::uint32_t spread(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

static CUresult encode(...) { return CUDA_SUCCESS; }

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 0; }
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, struct CUstream_st*) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) { return cudaSuccess; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  newest_bytes = (bytes + 255) / 256 * 256;
  *pointer = newest = std::aligned_alloc(256, newest_bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(target, source, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  std::memset(target, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void*, const void* source, std::size_t, std::size_t, cudaMemcpyKind) {
  std::memcpy(&seed_number, source, sizeof seed_number);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  std::memset(newest, 7, newest_bytes);
  const char* bad = std::getenv("FAKE_BAD_SEED");
  const bool wrong = std::getenv("FAKE_ALWAYS_BAD") || (bad && seed_number == spread(std::atoi(bad) + 1));
  if (wrong) static_cast<char*>(newest)[100] ^= 1;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return std::getenv("FAKE_FAULT") && seed_number != 0 ? cudaErrorIllegalAddress : cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 232448;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an illegal memory access was encountered"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorIllegalAddress"; }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** entry, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *entry = reinterpret_cast<void*>(encode);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t*) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}
}
