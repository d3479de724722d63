// The device, and what it can hold of a kernel.
#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>

#include "attn_diag_host/function_api.h"
#include "harness/host/device_model.h"
#include "harness/host/function_limits.h"
#include "harness/host/kernel_library.h"
#include "harness/host/last_error.h"
#include "harness/host/static_layout.h"
#include "harness/host/text.h"

namespace {

using namespace attn_diag::host;  // NOLINT: of the executor's own names

constexpr int kRegistersOfMultiprocessor = 64 * 1024;
constexpr int kVersion = 12040;

cudaError_t no_device(const char* call, int device) {
  return refuse(cudaErrorInvalidDevice, call,
                concat("there is device 0 only, not device ", device));
}

cudaDeviceProp properties() {
  cudaDeviceProp p{};
  std::strcpy(p.name, "attn-diag host executor (compute capability 9.0)");
  p.totalGlobalMem = kDeviceMemory;
  p.sharedMemPerBlock = kSharedOfBlock;
  p.sharedMemPerBlockOptin = kOptInSharedOfBlock;
  p.sharedMemPerMultiprocessor = kSharedOfMultiprocessor;
  p.reservedSharedMemPerBlock = kReservedSharedOfBlock;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegistersOfMultiprocessor;
  p.warpSize = 32;
  p.memPitch = INT_MAX;
  p.maxThreadsPerBlock = kThreadsOfBlock;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = INT_MAX;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = kThreadsOfMultiprocessor;
  p.maxBlocksPerMultiProcessor = kBlocksOfMultiprocessor;
  p.multiProcessorCount = kMultiprocessors;
  p.totalConstMem = kConstantMemory;
  p.major = 9;
  p.clockRate = 1980000;        // kHz
  p.memoryClockRate = 2619000;  // kHz
  p.memoryBusWidth = 5120;      // bits
  p.l2CacheSize = 50 << 20;
  p.persistingL2CacheMaxSize = p.l2CacheSize / 2;
  p.accessPolicyMaxWindowSize = 128 << 20;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.deviceOverlap = p.concurrentKernels = p.canMapHostMemory = p.unifiedAddressing = 1;
  p.asyncEngineCount = 3;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.managedMemory = p.concurrentManagedAccess = p.pageableMemoryAccess = 1;
  p.cooperativeLaunch = 1;
  p.memoryPoolsSupported = 1;
  return p;
}

std::mutex g_limits_mutex;
std::map<cudaLimit, std::size_t>& limits() {
  static std::map<cudaLimit, std::size_t> values{{cudaLimitStackSize, 1024},
                                                 {cudaLimitPrintfFifoSize, 1 << 20},
                                                 {cudaLimitMallocHeapSize, 8 << 20},
                                                 {cudaLimitDevRuntimeSyncDepth, 2},
                                                 {cudaLimitDevRuntimePendingLaunchCount, 2048},
                                                 {cudaLimitMaxL2FetchGranularity, 64},
                                                 {cudaLimitPersistingL2CacheSize, 0}};
  return values;
}

std::size_t static_shared(const void* kernel) {
  const KernelLibrary library = find_library(kernel);
  if (library.is_main_program) return 0;
  const StaticLayout& layout = static_layout(library);
  if (layout.variables.empty()) return layout.bytes();
  std::size_t bytes = 0;
  for (const StaticVariable& variable : layout.variables) bytes += variable.bytes;
  return bytes;
}

int blocks_of_multiprocessor(const void* kernel, int block_size, std::size_t dynamic_shared) {
  const std::size_t shared = static_shared(kernel) + dynamic_shared;
  if (block_size > kThreadsOfBlock || dynamic_shared > dynamic_shared_limit(kernel)) return 0;
  const int threads = (block_size + 31) / 32 * 32;
  const auto by_shared =
      static_cast<int>(kSharedOfMultiprocessor / (shared + kReservedSharedOfBlock));
  return std::min({kThreadsOfMultiprocessor / threads, kBlocksOfMultiprocessor, by_shared});
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : no_device("cudaSetDevice", device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int device) {
  if (device != 0) return no_device("cudaGetDeviceProperties", device);
  *to = properties();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return no_device("cudaDeviceGetAttribute", device);
  const cudaDeviceProp p = properties();
  switch (attribute) {
#define ATTN_DIAG_HOST_ATTRIBUTE(name, number, field) \
  case name:                                          \
    *value = static_cast<int>(p.field);               \
    return cudaSuccess;
    ATTN_DIAG_HOST_DEVICE_ATTRIBUTES(ATTN_DIAG_HOST_ATTRIBUTE)
#undef ATTN_DIAG_HOST_ATTRIBUTE
  }
  return refuse(cudaErrorInvalidValue, "cudaDeviceGetAttribute",
                concat("the host executor has no attribute ", static_cast<int>(attribute)));
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaDeviceReset() {
  cudaGetLastError();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (device != 0 || peer != 0)
    return no_device("cudaDeviceCanAccessPeer", device != 0 ? device : peer);
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return no_device("cudaDeviceEnablePeerAccess", peer);
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  const std::lock_guard lock(g_limits_mutex);
  const auto found = limits().find(limit);
  if (found == limits().end())
    return refuse(cudaErrorInvalidValue, "cudaDeviceSetLimit", "there is no such limit");
  found->second = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  const std::lock_guard lock(g_limits_mutex);
  const auto found = limits().find(limit);
  if (found == limits().end())
    return refuse(cudaErrorInvalidValue, "cudaDeviceGetLimit", "there is no such limit");
  *value = found->second;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (kernel == nullptr)
    return refuse(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes", "the kernel is null");
  cudaFuncAttributes a{};
  a.sharedSizeBytes = static_shared(kernel);
  a.maxThreadsPerBlock = kThreadsOfBlock;
  a.numRegs = kRegistersAssumed;
  a.ptxVersion = a.binaryVersion = 90;
  a.maxDynamicSharedSizeBytes = static_cast<int>(dynamic_shared_limit(kernel));
  a.preferredShmemCarveout = cudaSharedmemCarveoutDefault;
  *attributes = a;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                   int block_size,
                                                                   std::size_t dynamic_shared,
                                                                   unsigned) {
  if (block_size <= 0)
    return refuse(cudaErrorInvalidValue, "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                  concat("there are no blocks of ", block_size, " threads"));
  *blocks = blocks_of_multiprocessor(kernel, block_size, dynamic_shared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* dynamic_shared,
                                                      const void* kernel, int blocks, int) {
  if (blocks <= 0 || blocks > kBlocksOfMultiprocessor)
    return refuse(
        cudaErrorInvalidValue, "cudaOccupancyAvailableDynamicSMemPerBlock",
        concat("a multiprocessor holds 1 to ", kBlocksOfMultiprocessor, " blocks, not ", blocks));
  const std::size_t used = static_shared(kernel) + kReservedSharedOfBlock;
  const std::size_t share = kSharedOfMultiprocessor / static_cast<unsigned>(blocks);
  *dynamic_shared = share > used ? share - used : 0;
  return cudaSuccess;
}
