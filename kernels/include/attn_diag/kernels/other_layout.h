// For kernels whose output has another layout than their inputs, such as Q, K and V in BHSD and o with the heads
// merged back, in BSHD; or whose log-sum-exp has another order of axes.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

// Room for o in the layout that the call has not; store() puts it where the call's o is.
template <class T>
class OutputInOtherLayout {
 public:
  explicit OutputInOtherLayout(const Call& c)
      : x_call(c),
        x_data(static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.heads()) *
               static_cast<std::size_t>(c.seqlen_q()) * static_cast<std::size_t>(c.head_dim_v())) {}

  T* data() const { return x_data.data(); }

  void store() const {
    const Call& c = x_call;
    check_cuda(cudaDeviceSynchronize(), "finish the kernel");
    const Layout other = c.layout() == Layout::kBSHD ? Layout::kBHSD : Layout::kBSHD;
    const Strides from = dense_strides(other, c.heads(), c.seqlen_q(), c.head_dim_v());
    const Strides to = c.o_strides();
    const std::size_t row = static_cast<std::size_t>(c.head_dim_v()) * sizeof(T);
    const auto pitch = [](std::int64_t stride) {
      return static_cast<std::size_t>(stride) * sizeof(T);
    };
    for (int b = 0; b < c.batch(); ++b)
      for (int h = 0; h < c.heads(); ++h)
        check_cuda(
            cudaMemcpy2D(c.o<T>() + b * to.batch + h * to.head, pitch(to.seq),
                         x_data.data() + b * from.batch + h * from.head, pitch(from.seq), row,
                         static_cast<std::size_t>(c.seqlen_q()), cudaMemcpyDeviceToDevice),
            "store the output");
  }

 private:
  const Call& x_call;
  DeviceBuffer<T> x_data;
};

// Room for a log-sum-exp of [heads][batch][seqlen_q], as kernels of batches one behind the other have it; store()
// puts it where the call's is.
class LseHeadsFirst {
 public:
  explicit LseHeadsFirst(const Call& c)
      : x_call(c),
        x_data(static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.heads()) *
               static_cast<std::size_t>(c.seqlen_q())) {}

  float* data() const { return x_data.data(); }

  void store() const {
    const Call& c = x_call;
    check_cuda(cudaDeviceSynchronize(), "finish the kernel");
    if (c.lse() == nullptr) return;
    const std::size_t row = static_cast<std::size_t>(c.seqlen_q()) * sizeof(float);
    for (int h = 0; h < c.heads(); ++h)
      check_cuda(cudaMemcpy2D(c.lse() + std::int64_t{h} * c.seqlen_q(),
                              static_cast<std::size_t>(c.heads()) * row,
                              x_data.data() + std::int64_t{h} * c.batch() * c.seqlen_q(), row, row,
                              static_cast<std::size_t>(c.batch()), cudaMemcpyDeviceToDevice),
                 "store the log-sum-exp");
  }

 private:
  const Call& x_call;
  DeviceBuffer<float> x_data;
};

}  // namespace attn_diag
