// For kernels that take Q, K and V in one tensor, or K and V.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

// [batch][seqlen][3][heads][head_dim], of a call with layout BSHD and as many keys and KV heads as
// queries and heads.
template <class T>
class PackedQkv {
 public:
  explicit PackedQkv(const Call& c)
      : x_packed(3 * static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.seqlen()) *
                 static_cast<std::size_t>(c.heads()) * static_cast<std::size_t>(c.head_dim())) {
    if (c.layout() != Layout::kBSHD) c.refuse("Q, K and V are packed from layout BSHD alone");
    const std::size_t rows =
        static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.seqlen());
    const std::size_t width = x_packed.size() / 3 / rows * sizeof(T);
    const T* const parts[] = {c.q<T>(), c.k<T>(), c.v<T>()};
    for (std::size_t i = 0; i < 3; ++i)
      check_cuda(cudaMemcpy2D(reinterpret_cast<unsigned char*>(x_packed.data()) + i * width,
                              3 * width, parts[i], width, width, rows, cudaMemcpyDeviceToDevice),
                 "pack Q, K and V");
  }
  T* data() const { return x_packed.data(); }

 private:
  DeviceBuffer<T> x_packed;
};

// [batch][seqlen_k][2][kv_heads][head_dim], of a call with layout BSHD.
template <class T>
class PackedKv {
 public:
  explicit PackedKv(const Call& c)
      : x_packed(2 * static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.seqlen_k()) *
                 static_cast<std::size_t>(c.kv_heads()) * static_cast<std::size_t>(c.head_dim())) {
    if (c.layout() != Layout::kBSHD) c.refuse("K and V are packed from layout BSHD alone");
    if (c.head_dim() != c.head_dim_v())
      c.refuse("K and V are packed where they are of one head_dim");
    const std::size_t rows =
        static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.seqlen_k());
    const std::size_t width = x_packed.size() / 2 / rows * sizeof(T);
    const T* const parts[] = {c.k<T>(), c.v<T>()};
    for (std::size_t i = 0; i < 2; ++i)
      check_cuda(cudaMemcpy2D(reinterpret_cast<unsigned char*>(x_packed.data()) + i * width,
                              2 * width, parts[i], width, width, rows, cudaMemcpyDeviceToDevice),
                 "pack K and V");
  }
  T* data() const { return x_packed.data(); }

 private:
  DeviceBuffer<T> x_packed;
};

}  // namespace attn_diag
