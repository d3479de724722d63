// Device memory of an adapter's own, for as long as a call takes.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "attn_diag/kernels/words.h"

namespace attn_diag {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    fail<std::runtime_error>("cannot %s: %s", what, cudaGetErrorString(error));
}

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : x_count(count) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, count * sizeof(T)), "allocate device memory");
    x_data = static_cast<T*>(memory);
  }
  // With these values: as `DeviceBuffer<int> lens(std::vector<int>(batch, keys))`.
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) {
    store(values);
  }
  ~DeviceBuffer() { cudaFree(x_data); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return x_data; }
  std::size_t size() const { return x_count; }
  void fill(T value) const { store(std::vector<T>(x_count, value)); }

 private:
  void store(const std::vector<T>& values) const {
    check_cuda(cudaMemcpy(x_data, values.data(), x_count * sizeof(T), cudaMemcpyHostToDevice),
               "fill device memory");
  }

  std::size_t x_count;
  T* x_data = nullptr;
};

}  // namespace attn_diag
