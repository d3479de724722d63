// torch::Tensor: memory with sizes, strides and an element type. What computes (fill_, to, contiguous,
// copy_) does so on the host, with copies from and to the device.
#pragma once

#include <climits>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "attn_diag_torch/accessor.h"
#include "attn_diag_torch/array_ref.h"
#include "attn_diag_torch/cuda_context.h"
#include "attn_diag_torch/scalar_type.h"

namespace at {

using c10::ArrayRef;
using c10::Device;
using c10::DeviceType;
using c10::IntArrayRef;
using c10::ScalarType;
using c10::TensorOptions;
using Scalar = double;

// What tensor.type() returns; for code from before ScalarType.
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(ScalarType type, bool cuda) : x_type(type), x_cuda(cuda) {}
  ScalarType scalarType() const { return x_type; }
  bool is_cuda() const { return x_cuda; }

 private:
  ScalarType x_type;
  bool x_cuda;
};
inline ScalarType scalar_type(const DeprecatedTypeProperties& type) { return type.scalarType(); }

class Tensor {
 public:
  Tensor() = default;
  // Shares `storage`; the first element is `offset` bytes into it.
  Tensor(std::shared_ptr<void> storage, std::size_t offset, std::vector<std::int64_t> sizes,
         std::vector<std::int64_t> strides, const TensorOptions& options)
      : x_storage(std::move(storage)),
        x_offset(offset),
        x_sizes(std::move(sizes)),
        x_strides(std::move(strides)),
        x_options(options) {}

  bool defined() const { return x_storage != nullptr; }
  std::int64_t dim() const { return static_cast<std::int64_t>(x_sizes.size()); }
  std::int64_t ndimension() const { return dim(); }
  std::int64_t size(std::int64_t d) const { return x_sizes[index_of(d)]; }
  std::int64_t stride(std::int64_t d) const { return x_strides[index_of(d)]; }
  IntArrayRef sizes() const { return x_sizes; }
  IntArrayRef strides() const { return x_strides; }
  std::int64_t numel() const {
    std::int64_t count = 1;
    for (const std::int64_t size : x_sizes) count *= size;
    return count;
  }
  std::size_t itemsize() const { return c10::elementSize(scalar_type()); }
  std::int64_t element_size() const { return static_cast<std::int64_t>(itemsize()); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(); }

  TensorOptions options() const { return x_options; }
  ScalarType dtype() const { return x_options.dtype(); }
  ScalarType scalar_type() const { return x_options.dtype(); }
  DeprecatedTypeProperties type() const { return {scalar_type(), is_cuda()}; }
  Device device() const { return x_options.device(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  int get_device() const { return device().index(); }
  bool requires_grad() const { return false; }
  const Tensor& detach() const { return *this; }
  bool is_floating_point() const {
    switch (scalar_type()) {
      case ScalarType::Half:
      case ScalarType::BFloat16:
      case ScalarType::Float:
      case ScalarType::Double:
        return true;
      default:
        return false;
    }
  }
  bool is_same_size(const Tensor& other) const { return sizes() == other.sizes(); }
  bool is_contiguous() const;

  void* data_ptr() const { return static_cast<char*>(x_storage.get()) + x_offset; }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  T* data_ptr() const {
    constexpr ScalarType kAsked = c10::CppTypeToScalarType<std::remove_const_t<T>>::value;
    TORCH_CHECK(scalar_type() == kAsked, "expected scalar type ", kAsked, " but found ",
                scalar_type());
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T, std::size_t N>
  TensorAccessor<T, N> accessor() const {
    check_dim(N);
    return {data_ptr<T>(), x_sizes.data(), x_strides.data()};
  }
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const {
    check_dim(N);
    TORCH_CHECK(numel() <= INT_MAX, "packed_accessor32 of ", numel(), " elements");
    return {data_ptr<T>(), x_sizes.data(), x_strides.data()};
  }
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const {
    check_dim(N);
    return {data_ptr<T>(), x_sizes.data(), x_strides.data()};
  }
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = std::int64_t>
  PackedTensorAccessor<T, N, Traits, Index> packed_accessor() const {
    check_dim(N);
    return {data_ptr<T>(), x_sizes.data(), x_strides.data()};
  }

  // Views; one size may be -1.
  Tensor view(IntArrayRef sizes) const;
  Tensor reshape(IntArrayRef sizes) const;
  Tensor flatten(std::int64_t first = 0, std::int64_t last = -1) const;
  Tensor transpose(std::int64_t a, std::int64_t b) const;
  Tensor t() const { return transpose(0, 1); }
  Tensor permute(IntArrayRef order) const;
  Tensor squeeze(std::int64_t d) const;
  Tensor unsqueeze(std::int64_t d) const;
  Tensor select(std::int64_t d, std::int64_t index) const;
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  Tensor narrow(std::int64_t d, std::int64_t start, std::int64_t length) const;
  Tensor slice(std::int64_t d, std::int64_t start, std::int64_t end) const {
    return narrow(d, start, (end < size(d) ? end : size(d)) - start);
  }
  Tensor expand(IntArrayRef sizes) const;

  Tensor contiguous() const;
  Tensor clone() const;
  Tensor to(const TensorOptions& options) const;
  Tensor to(ScalarType type) const { return to(x_options.dtype(type)); }
  Tensor to(Device device) const { return to(x_options.device(device)); }
  Tensor to(Device device, ScalarType type) const { return to(TensorOptions(type).device(device)); }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor cuda() const { return to(Device(c10::kCUDA)); }
  Tensor cpu() const { return to(Device(c10::kCPU)); }
  Tensor half() const { return to(ScalarType::Half); }
  Tensor bfloat16() const { return to(ScalarType::BFloat16); }

  // Both change what a const Tensor refers to, as PyTorch's do.
  const Tensor& fill_(Scalar value) const;
  const Tensor& zero_() const { return fill_(0); }
  const Tensor& copy_(const Tensor& from) const;
  // Over these dims; in double where PyTorch adds in fp32.
  Tensor sum(IntArrayRef dims, bool keepdim = false,
             std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor sum(std::int64_t d, bool keepdim = false,
             std::optional<ScalarType> dtype = std::nullopt) const {
    return sum(IntArrayRef(&d, 1), keepdim, dtype);
  }
  Tensor new_empty(IntArrayRef sizes) const;
  Tensor new_zeros(IntArrayRef sizes) const { return new_empty(sizes).zero_(); }
  // The value of a tensor with one element.
  template <class T>
  T item() const {
    TORCH_CHECK(numel() == 1, "item() of a tensor with ", numel(), " elements");
    return static_cast<T>(values()[0]);
  }

 private:
  std::size_t index_of(std::int64_t d) const {
    TORCH_CHECK(d >= -dim() && d < dim(), "Dimension out of range (expected to be in range of [",
                -dim(), ", ", dim() - 1, "], but got ", d, ")");
    return static_cast<std::size_t>(d < 0 ? d + dim() : d);
  }
  void check_dim(std::size_t n) const {
    TORCH_CHECK(dim() == static_cast<std::int64_t>(n), "expected ", n, " dims but tensor has ",
                dim());
  }
  Tensor with(std::size_t offset, std::vector<std::int64_t> sizes,
              std::vector<std::int64_t> strides) const {
    return Tensor(x_storage, x_offset + offset, std::move(sizes), std::move(strides), x_options);
  }
  std::vector<std::int64_t> resolved(IntArrayRef sizes) const;
  std::size_t extent() const;  // bytes from the first element to the end of the last
  // All elements, the last dimension fastest; and back.
  std::vector<double> values() const;
  void set_values(const std::vector<double>& values) const;

  std::shared_ptr<void> x_storage;
  std::size_t x_offset = 0;
  std::vector<std::int64_t> x_sizes, x_strides;
  TensorOptions x_options;
};

inline std::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Device>(tensor.device()) : std::nullopt;
}

}  // namespace at

#include "attn_diag_torch/factories.h"
#include "attn_diag_torch/tensor_values.h"
#include "attn_diag_torch/tensor_views.h"
