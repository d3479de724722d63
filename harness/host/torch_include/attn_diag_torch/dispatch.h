// AT_DISPATCH_*: calls a lambda in which scalar_t is the element type.
#pragma once

#include "attn_diag_torch/scalar_type.h"

#define AT_DISPATCH_CASE(type, ...)                                            \
  case type: {                                                                 \
    using scalar_t [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<type>; \
    return __VA_ARGS__();                                                      \
  }
#define AT_DISPATCH_SWITCH(type, name, ...)                                                        \
  [&] {                                                                                            \
    const ::c10::ScalarType attn_diag_type = ::at::scalar_type(type);                              \
    switch (attn_diag_type) {                                                                      \
      __VA_ARGS__                                                                                  \
      default:                                                                                     \
        TORCH_CHECK(false, '"', name, "\" not implemented for '", ::c10::toString(attn_diag_type), \
                    "'");                                                                          \
    }                                                                                              \
    ATTN_DIAG_TORCH_UNREACHABLE                                                                    \
  }()
#define ATTN_DIAG_TORCH_UNREACHABLE __builtin_unreachable();
#define AT_PRIVATE_CASE_TYPE(name, type, ...) AT_DISPATCH_CASE(type, __VA_ARGS__)

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)               \
  AT_DISPATCH_CASE(::c10::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...)     \
  AT_DISPATCH_CASE(::c10::ScalarType::Half, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)             \
  AT_DISPATCH_CASE(::c10::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Short, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(one, type, name, ...) \
  AT_DISPATCH_SWITCH(                                        \
      type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(one, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::c10::ScalarType::Half, type, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(one, two, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name,                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)  \
                         AT_DISPATCH_CASE(one, __VA_ARGS__) AT_DISPATCH_CASE(two, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...)                    \
  AT_DISPATCH_SWITCH(type, name,                                  \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
                         AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))

namespace at {

using c10::ScalarType;

inline ScalarType scalar_type(ScalarType type) { return type; }

// The type of sums: of 16-bit floats, float.
template <class T, bool kOnDevice>
struct AccumulateType {
  using type = T;
};
template <bool kOnDevice>
struct AccumulateType<Half, kOnDevice> {
  using type = float;
};
template <bool kOnDevice>
struct AccumulateType<BFloat16, kOnDevice> {
  using type = float;
};
template <bool kOnDevice>
struct AccumulateType<float, kOnDevice> {
  using type = std::conditional_t<kOnDevice, float, double>;
};
template <class T, bool kOnDevice>
using acc_type = typename AccumulateType<T, kOnDevice>::type;
template <class T>
using opmath_type = acc_type<T, true>;

template <class T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace at
