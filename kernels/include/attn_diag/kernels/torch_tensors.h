// For host functions of PyTorch extensions, which take and return tensors. Needs PyTorch's headers, or
// attn-diag's stand-in for them.
#pragma once

#include <torch/extension.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

inline torch::ScalarType torch_type(DType type) {
  return type == DType::kFp16   ? torch::kHalf
         : type == DType::kBf16 ? torch::kBFloat16
                                : torch::kFloat;
}

// A tensor of four axes over memory of the call, in the order of its layout.
inline torch::Tensor torch_tensor(const Call& c, void* memory, int heads, int rows, int dim) {
  const auto options = torch::TensorOptions().dtype(torch_type(c.dtype())).device(torch::kCUDA);
  return c.layout() == Layout::kBHSD
             ? torch::from_blob(memory, {c.batch(), heads, rows, dim}, options)
             : torch::from_blob(memory, {c.batch(), rows, heads, dim}, options);
}
inline torch::Tensor torch_q(const Call& c) {
  return torch_tensor(c, c.q(), c.heads(), c.seqlen_q(), c.head_dim());
}
inline torch::Tensor torch_k(const Call& c) {
  return torch_tensor(c, c.k(), c.kv_heads(), c.seqlen_k(), c.head_dim());
}
inline torch::Tensor torch_v(const Call& c) {
  return torch_tensor(c, c.v(), c.kv_heads(), c.seqlen_k(), c.head_dim_v());
}
// Over the memory of the outputs, for functions that are given them.
inline torch::Tensor torch_o(const Call& c) {
  return torch_tensor(c, c.o(), c.heads(), c.seqlen_q(), c.head_dim_v());
}
inline torch::Tensor torch_lse(const Call& c) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA);
  return torch::from_blob(c.lse(), {c.batch(), c.heads(), c.seqlen_q()}, options);
}

// For functions that return them. Throws where number or type of elements is not the output's.
inline void store(const torch::Tensor& from, void* to, std::size_t elements, torch::ScalarType type,
                  const char* what) {
  if (static_cast<std::size_t>(from.numel()) != elements)
    throw std::runtime_error(std::string(what) + " has " + std::to_string(from.numel()) +
                             " elements, expected " + std::to_string(elements));
  if (from.scalar_type() != type)
    throw std::runtime_error(std::string(what) + " has another type of elements than expected");
  const torch::Tensor dense = from.contiguous();
  check_cuda(
      cudaMemcpy(to, dense.data_ptr(), elements * static_cast<std::size_t>(dense.element_size()),
                 cudaMemcpyDeviceToDevice),
      "store an output");
}
inline void store_o(const Call& c, const torch::Tensor& o) {
  const auto rows = static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.heads()) *
                    static_cast<std::size_t>(c.seqlen_q());
  store(o, c.o(), rows * static_cast<std::size_t>(c.head_dim_v()), torch_type(c.dtype()),
        "the returned output");
}
inline void store_lse(const Call& c, const torch::Tensor& lse) {
  const auto rows = static_cast<std::size_t>(c.batch()) * static_cast<std::size_t>(c.heads()) *
                    static_cast<std::size_t>(c.seqlen_q());
  store(lse, c.lse(), rows, torch::kFloat, "the returned lse");
}

}  // namespace attn_diag
