// A CUDA runtime that only records: programs made of host code alone are compiled by g++ with this file instead of the
// runtime library, and run without a GPU. What the calls record goes to standard output.
//
// STUB_FAIL=NAME makes the call NAME fail.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime_api.h>

static cudaError_t stub_result(const char* name) {
  const char* failing = std::getenv("STUB_FAIL");
  return failing != nullptr && std::strcmp(failing, name) == 0 ? cudaErrorInvalidValue : cudaSuccess;
}

static CUresult stub_encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                            const cuuint64_t* extent, const cuuint64_t* pitch, const cuuint32_t* box,
                            const cuuint32_t* step, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  static unsigned long long count = 0;
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &++count, sizeof count);  // recognised again at the launch
  std::printf("map %llu: type %d, address %p, extents", count, int(type), address);
  for (cuuint32_t d = 0; d < rank; ++d) std::printf(" %llu", static_cast<unsigned long long>(extent[d]));
  std::printf(", pitches");
  for (cuuint32_t d = 0; d + 1 < rank; ++d) std::printf(" %llu", static_cast<unsigned long long>(pitch[d]));
  std::printf(", box");
  for (cuuint32_t d = 0; d < rank; ++d) std::printf(" %u%s", box[d], step[d] == 1 ? "" : "?");
  std::printf(", swizzle %d\n", int(swizzle));
  return stub_result("cuTensorMapEncodeTiled") == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

extern "C" {
const char* cudaGetErrorString(cudaError_t error) { return error == cudaErrorInvalidValue ? "invalid argument" : "?"; }
const char* cudaGetErrorName(cudaError_t error) { return error == cudaErrorInvalidValue ? "cudaErrorInvalidValue" : "?"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = std::getenv("STUB_DEVICE") ? std::atoi(std::getenv("STUB_DEVICE")) : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 228 * 1024;  // shared memory of an SM90 multiprocessor
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  std::printf("attribute %d = %d\n", int(attribute), value);
  return stub_result("cudaFuncSetAttribute");
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  const cudaError_t error = stub_result("cudaGetDriverEntryPointByVersion");
  const bool known = error == cudaSuccess && std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *function = known ? reinterpret_cast<void*>(stub_encode) : nullptr;
  *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return error;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::printf("synchronize %p\n", static_cast<void*>(stream));
  return stub_result("cudaStreamSynchronize");
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t stream) {
  std::printf("record %p\n", static_cast<void*>(stream));
  return stub_result("cudaEventRecord");
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  std::printf("wait for event\n");
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 12.0f;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
}
