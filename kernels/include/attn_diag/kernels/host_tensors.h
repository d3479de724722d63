// For launch code that takes host memory and copies to the device itself.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

// q, k, v, o and lse of a call in host memory. T is as in Call, and throws alike. store() brings o and lse to the device.
class HostTensors {
 public:
  explicit HostTensors(const Call& c) : x_call(c) {
    const std::size_t element = size_of(c.dtype());
    x_q = fetch(c.q(), cells(c.heads(), c.seqlen_q(), c.head_dim()) * element);
    x_k = fetch(c.k(), cells(c.kv_heads(), c.seqlen_k(), c.head_dim()) * element);
    x_v = fetch(c.v(), cells(c.kv_heads(), c.seqlen_k(), c.head_dim_v()) * element);
    x_lse = fetch(c.lse(), cells(c.heads(), c.seqlen_q(), 1) * sizeof(float));
  }

  template <class T>
  T* q() {
    x_call.q<T>();
    return reinterpret_cast<T*>(x_q.data());
  }
  template <class T>
  T* k() {
    x_call.k<T>();
    return reinterpret_cast<T*>(x_k.data());
  }
  template <class T>
  T* v() {
    x_call.v<T>();
    return reinterpret_cast<T*>(x_v.data());
  }
  // What the call does not write stays what it is on the device.
  template <class T>
  T* o() {
    if (x_o.empty()) {
      x_device_o = x_call.o<T>();
      const std::size_t element =
          x_device_o == x_call.o() ? size_of(x_call.dtype()) : sizeof(float);
      x_o = fetch(x_device_o,
                  cells(x_call.heads(), x_call.seqlen_q(), x_call.head_dim_v()) * element);
    }
    return reinterpret_cast<T*>(x_o.data());
  }
  float* lse() { return reinterpret_cast<float*>(x_lse.data()); }

  void store() const {
    if (!x_o.empty())
      check_cuda(cudaMemcpy(x_device_o, x_o.data(), x_o.size(), cudaMemcpyHostToDevice), "store o");
    check_cuda(cudaMemcpy(x_call.lse(), x_lse.data(), x_lse.size(), cudaMemcpyHostToDevice),
               "store lse");
  }

 private:
  std::size_t cells(int heads, int rows, int dim) const {
    return static_cast<std::size_t>(x_call.batch()) * static_cast<std::size_t>(heads) *
           static_cast<std::size_t>(rows) * static_cast<std::size_t>(dim);
  }

  static std::vector<unsigned char> fetch(const void* device, std::size_t bytes) {
    std::vector<unsigned char> host(bytes);
    check_cuda(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost), "fetch a tensor");
    return host;
  }

  const Call& x_call;
  std::vector<unsigned char> x_q, x_k, x_v, x_o, x_lse;
  void* x_device_o = nullptr;
};

}  // namespace attn_diag
