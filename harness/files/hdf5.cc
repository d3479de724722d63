// HDF5 files of any program: every dataset, in whatever group, and attributes of groups and datasets.
#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/dump_file.h"
#include "harness/files/array.h"
#include "harness/files/scalar.h"
#include "harness/hdf5_handle.h"

namespace attn_diag::files {
namespace {

constexpr const char* kAgain = "Copy or write it again.";

Hdf5Id open_file(const std::string& path) {
  Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (file < 0)
    throw Error(fmt::format("{} is an HDF5 file, but truncated or damaged ({}). {}", path,
                            hdf5_reason(), kAgain));
  return file;
}

// Floats of ours in either byte order: the library turns them when it reads.
std::optional<DType> float_type(hid_t dataset) {
  DType dtype{};
  if (element_type(dataset, dtype)) return dtype;
  const Hdf5Id type(check(H5Dget_type(dataset), "read a dataset's type"), H5Tclose);
  if (H5Tget_class(type) != H5T_FLOAT) return std::nullopt;
  const Hdf5Id turned(check(H5Tcopy(type), "copy a type"), H5Tclose);
  check(H5Tset_order(turned, H5T_ORDER_LE), "turn a type");
  for (const DType candidate : {DType::kFp16, DType::kBf16, DType::kFp32, DType::kFp64})
    if (check(H5Tequal(turned, file_type(candidate)), "compare types") > 0) return candidate;
  return std::nullopt;
}

std::optional<std::string> attribute_text(hid_t object, const char* name) {
  try {
    std::string text;
    read_attribute(object, name, text);
    return text;
  } catch (const Error&) {
  }
  try {
    double value = 0;
    read_attribute(object, name, value);
    return fmt::format("{}", value);
  } catch (const Error&) {
  }
  // h5py's bool: an enumeration of one byte.
  const Hdf5Id attribute(check(H5Aopen(object, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
  const Hdf5Id type(check(H5Aget_type(attribute), "read an attribute's type"), H5Tclose);
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1) return std::nullopt;
  unsigned char value = 0;
  check(H5Aread(attribute, type, &value), "read an attribute");
  return number_text('b', 1, &value);
}

herr_t note_attribute(hid_t object, const char* name, const H5A_info_t*, void* to) {
  if (const auto text = attribute_text(object, name))
    static_cast<Settings*>(to)->emplace(name, *text);
  return 0;
}

void note_attributes(hid_t object, Settings& to) {
  check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, note_attribute, &to),
        "read attributes");
}

herr_t note_name(hid_t, const char* name, const H5L_info_t*, void* to) {
  static_cast<std::vector<std::string>*>(to)->emplace_back(name);
  return 0;
}

Array describe(const std::string& path, const std::string& name, hid_t dataset) {
  Array array;
  array.file = path;
  array.name = name;
  array.shape = dataset_shape(dataset);
  array.dtype = float_type(dataset);
  array.type = describe_type(dataset);
  array.opaque16 = array.type == "16-bit integer";
  array.load = [path, name, dtype = array.dtype.value_or(DType::kBf16), opaque = !array.dtype] {
    const Hdf5Session session;
    const Hdf5Id file = open_file(path);
    const Hdf5Id set = open_dataset(file, name);
    const std::int64_t cells = cells_of(dataset_shape(set), name);
    if (!opaque) return read_whole(set, dtype, cells, name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(cells) * 2);
    check(H5Dread(set, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
          "read " + name);
    return bytes;
  };
  return array;
}

}  // namespace

void read_hdf5(const std::string& path, Contents& to) {
  const Hdf5Session session;
  const Hdf5Id file = open_file(path);
  note_attributes(file, to.settings);
  std::vector<std::string> names;
  check(H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, note_name, &names), "list " + path);
  for (const std::string& name : names) {
    const Hdf5Id object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (object < 0) continue;  // a link to nowhere
    note_attributes(object, to.settings);
    if (H5Iget_type(object) == H5I_DATASET) to.arrays.push_back(describe(path, name, object));
  }
}

}  // namespace attn_diag::files
