// For launch code that takes host memory and copies to the device itself.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

// q, k, v, o and lse of a call in host memory. store() brings o and lse to the device.
class HostTensors {
 public:
  explicit HostTensors(const Call& c) : x_call(c) {
    const auto bytes = [&](int heads, int rows, int dim) {
      return static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(heads) *
             static_cast<std::size_t>(rows) * static_cast<std::size_t>(dim) * size_of(c.dtype());
    };
    x_q = fetch(c.q(), bytes(c.heads(), c.seqlen_q(), c.head_dim()));
    x_k = fetch(c.k(), bytes(c.kv_heads(), c.seqlen_k(), c.head_dim()));
    x_v = fetch(c.v(), bytes(c.kv_heads(), c.seqlen_k(), c.head_dim_v()));
    // What the call does not write stays what it is on the device.
    x_o = fetch(c.o(), bytes(c.heads(), c.seqlen_q(), c.head_dim_v()));
    x_lse = fetch(c.lse(), bytes(c.heads(), c.seqlen_q(), 1) / size_of(c.dtype()) * sizeof(float));
  }

  template <class T>
  T* q() {
    return reinterpret_cast<T*>(x_q.data());
  }
  template <class T>
  T* k() {
    return reinterpret_cast<T*>(x_k.data());
  }
  template <class T>
  T* v() {
    return reinterpret_cast<T*>(x_v.data());
  }
  template <class T>
  T* o() {
    return reinterpret_cast<T*>(x_o.data());
  }
  float* lse() { return reinterpret_cast<float*>(x_lse.data()); }

  void store() const {
    check_cuda(cudaMemcpy(x_call.o(), x_o.data(), x_o.size(), cudaMemcpyHostToDevice), "store o");
    check_cuda(cudaMemcpy(x_call.lse(), x_lse.data(), x_lse.size(), cudaMemcpyHostToDevice),
               "store lse");
  }

 private:
  static std::vector<unsigned char> fetch(const void* device, std::size_t bytes) {
    std::vector<unsigned char> host(bytes);
    check_cuda(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost), "fetch a tensor");
    return host;
  }

  const Call& x_call;
  std::vector<unsigned char> x_q, x_k, x_v, x_o, x_lse;
};

}  // namespace attn_diag
