#include "attn_diag_host/runtime_api.h"

#include <cstdlib>

#include "harness/host/last_error.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

constexpr std::size_t kDeviceAlignment = 256;             // what cudaMalloc promises
constexpr std::size_t kMostBytes = std::size_t{1} << 46;  // no device has as much

struct LastError {
  cudaError_t code = cudaSuccess;
  cudaError_t described = cudaSuccess;
  std::string message;
};
thread_local LastError g_last;

}  // namespace

cudaError_t set_last_error(cudaError_t error, std::string message) {
  g_last = {error, error, std::move(message)};
  return error;
}

}  // namespace attn_diag::host

using attn_diag::host::g_last;

cudaError_t cudaGetLastError() {
  const cudaError_t error = g_last.code;
  g_last.code = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return g_last.code; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorUnknown:
      break;
  }
  return "cudaErrorUnknown";
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  return error == g_last.described ? g_last.message.c_str() : cudaGetErrorName(error);
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  using attn_diag::host::kDeviceAlignment;
  const std::size_t rounded = (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
  const bool possible = bytes > 0 && bytes <= attn_diag::host::kMostBytes;
  *pointer = possible ? std::aligned_alloc(kDeviceAlignment, rounded) : nullptr;
  if (bytes == 0) return cudaSuccess;
  if (*pointer == nullptr)
    return attn_diag::host::set_last_error(
        cudaErrorMemoryAllocation,
        attn_diag::host::concat("cudaMalloc: no memory for ", bytes, " bytes"));
  std::memset(*pointer, 0xFF, rounded);
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  if (bytes > 0) std::memset(pointer, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(pointer, value, bytes);
}
