// TensorAccessor and its packed variants: a pointer with sizes and strides, indexed one dimension at a
// time, on host or device.
#pragma once

#include <cstdint>

#include "attn_diag_torch/macros.h"

namespace at {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

// What indexing yields: sizes and strides lie in the accessor that was indexed first.
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  C10_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : x_data(data), x_sizes(sizes), x_strides(strides) {}
  C10_HOST_DEVICE TensorAccessor<T, N - 1, Traits, Index> operator[](Index i) const {
    return {x_data + i * x_strides[0], x_sizes + 1, x_strides + 1};
  }
  C10_HOST_DEVICE Index size(int dim) const { return x_sizes[dim]; }
  C10_HOST_DEVICE Index stride(int dim) const { return x_strides[dim]; }
  C10_HOST_DEVICE PtrType data() const { return x_data; }

 private:
  PtrType x_data;
  const Index* x_sizes;
  const Index* x_strides;
};
template <class T, template <class> class Traits, class Index>
class TensorAccessor<T, 1, Traits, Index> {
 public:
  using PtrType = typename Traits<T>::PtrType;
  C10_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : x_data(data), x_sizes(sizes), x_strides(strides) {}
  C10_HOST_DEVICE T& operator[](Index i) const { return x_data[i * x_strides[0]]; }
  C10_HOST_DEVICE Index size(int dim) const { return x_sizes[dim]; }
  C10_HOST_DEVICE Index stride(int dim) const { return x_strides[dim]; }
  C10_HOST_DEVICE PtrType data() const { return x_data; }

 private:
  PtrType x_data;
  const Index* x_sizes;
  const Index* x_strides;
};

// With sizes and strides of its own, to be passed to a kernel by value.
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  GenericPackedTensorAccessor(PtrType data, const std::int64_t* sizes, const std::int64_t* strides)
      : x_data(data) {
    for (std::size_t i = 0; i < N; ++i) {
      x_sizes[i] = static_cast<Index>(sizes[i]);
      x_strides[i] = static_cast<Index>(strides[i]);
    }
  }
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(x_data, x_sizes, x_strides)[i];
  }
  C10_HOST_DEVICE Index size(int dim) const { return x_sizes[dim]; }
  C10_HOST_DEVICE Index stride(int dim) const { return x_strides[dim]; }
  C10_HOST_DEVICE PtrType data() const { return x_data; }

 private:
  PtrType x_data;
  Index x_sizes[N], x_strides[N];
};

template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, std::int32_t>;
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, std::int64_t>;
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;

}  // namespace at
