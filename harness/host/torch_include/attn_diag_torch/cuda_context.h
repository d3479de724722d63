// Streams, guards and checks of PyTorch's CUDA side, over the CUDA runtime.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "attn_diag_torch/scalar_type.h"

#define C10_CUDA_CHECK(call)                                          \
  do {                                                                \
    const cudaError_t attn_diag_error = (call);                       \
    TORCH_CHECK(attn_diag_error == cudaSuccess,                       \
                "CUDA error: ", cudaGetErrorString(attn_diag_error)); \
  } while (false)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define C10_CUDA_ERROR_HANDLED(call) (call)

namespace c10::cuda {

class CUDAStream {
 public:
  explicit CUDAStream(cudaStream_t stream = nullptr) : x_stream(stream) {}
  operator cudaStream_t() const { return x_stream; }
  cudaStream_t stream() const { return x_stream; }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(x_stream)); }
  DeviceIndex device_index() const { return 0; }

 private:
  cudaStream_t x_stream;
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return CUDAStream(); }
inline CUDAStream getDefaultCUDAStream(int = -1) { return CUDAStream(); }
inline int device_count() {
  int count = 0;
  C10_CUDA_CHECK(cudaGetDeviceCount(&count));
  return count;
}
inline int current_device() {
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

// While it lives, that device is the current one.
class CUDAGuard {
 public:
  explicit CUDAGuard(int device) : x_before(current_device()) {
    if (device >= 0) C10_CUDA_CHECK(cudaSetDevice(device));
  }
  explicit CUDAGuard(Device device) : CUDAGuard(device.index()) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() { static_cast<void>(cudaSetDevice(x_before)); }

 private:
  int x_before;
};
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device && device->is_cuda()) x_guard.emplace(*device);
  }

 private:
  std::optional<CUDAGuard> x_guard;
};

}  // namespace c10::cuda

namespace c10 {
using DeviceGuard = cuda::CUDAGuard;
using OptionalDeviceGuard = cuda::OptionalCUDAGuard;
}  // namespace c10

namespace at {
using c10::DeviceGuard;
using c10::OptionalDeviceGuard;
}  // namespace at

namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::current_device;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::OptionalCUDAGuard;

inline cudaDeviceProp* getDeviceProperties(int device) {
  static cudaDeviceProp properties = [device] {
    cudaDeviceProp read;
    C10_CUDA_CHECK(cudaGetDeviceProperties(&read, device < 0 ? 0 : device));
    return read;
  }();
  return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(current_device());
}
inline int warp_size() { return 32; }
}  // namespace at::cuda
