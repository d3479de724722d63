#include "harness/dump/hdf5_handle.h"

#include <fmt/format.h>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Upward means from the function that failed first, so the first description is the reason.
herr_t take_innermost(unsigned, const H5E_error2_t* error, void* reason) {
  auto& text = *static_cast<std::string*>(reason);
  if (text.empty() && error->desc != nullptr) text = error->desc;
  return 0;
}

Hdf5Id sixteen_bit_float(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  Hdf5Id type(check(H5Tcopy(H5T_IEEE_F32LE), "copy a type"), H5Tclose);
  check(H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits), "define a type");
  check(H5Tset_ebias(type, bias), "define a type");
  check(H5Tset_size(type, 2), "define a type");
  return type;
}

}  // namespace

Hdf5Quiet::Hdf5Quiet() {
  H5Eget_auto2(H5E_DEFAULT, &x_printer, &x_printer_data);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Quiet::~Hdf5Quiet() { H5Eset_auto2(H5E_DEFAULT, x_printer, x_printer_data); }

Hdf5Session::Hdf5Session() : x_lock(library_mutex()) {}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &reason);
  return reason.empty() ? "no reason given" : reason;
}

void throw_hdf5(const std::string& doing) {
  throw Error(fmt::format("Could not {}: {}.", doing, hdf5_reason()));
}

Hdf5Id create_group(hid_t parent, const std::string& name) {
  return {check(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                "create group " + name),
          H5Gclose};
}

Hdf5Id open_group(hid_t parent, const std::string& name) {
  return {check(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), "open group " + name), H5Gclose};
}

bool link_exists(hid_t parent, const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (check(H5Lexists(parent, part.c_str(), H5P_DEFAULT), "look for " + part) == 0) return false;
    if (end == std::string::npos) return true;
  }
}

Hdf5Id file_type(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return sixteen_bit_float(5, 10, 15);
    case DType::kBf16:
      return sixteen_bit_float(8, 7, 127);
    case DType::kFp32:
      return {check(H5Tcopy(H5T_IEEE_F32LE), "copy a type"), H5Tclose};
    case DType::kFp64:
      break;
  }
  return {check(H5Tcopy(H5T_IEEE_F64LE), "copy a type"), H5Tclose};
}

std::string describe_type(hid_t dataset) {
  const Hdf5Id type(check(H5Dget_type(dataset), "read a dataset's type"), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type);
  const char* what = kind == H5T_INTEGER    ? "integer"
                     : kind == H5T_FLOAT    ? "float"
                     : kind == H5T_STRING   ? "string"
                     : kind == H5T_COMPOUND ? "compound"
                     : kind == H5T_ENUM     ? "enumeration"
                                            : "other";
  const bool big_endian =
      (kind == H5T_INTEGER || kind == H5T_FLOAT) && H5Tget_order(type) == H5T_ORDER_BE;
  return fmt::format("{}-bit {}{}", 8 * H5Tget_size(type), big_endian ? "big-endian " : "", what);
}

std::vector<std::int64_t> dataset_shape(hid_t dataset) {
  const Hdf5Id space(check(H5Dget_space(dataset), "read a dataset's shape"), H5Sclose);
  const int rank = check(H5Sget_simple_extent_ndims(space), "read a dataset's rank");
  std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space, extent.data(), nullptr), "read a dataset's shape");
  return {extent.begin(), extent.end()};
}

}  // namespace attn_diag
