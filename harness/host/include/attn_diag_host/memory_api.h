// Memory of the CUDA runtime. Device, managed and page-locked memory are all host memory, and every
// call is done when it returns.
#pragma once

#include "attn_diag_host/runtime_errors.h"
#include "attn_diag_host/stream_types.h"

#include <cstddef>

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1,
                          cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4;
inline constexpr unsigned cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1,
                          cudaHostRegisterMapped = 2, cudaHostRegisterIoMemory = 4,
                          cudaHostRegisterReadOnly = 8;
inline constexpr unsigned cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4;

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3,
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly = 2,
  cudaMemAdviseSetPreferredLocation = 3,
  cudaMemAdviseUnsetPreferredLocation = 4,
  cudaMemAdviseSetAccessedBy = 5,
  cudaMemAdviseUnsetAccessedBy = 6,
};

// Memory that is allocated is filled with 0xFF bytes (NaN), as nothing promises more than that it is
// there. To free what is not the start of a live allocation of that kind is cudaErrorInvalidValue.
cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes,
                              unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes,
                           unsigned flags = cudaHostAllocDefault);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* pointer);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);

// What lies outside the allocation that it starts in, and a kind that contradicts what is known of the
// pointers, is cudaErrorInvalidValue. Memory that the runtime did not allocate passes for either side.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width,
                         std::size_t height);
cudaError_t cudaMemset2DAsync(void* pointer, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream = nullptr);
// Hints, of no effect here.
cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, int device,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
                          int device);

#define ATTN_DIAG_HOST_TYPED(name, Parameters, Arguments) \
  template <class T>                                      \
  inline cudaError_t name Parameters {                    \
    void* memory = nullptr;                               \
    const cudaError_t error = name Arguments;             \
    *pointer = static_cast<T*>(memory);                   \
    return error;                                         \
  }
ATTN_DIAG_HOST_TYPED(cudaMalloc, (T * *pointer, std::size_t bytes), (&memory, bytes))
ATTN_DIAG_HOST_TYPED(cudaMallocAsync, (T * *pointer, std::size_t bytes, cudaStream_t stream),
                     (&memory, bytes, stream))
ATTN_DIAG_HOST_TYPED(cudaMallocManaged,
                     (T * *pointer, std::size_t bytes, unsigned flags = cudaMemAttachGlobal),
                     (&memory, bytes, flags))
ATTN_DIAG_HOST_TYPED(cudaMallocPitch,
                     (T * *pointer, std::size_t* pitch, std::size_t width, std::size_t height),
                     (&memory, pitch, width, height))
ATTN_DIAG_HOST_TYPED(cudaHostAlloc, (T * *pointer, std::size_t bytes, unsigned flags),
                     (&memory, bytes, flags))
ATTN_DIAG_HOST_TYPED(cudaMallocHost,
                     (T * *pointer, std::size_t bytes, unsigned flags = cudaHostAllocDefault),
                     (&memory, bytes, flags))
ATTN_DIAG_HOST_TYPED(cudaHostGetDevicePointer, (T * *pointer, void* host, unsigned flags),
                     (&memory, host, flags))
#undef ATTN_DIAG_HOST_TYPED

namespace attn_diag::host {
// A copy of `bytes` at `offset` of a variable of `size`, to or from it.
cudaError_t copy_symbol(const char* call, void* to, const void* from, std::size_t size,
                        std::size_t bytes, std::size_t offset);
}  // namespace attn_diag::host

// A __device__ or __constant__ variable is an ordinary one.
template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes,
                                      std::size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
  auto* memory = reinterpret_cast<unsigned char*>(
      &const_cast<char&>(reinterpret_cast<const volatile char&>(symbol)));
  return attn_diag::host::copy_symbol("cudaMemcpyToSymbol", memory + offset, from, sizeof(T), bytes,
                                      offset);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, std::size_t bytes,
                                           std::size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                           cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes,
                                        std::size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  const auto* memory = &reinterpret_cast<const char&>(symbol);
  return attn_diag::host::copy_symbol("cudaMemcpyFromSymbol", to, memory + offset, sizeof(T), bytes,
                                      offset);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes,
                                             std::size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                             cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <class P, class T>
inline cudaError_t cudaGetSymbolAddress(P** pointer, const T& symbol) {
  *pointer = reinterpret_cast<P*>(&const_cast<char&>(reinterpret_cast<const char&>(symbol)));
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(std::size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}
