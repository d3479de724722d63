#include "tools/python/module/arrays.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace attn_diag::python {
namespace {

namespace py = pybind11;

// The parts of DLPack's C interface that a consumer of memory of the host reads (dmlc.github.io/dlpack).
struct DlTensor {
  void* data;
  std::int32_t device_type, device_id;
  std::int32_t rank;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
constexpr std::int32_t kCpu = 1, kCudaHost = 3;
constexpr std::array<char, 5> kKinds = {'i', 'u', 'f', '?', 'b'};  // by code; b: bfloat

}  // namespace

Borrowed::Borrowed(ForeignRole role, const py::object& object, bool is_bf16)
    : x_owner(object), x_is_bf16(is_bf16) {
  x_array.role = role;
  if (PyCapsule_CheckExact(object.ptr()) != 0)
    take_capsule(object);
  else
    take_buffer(object);
}

void Borrowed::take_capsule(const py::object& object) {
  const auto* const tensor =
      static_cast<const DlTensor*>(PyCapsule_GetPointer(object.ptr(), "dltensor"));
  if (tensor == nullptr) throw py::error_already_set();
  if (tensor->device_type != kCpu && tensor->device_type != kCudaHost)
    throw py::type_error(
        fmt::format("{} lies on a device; expected memory of the host.", name(x_array.role)));
  x_array.shape.assign(tensor->shape, tensor->shape + tensor->rank);
  if (tensor->strides != nullptr)
    x_array.strides.assign(tensor->strides, tensor->strides + tensor->rank);
  x_array.data = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  set_dtype(tensor->lanes == 1 && tensor->code < kKinds.size() ? kKinds[tensor->code] : '?',
            tensor->bits);
}

void Borrowed::take_buffer(const py::object& object) {
  x_buffer = py::reinterpret_borrow<py::buffer>(object).request();
  x_array.shape.assign(x_buffer.shape.begin(), x_buffer.shape.end());
  for (const py::ssize_t bytes : x_buffer.strides) {
    if (x_buffer.itemsize == 0 || bytes % x_buffer.itemsize != 0)
      throw py::type_error(fmt::format(
          "{} is a view whose strides are no multiples of an element. Pass a copy of it.",
          name(x_array.role)));
    x_array.strides.push_back(bytes / x_buffer.itemsize);
  }
  x_array.data = x_buffer.ptr;
  std::string_view format = x_buffer.format;
  while (!format.empty() && std::string_view("@=<").find(format.front()) != std::string_view::npos)
    format.remove_prefix(1);
  const bool one = format.size() == 1;
  const bool is_float = one && std::string_view("efd").find(format[0]) != std::string_view::npos;
  const bool is_integer =
      one && std::string_view("bBhHiIlLqQ").find(format[0]) != std::string_view::npos;
  set_dtype(is_float     ? 'f'
            : is_integer ? 'i'
                         : '?',
            8 * static_cast<std::size_t>(x_buffer.itemsize));
}

void Borrowed::set_dtype(char kind, std::size_t bits) {
  if (kind == 'b' || (x_is_bf16 && bits == 16)) {
    x_array.dtype = DType::kBf16;
  } else if (kind == 'f' && bits == 16) {
    x_array.dtype = DType::kFp16;
  } else if (kind == 'f' && bits == 32) {
    x_array.dtype = DType::kFp32;
  } else if (kind == 'f' && bits == 64) {
    x_array.dtype = DType::kFp64;
  } else {
    const char* const what = kind == 'i' || kind == 'u' ? "integers" : "elements";
    throw py::type_error(fmt::format("{} has {} of {} bits; expected fp16, bf16, fp32 or fp64.",
                                     name(x_array.role), what, bits));
  }
}

BorrowedCase::BorrowedCase(const py::dict& arrays) {
  for (std::size_t i = 0; i < kNumForeignRoles; ++i) {
    const auto role = static_cast<ForeignRole>(i);
    const py::str key{std::string(name(role))};
    if (!arrays.contains(key)) continue;
    const auto entry = arrays[key].cast<py::tuple>();
    x_borrowed.emplace_back(role, entry[0], entry[1].cast<bool>());
  }
}

std::vector<ForeignArray> BorrowedCase::arrays() const {
  std::vector<ForeignArray> all;
  for (const Borrowed& one : x_borrowed) all.push_back(one.array());
  return all;
}

}  // namespace attn_diag::python
