// Functions that make tensors. Part of tensor.h.
#pragma once

#include <functional>

#include "attn_diag_torch/tensor.h"

namespace at {

std::vector<std::int64_t> contiguous_strides(IntArrayRef sizes);

// Memory that nothing promises the content of; on the host executor it is NaN.
inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}) {
  std::size_t bytes = c10::elementSize(options.dtype());
  for (const std::int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
    bytes *= static_cast<std::size_t>(size);
  }
  if (bytes == 0) bytes = 1;
  std::shared_ptr<void> storage;
  if (options.device().is_cuda()) {
    void* memory = nullptr;
    C10_CUDA_CHECK(cudaMalloc(&memory, bytes));
    storage = {memory, [](void* pointer) { static_cast<void>(cudaFree(pointer)); }};
  } else {
    storage = {std::malloc(bytes), [](void* pointer) { std::free(pointer); }};
    TORCH_CHECK(storage != nullptr, "no memory for ", bytes, " bytes");
  }
  return Tensor(std::move(storage), 0, sizes.vec(), contiguous_strides(sizes), options);
}
inline Tensor full(IntArrayRef sizes, Scalar value, const TensorOptions& options = {}) {
  return empty(sizes, options).fill_(value);
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  return full(sizes, 0, options);
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) {
  return full(sizes, 1, options);
}
// Contiguous, whatever the strides of `like` are.
inline Tensor empty_like(const Tensor& like) { return empty(like.sizes(), like.options()); }
inline Tensor empty_like(const Tensor& like, const TensorOptions& options) {
  return empty(like.sizes(), options);
}
inline Tensor full_like(const Tensor& like, Scalar value) { return empty_like(like).fill_(value); }
inline Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
inline Tensor zeros_like(const Tensor& like, const TensorOptions& options) {
  return empty_like(like, options).zero_();
}
inline Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

// Memory of the caller's, which must outlive the tensor; `deleter` is called when nothing refers to it.
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  return Tensor({data, deleter}, 0, sizes.vec(), strides.vec(), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  return from_blob(
      data, sizes, strides, [](void*) {}, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, contiguous_strides(sizes), deleter, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, contiguous_strides(sizes), options);
}

}  // namespace at
