// Devices of the CUDA runtime: there is one, of compute capability 9.0.
#pragma once

#include "attn_diag_host/runtime_errors.h"

#include <cstddef>

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  std::size_t totalConstMem;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory;
  int computeMode, concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
  int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
  int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
  int globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
  int pageableMemoryAccess, concurrentManagedAccess, cooperativeLaunch;
  std::size_t sharedMemPerBlockOptin;
  int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int memoryPoolsSupported, clusterLaunch;
};

// attribute (with CUDA's value), and the field of the properties that it names
#define ATTN_DIAG_HOST_DEVICE_ATTRIBUTES(X)                                      \
  X(cudaDevAttrMaxThreadsPerBlock, 1, maxThreadsPerBlock)                        \
  X(cudaDevAttrMaxBlockDimX, 2, maxThreadsDim[0])                                \
  X(cudaDevAttrMaxBlockDimY, 3, maxThreadsDim[1])                                \
  X(cudaDevAttrMaxBlockDimZ, 4, maxThreadsDim[2])                                \
  X(cudaDevAttrMaxGridDimX, 5, maxGridSize[0])                                   \
  X(cudaDevAttrMaxGridDimY, 6, maxGridSize[1])                                   \
  X(cudaDevAttrMaxGridDimZ, 7, maxGridSize[2])                                   \
  X(cudaDevAttrMaxSharedMemoryPerBlock, 8, sharedMemPerBlock)                    \
  X(cudaDevAttrTotalConstantMemory, 9, totalConstMem)                            \
  X(cudaDevAttrWarpSize, 10, warpSize)                                           \
  X(cudaDevAttrMaxPitch, 11, memPitch)                                           \
  X(cudaDevAttrMaxRegistersPerBlock, 12, regsPerBlock)                           \
  X(cudaDevAttrClockRate, 13, clockRate)                                         \
  X(cudaDevAttrTextureAlignment, 14, textureAlignment)                           \
  X(cudaDevAttrMultiProcessorCount, 16, multiProcessorCount)                     \
  X(cudaDevAttrKernelExecTimeout, 17, kernelExecTimeoutEnabled)                  \
  X(cudaDevAttrIntegrated, 18, integrated)                                       \
  X(cudaDevAttrCanMapHostMemory, 19, canMapHostMemory)                           \
  X(cudaDevAttrComputeMode, 20, computeMode)                                     \
  X(cudaDevAttrConcurrentKernels, 31, concurrentKernels)                         \
  X(cudaDevAttrEccEnabled, 32, ECCEnabled)                                       \
  X(cudaDevAttrPciBusId, 33, pciBusID)                                           \
  X(cudaDevAttrPciDeviceId, 34, pciDeviceID)                                     \
  X(cudaDevAttrTccDriver, 35, tccDriver)                                         \
  X(cudaDevAttrMemoryClockRate, 36, memoryClockRate)                             \
  X(cudaDevAttrGlobalMemoryBusWidth, 37, memoryBusWidth)                         \
  X(cudaDevAttrL2CacheSize, 38, l2CacheSize)                                     \
  X(cudaDevAttrMaxThreadsPerMultiProcessor, 39, maxThreadsPerMultiProcessor)     \
  X(cudaDevAttrAsyncEngineCount, 40, asyncEngineCount)                           \
  X(cudaDevAttrUnifiedAddressing, 41, unifiedAddressing)                         \
  X(cudaDevAttrPciDomainId, 50, pciDomainID)                                     \
  X(cudaDevAttrComputeCapabilityMajor, 75, major)                                \
  X(cudaDevAttrComputeCapabilityMinor, 76, minor)                                \
  X(cudaDevAttrStreamPrioritiesSupported, 78, streamPrioritiesSupported)         \
  X(cudaDevAttrGlobalL1CacheSupported, 79, globalL1CacheSupported)               \
  X(cudaDevAttrLocalL1CacheSupported, 80, localL1CacheSupported)                 \
  X(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81, sharedMemPerMultiprocessor) \
  X(cudaDevAttrMaxRegistersPerMultiprocessor, 82, regsPerMultiprocessor)         \
  X(cudaDevAttrManagedMemory, 83, managedMemory)                                 \
  X(cudaDevAttrIsMultiGpuBoard, 84, isMultiGpuBoard)                             \
  X(cudaDevAttrPageableMemoryAccess, 88, pageableMemoryAccess)                   \
  X(cudaDevAttrConcurrentManagedAccess, 89, concurrentManagedAccess)             \
  X(cudaDevAttrCooperativeLaunch, 95, cooperativeLaunch)                         \
  X(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97, sharedMemPerBlockOptin)         \
  X(cudaDevAttrMaxBlocksPerMultiprocessor, 106, maxBlocksPerMultiProcessor)      \
  X(cudaDevAttrMaxPersistingL2CacheSize, 108, persistingL2CacheMaxSize)          \
  X(cudaDevAttrMaxAccessPolicyWindowSize, 109, accessPolicyMaxWindowSize)        \
  X(cudaDevAttrReservedSharedMemoryPerBlock, 111, reservedSharedMemPerBlock)     \
  X(cudaDevAttrMemoryPoolsSupported, 115, memoryPoolsSupported)                  \
  X(cudaDevAttrClusterLaunch, 120, clusterLaunch)

enum cudaDeviceAttr {
#define ATTN_DIAG_HOST_ATTRIBUTE(name, value, field) name = value,
  ATTN_DIAG_HOST_DEVICE_ATTRIBUTES(ATTN_DIAG_HOST_ATTRIBUTE)
#undef ATTN_DIAG_HOST_ATTRIBUTE
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
// Clears the last error. Memory stays: what the caller still holds of it can be used, and is not on a device.
cudaError_t cudaDeviceReset();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

inline constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1,
                          cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4,
                          cudaDeviceMapHost = 8;
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

enum cudaLimit {
  cudaLimitStackSize = 0,
  cudaLimitPrintfFifoSize = 1,
  cudaLimitMallocHeapSize = 2,
  cudaLimitDevRuntimeSyncDepth = 3,
  cudaLimitDevRuntimePendingLaunchCount = 4,
  cudaLimitMaxL2FetchGranularity = 5,
  cudaLimitPersistingL2CacheSize = 6,
};
// What is set is what is then got. No limit but the executor's own is kept.
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value);
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit);

// Hints, of no effect here.
enum cudaFuncCache {
  cudaFuncCachePreferNone = 0,
  cudaFuncCachePreferShared = 1,
  cudaFuncCachePreferL1 = 2,
  cudaFuncCachePreferEqual = 3,
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault = 0,
  cudaSharedMemBankSizeFourByte = 1,
  cudaSharedMemBankSizeEightByte = 2,
};
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
