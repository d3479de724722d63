// What reads and writes elements. Part of tensor.h.
#pragma once

#include "attn_diag_torch/tensor.h"

namespace at {

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options);  // factories.h

namespace attn_diag {

// Calls visit(T{}) with the type of the elements.
template <class Visit>
void with_type(ScalarType type, Visit visit) {
  switch (type) {
#define ATTN_DIAG_TORCH_TYPE(T, name) \
  case ScalarType::name:              \
    return visit(T{});
    ATTN_DIAG_TORCH_SCALAR_TYPES(ATTN_DIAG_TORCH_TYPE)
#undef ATTN_DIAG_TORCH_TYPE
    case ScalarType::Undefined:
      break;
  }
  TORCH_CHECK(false, "the tensor is undefined");
}

// Calls visit(offset) for each element, in elements from the first, the last dimension fastest.
template <class Visit>
void for_each(IntArrayRef sizes, IntArrayRef strides, Visit visit) {
  std::vector<std::int64_t> index(sizes.size());
  std::int64_t count = 1, offset = 0;
  for (const std::int64_t size : sizes) count *= size;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(offset);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, c10::Half>)
    return c10::Half(__double2half(value));
  else if constexpr (std::is_same_v<T, c10::BFloat16>)
    return c10::BFloat16(__double2bfloat16(value));
  else
    return static_cast<T>(value);
}
template <class T>
double to_double(T value) {
  if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

}  // namespace attn_diag

inline std::size_t Tensor::extent() const {
  if (numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < x_sizes.size(); ++i) last += (x_sizes[i] - 1) * x_strides[i];
  return static_cast<std::size_t>(last + 1) * itemsize();
}

inline std::vector<double> Tensor::values() const {
  std::vector<char> bytes(extent());
  if (!bytes.empty())
    C10_CUDA_CHECK(cudaMemcpy(bytes.data(), data_ptr(), bytes.size(), cudaMemcpyDefault));
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(numel()));
  attn_diag::with_type(scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const T* elements = reinterpret_cast<const T*>(bytes.data());
    attn_diag::for_each(sizes(), strides(), [&](std::int64_t at) {
      result.push_back(attn_diag::to_double(elements[at]));
    });
  });
  return result;
}

inline void Tensor::set_values(const std::vector<double>& values) const {
  std::vector<char> bytes(extent());
  if (bytes.empty()) return;
  // What lies between the elements stays as it is.
  C10_CUDA_CHECK(cudaMemcpy(bytes.data(), data_ptr(), bytes.size(), cudaMemcpyDefault));
  attn_diag::with_type(scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    T* elements = reinterpret_cast<T*>(bytes.data());
    std::size_t i = 0;
    attn_diag::for_each(sizes(), strides(), [&](std::int64_t at) {
      elements[at] = attn_diag::from_double<T>(values[i++]);
    });
  });
  C10_CUDA_CHECK(cudaMemcpy(data_ptr(), bytes.data(), bytes.size(), cudaMemcpyDefault));
}

inline const Tensor& Tensor::fill_(Scalar value) const {
  set_values(std::vector<double>(static_cast<std::size_t>(numel()), value));
  return *this;
}

// Values pass through double: exact for all types but integers beyond 2^53.
inline const Tensor& Tensor::copy_(const Tensor& from) const {
  set_values((is_same_size(from) ? from : from.expand(sizes())).values());
  return *this;
}

inline Tensor Tensor::sum(IntArrayRef dims, bool keepdim, std::optional<ScalarType> dtype) const {
  std::vector<bool> is_summed(x_sizes.size());
  for (const std::int64_t d : dims) is_summed[index_of(d)] = true;
  std::vector<std::int64_t> kept, all = x_sizes;
  for (std::size_t d = 0; d < all.size(); ++d) {
    if (is_summed[d]) all[d] = 1;
    if (!is_summed[d] || keepdim) kept.push_back(all[d]);
  }
  // An element's place among the sums.
  std::vector<std::int64_t> strides(all.size());
  std::int64_t count = 1;
  for (std::size_t d = all.size(); d-- > 0; count *= all[d]) strides[d] = is_summed[d] ? 0 : count;
  std::vector<double> sums(static_cast<std::size_t>(count));
  const std::vector<double> elements = values();
  std::size_t i = 0;
  attn_diag::for_each(sizes(), strides, [&](std::int64_t at) {
    sums[static_cast<std::size_t>(at)] += elements[i++];
  });
  const Tensor out = empty(kept, x_options.dtype(dtype.value_or(scalar_type())));
  out.set_values(sums);
  return out;
}

inline Tensor Tensor::new_empty(IntArrayRef sizes) const { return empty(sizes, x_options); }

inline Tensor Tensor::clone() const { return new_empty(sizes()).copy_(*this); }

inline Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

inline Tensor Tensor::to(const TensorOptions& options) const {
  if (options.dtype() == scalar_type() && options.device() == device()) return *this;
  return empty(sizes(), options).copy_(*this);
}

}  // namespace at
