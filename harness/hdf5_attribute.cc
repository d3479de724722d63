// Attributes of hdf5_handle.h.
#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/hdf5_handle.h"

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

Hdf5Id open(hid_t object, const char* name, H5T_class_t kind, bool list) {
  if (!has_attribute(object, name)) throw Error(fmt::format("Attribute {} is missing.", name));
  Hdf5Id attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Id type(check(H5Aget_type(attribute), "read an attribute's type"), H5Tclose);
  const H5T_class_t found = H5Tget_class(type);
  const bool number = found == H5T_INTEGER || found == H5T_FLOAT;
  const bool fits = kind == H5T_FLOAT ? number : found == kind;
  const Hdf5Id space(check(H5Aget_space(attribute), "read an attribute's shape"), H5Sclose);
  const int rank = check(H5Sget_simple_extent_ndims(space), "read an attribute's shape");
  if (!fits || rank != (list ? 1 : 0))
    throw Error(fmt::format("Attribute {} is not {}{}.", name, list ? "a list of " : "a single ",
                            kind == H5T_STRING ? "string" : "number"));
  return attribute;
}

std::size_t length_of(hid_t attribute) {
  const Hdf5Id space(check(H5Aget_space(attribute), "read an attribute's shape"), H5Sclose);
  return static_cast<std::size_t>(
      check(H5Sget_simple_extent_npoints(space), "read an attribute's shape"));
}

// Strings of either kind, fixed-length as other programs may write them.
std::vector<std::string> read_strings(hid_t attribute, std::size_t n) {
  const Hdf5Id type(check(H5Aget_type(attribute), "read an attribute's type"), H5Tclose);
  std::vector<std::string> values;
  if (n == 0) return values;
  if (check(H5Tis_variable_str(type), "read an attribute's type") == 0) {
    const std::size_t size = H5Tget_size(type);
    std::string bytes(n * size, '\0');
    check(H5Aread(attribute, type, bytes.data()), "read an attribute");
    for (std::size_t i = 0; i < n; ++i) {
      const std::string value = bytes.substr(i * size, size);
      values.push_back(value.substr(0, value.find('\0')));
    }
    return values;
  }
  std::vector<char*> pointers(n, nullptr);
  const Hdf5Id space(check(H5Aget_space(attribute), "read an attribute's shape"), H5Sclose);
  check(H5Aread(attribute, type, pointers.data()), "read an attribute");
  for (const char* p : pointers) values.emplace_back(p == nullptr ? "" : p);
  check(H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data()), "read an attribute");
  return values;
}

template <class T>
void read_number(hid_t object, const char* name, hid_t memory, H5T_class_t kind, T& value) {
  check(H5Aread(open(object, name, kind, false), memory, &value),
        fmt::format("read attribute {}", name));
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

void read_attribute(hid_t object, const char* name, std::string& value) {
  value = read_strings(open(object, name, H5T_STRING, false), 1).at(0);
}
void read_attribute(hid_t object, const char* name, std::int64_t& value) {
  read_number(object, name, H5T_NATIVE_INT64, H5T_INTEGER, value);
}
void read_attribute(hid_t object, const char* name, std::uint64_t& value) {
  read_number(object, name, H5T_NATIVE_UINT64, H5T_INTEGER, value);
}
void read_attribute(hid_t object, const char* name, double& value) {
  read_number(object, name, H5T_NATIVE_DOUBLE, H5T_FLOAT, value);
}
void read_attribute(hid_t object, const char* name, std::vector<std::int64_t>& values) {
  const Hdf5Id attribute = open(object, name, H5T_INTEGER, true);
  values.resize(length_of(attribute));
  if (!values.empty())
    check(H5Aread(attribute, H5T_NATIVE_INT64, values.data()),
          fmt::format("read attribute {}", name));
}
void read_attribute(hid_t object, const char* name, std::vector<std::string>& values) {
  const Hdf5Id attribute = open(object, name, H5T_STRING, true);
  values = read_strings(attribute, length_of(attribute));
}

bool has_attribute(hid_t object, const char* name) {
  return check(H5Aexists(object, name), "look for an attribute") > 0;
}

}  // namespace attn_diag
