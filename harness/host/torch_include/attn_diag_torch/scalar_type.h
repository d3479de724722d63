// Element types, devices, and the options that a tensor is made with.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "attn_diag_torch/error.h"
#include "attn_diag_torch/small_floats.h"

// element type, PyTorch's name for it
#define ATTN_DIAG_TORCH_SCALAR_TYPES(X) \
  X(std::uint8_t, Byte)                 \
  X(std::int8_t, Char)                  \
  X(std::int16_t, Short)                \
  X(std::int32_t, Int)                  \
  X(std::int64_t, Long)                 \
  X(c10::Half, Half)                    \
  X(float, Float)                       \
  X(double, Double)                     \
  X(bool, Bool)                         \
  X(c10::BFloat16, BFloat16)            \
  X(std::uint16_t, UInt16)              \
  X(std::uint32_t, UInt32)              \
  X(std::uint64_t, UInt64)

namespace c10 {

enum class ScalarType : std::int8_t {
#define ATTN_DIAG_TORCH_TYPE(T, name) name,
  ATTN_DIAG_TORCH_SCALAR_TYPES(ATTN_DIAG_TORCH_TYPE)
#undef ATTN_DIAG_TORCH_TYPE
      Undefined,
};

#define ATTN_DIAG_TORCH_TYPE(T, name) inline constexpr ScalarType k##name = ScalarType::name;
ATTN_DIAG_TORCH_SCALAR_TYPES(ATTN_DIAG_TORCH_TYPE)
#undef ATTN_DIAG_TORCH_TYPE
inline constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt,
                            kInt64 = kLong, kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble;

template <class T>
struct CppTypeToScalarType;
namespace impl {
template <ScalarType kType>
struct ScalarTypeToCPPType;
template <ScalarType kType>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<kType>::type;
}  // namespace impl
#define ATTN_DIAG_TORCH_TYPE(T, name)                     \
  template <>                                             \
  struct CppTypeToScalarType<T> {                         \
    static constexpr ScalarType value = ScalarType::name; \
  };                                                      \
  template <>                                             \
  struct impl::ScalarTypeToCPPType<ScalarType::name> {    \
    using type = T;                                       \
  };
ATTN_DIAG_TORCH_SCALAR_TYPES(ATTN_DIAG_TORCH_TYPE)
#undef ATTN_DIAG_TORCH_TYPE

inline const char* toString(ScalarType type) {
  switch (type) {
#define ATTN_DIAG_TORCH_TYPE(T, name) \
  case ScalarType::name:              \
    return #name;
    ATTN_DIAG_TORCH_SCALAR_TYPES(ATTN_DIAG_TORCH_TYPE)
#undef ATTN_DIAG_TORCH_TYPE
    case ScalarType::Undefined:
      break;
  }
  return "Undefined";
}
inline std::size_t elementSize(ScalarType type) {
  switch (type) {
#define ATTN_DIAG_TORCH_TYPE(T, name) \
  case ScalarType::name:              \
    return sizeof(T);
    ATTN_DIAG_TORCH_SCALAR_TYPES(ATTN_DIAG_TORCH_TYPE)
#undef ATTN_DIAG_TORCH_TYPE
    case ScalarType::Undefined:
      break;
  }
  return 0;
}
inline std::ostream& operator<<(std::ostream& to, ScalarType type) { return to << toString(type); }

enum class DeviceType : std::int8_t { CPU, CUDA };
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = std::int8_t;

class Device {
 public:
  Device(DeviceType type, int index = -1) : x_type(type), x_index(index) {}
  // "cpu", "cuda", "cuda:0"
  Device(const std::string& text) : x_type(DeviceType::CUDA), x_index(-1) {
    if (text == "cpu") {
      x_type = DeviceType::CPU;
    } else if (text.compare(0, 5, "cuda:") == 0) {
      x_index = std::atoi(text.c_str() + 5);
    } else {
      TORCH_CHECK(text == "cuda", "the device \"", text, "\" is neither cpu nor cuda");
    }
  }
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return x_type; }
  int index() const { return x_index; }
  bool has_index() const { return x_index >= 0; }
  bool is_cuda() const { return x_type == DeviceType::CUDA; }
  bool is_cpu() const { return x_type == DeviceType::CPU; }
  std::string str() const {
    if (is_cpu()) return "cpu";
    return has_index() ? "cuda:" + std::to_string(x_index) : "cuda";
  }
  bool operator==(const Device& o) const { return x_type == o.x_type && x_index == o.x_index; }
  bool operator!=(const Device& o) const { return !(*this == o); }

 private:
  DeviceType x_type;
  int x_index;
};
inline std::ostream& operator<<(std::ostream& to, const Device& device) {
  return to << device.str();
}

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : x_dtype(type) {}
  TensorOptions(Device device) : x_device(device) {}
  TensorOptions(DeviceType type) : x_device(type) {}

  TensorOptions dtype(ScalarType type) const {
    TensorOptions other = *this;
    other.x_dtype = type;
    return other;
  }
  TensorOptions device(Device device) const {
    TensorOptions other = *this;
    other.x_device = device;
    return other;
  }
  TensorOptions device(DeviceType type, int index) const { return device(Device(type, index)); }
  TensorOptions requires_grad(bool) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  ScalarType dtype() const { return x_dtype; }
  // A CUDA device has its number.
  Device device() const { return x_device.is_cuda() ? Device(kCUDA, 0) : x_device; }

 private:
  ScalarType x_dtype = ScalarType::Float;
  Device x_device{DeviceType::CPU};
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

template <class T>
using optional = std::optional<T>;
using std::nullopt;
using nullopt_t = std::nullopt_t;
using std::make_optional;

}  // namespace c10
