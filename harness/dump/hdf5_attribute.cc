// Attributes of hdf5_handle.h.
#include <fmt/format.h>

#include "harness/dump/hdf5_handle.h"

namespace attn_diag {
namespace {

Hdf5Id string_type() {
  Hdf5Id type(check(H5Tcopy(H5T_C_S1), "copy a type"), H5Tclose);
  check(H5Tset_size(type, H5T_VARIABLE), "define a string type");
  check(H5Tset_cset(type, H5T_CSET_UTF8), "define a string type");
  return type;
}

Hdf5Id scalar_space() { return {check(H5Screate(H5S_SCALAR), "create a dataspace"), H5Sclose}; }

Hdf5Id list_space(std::size_t n) {
  const hsize_t extent = n;
  return {check(H5Screate_simple(1, &extent, nullptr), "create a dataspace"), H5Sclose};
}

void write(hid_t object, const char* name, hid_t file, hid_t memory, hid_t space,
           const void* values) {
  const std::string doing = fmt::format("write attribute {}", name);
  const Hdf5Id attribute(
      check(H5Acreate2(object, name, file, space, H5P_DEFAULT, H5P_DEFAULT), doing), H5Aclose);
  if (values != nullptr) check(H5Awrite(attribute, memory, values), doing);
}

}  // namespace

void write_attribute(hid_t object, const char* name, const std::string& value) {
  const char* pointer = value.c_str();
  const Hdf5Id type = string_type();
  write(object, name, type, type, scalar_space(), &pointer);
}
void write_attribute(hid_t object, const char* name, std::int64_t value) {
  write(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, scalar_space(), &value);
}
void write_attribute(hid_t object, const char* name, std::uint64_t value) {
  write(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, scalar_space(), &value);
}
void write_attribute(hid_t object, const char* name, double value) {
  write(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, scalar_space(), &value);
}
void write_attribute(hid_t object, const char* name, const std::vector<std::int64_t>& values) {
  write(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, list_space(values.size()), values.data());
}
void write_attribute(hid_t object, const char* name, const std::vector<std::string>& values) {
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  const Hdf5Id type = string_type();
  write(object, name, type, type, list_space(values.size()),
        pointers.empty() ? nullptr : pointers.data());
}

}  // namespace attn_diag
