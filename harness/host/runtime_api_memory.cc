// Allocating and freeing.
#include "attn_diag_host/memory_api.h"
#include "harness/host/allocations.h"
#include "harness/host/device_model.h"
#include "harness/host/last_error.h"
#include "harness/host/text.h"

namespace {

using attn_diag::host::Allocations;
using attn_diag::host::concat;
using attn_diag::host::MemoryKind;
using attn_diag::host::refuse;

cudaError_t allocate(const char* call, void** pointer, std::size_t bytes, MemoryKind kind) {
  if (pointer == nullptr)
    return refuse(cudaErrorInvalidValue, call, "where to put the pointer is null");
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = Allocations::instance().allocate(bytes, kind);
  if (*pointer != nullptr) return cudaSuccess;
  return refuse(cudaErrorMemoryAllocation, call, concat("no memory for ", bytes, " bytes"));
}

cudaError_t end(const char* call, void* pointer, const char* kind_of_free) {
  if (pointer == nullptr) return cudaSuccess;
  const std::string problem = Allocations::instance().free(pointer, kind_of_free);
  return problem.empty() ? cudaSuccess : refuse(cudaErrorInvalidValue, call, problem);
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return allocate("cudaMalloc", pointer, bytes, MemoryKind::kDevice);
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t) {
  return allocate("cudaMallocAsync", pointer, bytes, MemoryKind::kDevice);
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
    return refuse(cudaErrorInvalidValue, "cudaMallocManaged",
                  "the flags are neither cudaMemAttachGlobal nor cudaMemAttachHost");
  return allocate("cudaMallocManaged", pointer, bytes, MemoryKind::kManaged);
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  constexpr std::size_t kPitch = 512;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return allocate("cudaMallocPitch", pointer, *pitch * height, MemoryKind::kDevice);
}

cudaError_t cudaFree(void* pointer) { return end("cudaFree", pointer, "cudaFree"); }

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  return end("cudaFreeAsync", pointer, "cudaFree");
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate("cudaHostAlloc", pointer, bytes, MemoryKind::kPageLocked);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned) {
  return allocate("cudaMallocHost", pointer, bytes, MemoryKind::kPageLocked);
}

cudaError_t cudaFreeHost(void* pointer) { return end("cudaFreeHost", pointer, "cudaFreeHost"); }

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  if (pointer == nullptr || bytes == 0)
    return refuse(cudaErrorInvalidValue, "cudaHostRegister", "there is no memory to register");
  const std::string problem = Allocations::instance().enter(pointer, bytes);
  return problem.empty()
             ? cudaSuccess
             : refuse(cudaErrorHostMemoryAlreadyRegistered, "cudaHostRegister", problem);
}

cudaError_t cudaHostUnregister(void* pointer) {
  const std::string problem = Allocations::instance().leave(pointer);
  return problem.empty() ? cudaSuccess
                         : refuse(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister", problem);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  const auto allocation = Allocations::instance().find(host);
  if (!allocation || allocation->freed || allocation->kind == MemoryKind::kDevice)
    return refuse(cudaErrorInvalidValue, "cudaHostGetDevicePointer",
                  concat(host, " is neither from cudaHostAlloc nor given to cudaHostRegister"));
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  void* const own = const_cast<void*>(pointer);
  const auto allocation = Allocations::instance().find(pointer);
  if (!allocation || allocation->freed) {
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, own};
    return cudaSuccess;
  }
  switch (allocation->kind) {
    case MemoryKind::kDevice:
      *attributes = {cudaMemoryTypeDevice, 0, own, nullptr};
      break;
    case MemoryKind::kManaged:
      *attributes = {cudaMemoryTypeManaged, 0, own, own};
      break;
    case MemoryKind::kPageLocked:
    case MemoryKind::kRegistered:
      *attributes = {cudaMemoryTypeHost, 0, own, own};
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  using attn_diag::host::kDeviceMemory;
  const std::size_t used = Allocations::instance().device_bytes();
  *total_bytes = kDeviceMemory;
  *free_bytes = used < kDeviceMemory ? kDeviceMemory - used : 0;
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, int, cudaStream_t) {
  return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
