// Views. Part of tensor.h.
#pragma once

#include "attn_diag_torch/tensor.h"

namespace at {

inline std::vector<std::int64_t> contiguous_strides(IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i] > 0 ? sizes[i] : 1;
  }
  return strides;
}

inline bool Tensor::is_contiguous() const {
  const std::vector<std::int64_t> packed = contiguous_strides(x_sizes);
  for (std::size_t i = 0; i < x_sizes.size(); ++i)
    if (x_sizes[i] != 1 && x_strides[i] != packed[i] && numel() != 0) return false;
  return true;
}

inline std::vector<std::int64_t> Tensor::resolved(IntArrayRef sizes) const {
  std::vector<std::int64_t> result = sizes.vec();
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    TORCH_CHECK(result[i] >= 0 || (result[i] == -1 && open < 0),
                "a shape has one -1 at most: ", sizes);
    if (result[i] == -1)
      open = static_cast<std::int64_t>(i);
    else
      known *= result[i];
  }
  if (open >= 0 && known != 0) {
    result[static_cast<std::size_t>(open)] = numel() / known;
    known *= numel() / known;
  }
  TORCH_CHECK(known == numel(), "shape '", sizes, "' is invalid for input of size ", numel());
  return result;
}

inline Tensor Tensor::view(IntArrayRef sizes) const {
  TORCH_CHECK(is_contiguous(), "view of a tensor that is not contiguous (strides ", strides(),
              "): use reshape, which copies it");
  const std::vector<std::int64_t> shape = resolved(sizes);
  return with(0, shape, contiguous_strides(shape));
}

inline Tensor Tensor::reshape(IntArrayRef sizes) const { return contiguous().view(sizes); }

inline Tensor Tensor::flatten(std::int64_t first, std::int64_t last) const {
  const std::size_t from = index_of(first), to = index_of(last);
  TORCH_CHECK(from <= to, "flatten() of dimensions ", first, " to ", last);
  std::vector<std::int64_t> shape(x_sizes.begin(),
                                  x_sizes.begin() + static_cast<std::ptrdiff_t>(from));
  std::int64_t product = 1;
  for (std::size_t i = from; i <= to; ++i) product *= x_sizes[i];
  shape.push_back(product);
  for (std::size_t i = to + 1; i < x_sizes.size(); ++i) shape.push_back(x_sizes[i]);
  return reshape(shape);
}

inline Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  std::vector<std::int64_t> sizes = x_sizes, strides = x_strides;
  std::swap(sizes[index_of(a)], sizes[index_of(b)]);
  std::swap(strides[index_of(a)], strides[index_of(b)]);
  return with(0, std::move(sizes), std::move(strides));
}

inline Tensor Tensor::permute(IntArrayRef order) const {
  TORCH_CHECK(order.size() == x_sizes.size(), "permute(", order, ") of ", dim(), " dimensions");
  std::vector<std::int64_t> sizes, strides;
  std::vector<bool> seen(x_sizes.size());
  for (const std::int64_t d : order) {
    const std::size_t at = index_of(d);
    TORCH_CHECK(!seen[at], "permute(", order, ") repeats a dimension");
    seen[at] = true;
    sizes.push_back(x_sizes[at]);
    strides.push_back(x_strides[at]);
  }
  return with(0, std::move(sizes), std::move(strides));
}

inline Tensor Tensor::squeeze(std::int64_t d) const {
  const auto at = static_cast<std::ptrdiff_t>(index_of(d));
  std::vector<std::int64_t> sizes = x_sizes, strides = x_strides;
  if (size(d) == 1) {
    sizes.erase(sizes.begin() + at);
    strides.erase(strides.begin() + at);
  }
  return with(0, std::move(sizes), std::move(strides));
}

inline Tensor Tensor::unsqueeze(std::int64_t d) const {
  TORCH_CHECK(d >= -dim() - 1 && d <= dim(), "unsqueeze(", d, ") of ", dim(), " dimensions");
  const auto at = static_cast<std::ptrdiff_t>(d < 0 ? d + dim() + 1 : d);
  std::vector<std::int64_t> sizes = x_sizes, strides = x_strides;
  const std::int64_t stride =
      at < dim() ? sizes[static_cast<std::size_t>(at)] * strides[static_cast<std::size_t>(at)] : 1;
  sizes.insert(sizes.begin() + at, 1);
  strides.insert(strides.begin() + at, stride);
  return with(0, std::move(sizes), std::move(strides));
}

inline Tensor Tensor::narrow(std::int64_t d, std::int64_t start, std::int64_t length) const {
  const std::size_t at = index_of(d);
  TORCH_CHECK(start >= 0 && length >= 0 && start + length <= x_sizes[at], "elements ", start,
              " to ", start + length, " of a dimension of size ", x_sizes[at]);
  std::vector<std::int64_t> sizes = x_sizes;
  sizes[at] = length;
  return with(static_cast<std::size_t>(start * x_strides[at]) * itemsize(), std::move(sizes),
              x_strides);
}

inline Tensor Tensor::select(std::int64_t d, std::int64_t index) const {
  const std::int64_t from = index < 0 ? index + size(d) : index;
  return narrow(d, from, 1).squeeze(d);
}

inline Tensor Tensor::expand(IntArrayRef sizes) const {
  TORCH_CHECK(sizes.size() >= x_sizes.size(), "expand(", sizes, ") of ", dim(), " dimensions");
  const std::size_t added = sizes.size() - x_sizes.size();
  std::vector<std::int64_t> shape = sizes.vec(), strides(sizes.size());
  for (std::size_t i = added; i < shape.size(); ++i) {
    const std::int64_t own = x_sizes[i - added];
    if (shape[i] == -1) shape[i] = own;
    TORCH_CHECK(shape[i] == own || own == 1, "expand(", sizes, ") of sizes ", this->sizes());
    strides[i] = shape[i] == own ? x_strides[i - added] : 0;
  }
  return with(0, std::move(shape), std::move(strides));
}

}  // namespace at
