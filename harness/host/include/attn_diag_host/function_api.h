// Attributes of kernels and their occupancy.
#pragma once

#include "attn_diag_host/device_api.h"

struct cudaFuncAttributes {
  std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeClusterDimMustBeSet = 10,
  cudaFuncAttributeRequiredClusterWidth = 11,
  cudaFuncAttributeRequiredClusterHeight = 12,
  cudaFuncAttributeRequiredClusterDepth = 13,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 14,
};
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxShared = 100,
  cudaSharedmemCarveoutMaxL1 = 0,
};

inline constexpr unsigned cudaOccupancyDefault = 0, cudaOccupancyDisableCachingOverride = 1;

namespace attn_diag::host {
cudaError_t set_function_attribute(const void* kernel, cudaFuncAttribute attribute, int value);
}  // namespace attn_diag::host

// The executor does not know how many registers a device would use: numRegs is 32, at which they limit
// nothing; and static shared memory is that of the kernel's whole library, at least what the kernel uses.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
// More than 48 KiB of dynamic shared memory must be asked for, as on a device.
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute,
                                        int value) {
  return attn_diag::host::set_function_attribute(kernel, attribute, value);
}
cudaError_t cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache config);
cudaError_t cudaFuncSetSharedMemConfig(const void* kernel, cudaSharedMemConfig config);

// By threads, blocks and shared memory of a multiprocessor of compute capability 9.0.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                   int block_size,
                                                                   std::size_t dynamic_shared,
                                                                   unsigned flags);
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                                 int block_size,
                                                                 std::size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size,
                                                                dynamic_shared, 0);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* dynamic_shared,
                                                      const void* kernel, int blocks,
                                                      int block_size);

// The overloads for kernels themselves. A template's name with its arguments is one, too.
#define ATTN_DIAG_HOST_ENTRY reinterpret_cast<const void*>(kernel)
template <class... P>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(P...)) {
  return cudaFuncGetAttributes(attributes, ATTN_DIAG_HOST_ENTRY);
}
template <class... P>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute,
                                        int value) {
  return attn_diag::host::set_function_attribute(ATTN_DIAG_HOST_ENTRY, attribute, value);
}
template <class... P>
inline cudaError_t cudaFuncSetCacheConfig(void (*kernel)(P...), cudaFuncCache config) {
  return cudaFuncSetCacheConfig(ATTN_DIAG_HOST_ENTRY, config);
}
template <class... P>
inline cudaError_t cudaFuncSetSharedMemConfig(void (*kernel)(P...), cudaSharedMemConfig config) {
  return cudaFuncSetSharedMemConfig(ATTN_DIAG_HOST_ENTRY, config);
}
template <class... P>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, void (*kernel)(P...), int block_size, std::size_t dynamic_shared, unsigned flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, ATTN_DIAG_HOST_ENTRY,
                                                                block_size, dynamic_shared, flags);
}
template <class... P>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(P...),
                                                                 int block_size,
                                                                 std::size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, ATTN_DIAG_HOST_ENTRY,
                                                                block_size, dynamic_shared, 0);
}
template <class... P>
inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* dynamic_shared,
                                                             void (*kernel)(P...), int blocks,
                                                             int block_size) {
  return cudaOccupancyAvailableDynamicSMemPerBlock(dynamic_shared, ATTN_DIAG_HOST_ENTRY, blocks,
                                                   block_size);
}

// The block size with the most threads on a multiprocessor, the largest of several alike, and how many
// such blocks fill the device. `shared_of(block_size)` is the dynamic shared memory of a block.
template <class SharedOf, class... P>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid_size, int* block_size,
                                                                  void (*kernel)(P...),
                                                                  SharedOf shared_of,
                                                                  int block_size_limit = 0) {
  const int most = block_size_limit > 0 && block_size_limit < 1024 ? block_size_limit : 1024;
  int best_threads = 0, best_blocks = 0;
  *block_size = 0;
  for (int size = most; size > 0; size = (size - 1) / 32 * 32) {
    int blocks = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, ATTN_DIAG_HOST_ENTRY, size, shared_of(size), 0);
    if (error != cudaSuccess) return error;
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    best_blocks = blocks;
    *block_size = size;
  }
  int multiprocessors = 0;
  const cudaError_t error =
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *grid_size = best_blocks * multiprocessors;
  return error;
}
template <class... P>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size,
                                                      void (*kernel)(P...),
                                                      std::size_t dynamic_shared = 0,
                                                      int block_size_limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid_size, block_size, kernel, [=](int) { return dynamic_shared; }, block_size_limit);
}
template <class... P>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid_size, int* block_size,
                                                               void (*kernel)(P...),
                                                               std::size_t dynamic_shared = 0,
                                                               int block_size_limit = 0,
                                                               unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSize(grid_size, block_size, kernel, dynamic_shared,
                                            block_size_limit);
}
#undef ATTN_DIAG_HOST_ENTRY
