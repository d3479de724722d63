#include "harness/dump/hdf5_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "attn_diag/harness/error.h"
#include "harness/dump/hdf5_handle.h"

namespace attn_diag {
namespace {

constexpr std::size_t kMostObjects = 100'000;
constexpr std::size_t kMostAttributes = 10'000;            // of one object
constexpr std::size_t kMostValues = std::size_t{1} << 20;  // of one attribute, or bytes of its text
constexpr double kMostCells = 0x1p48;                      // of one dataset

enum class Question : std::uint64_t { kListing, kCells };

std::optional<DType> float_type(hid_t type) {
  for (const DType candidate : {DType::kFp16, DType::kBf16, DType::kFp32, DType::kFp64})
    if (check(H5Tequal(type, file_type(candidate)), "compare types") > 0) return candidate;
  return std::nullopt;
}

// Strings of either kind, fixed-length as other programs may write them.
void read_texts(hid_t attribute, hid_t type, hid_t space, std::size_t n, Hdf5Attribute& to) {
  to.kind = Hdf5Attribute::Kind::kText;
  if (n == 0) return;
  if (check(H5Tis_variable_str(type), "read an attribute's type") == 0) {
    const std::size_t size = H5Tget_size(type);
    if (size == 0 || size > kMostValues / n) throw Error("An attribute's text is too long.");
    std::string bytes(n * size, '\0');
    check(H5Aread(attribute, type, bytes.data()), "read an attribute");
    for (std::size_t i = 0; i < n; ++i) {
      const std::string value = bytes.substr(i * size, size);
      to.texts.push_back(value.substr(0, value.find('\0')));
    }
    return;
  }
  std::vector<char*> pointers(n, nullptr);
  check(H5Aread(attribute, type, pointers.data()), "read an attribute");
  for (const char* p : pointers) to.texts.emplace_back(p == nullptr ? "" : p);
  check(H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data()), "read an attribute");
}

// h5py's bool: an enumeration of one byte.
void read_truths(hid_t attribute, hid_t type, std::size_t n, Hdf5Attribute& to) {
  std::vector<unsigned char> bytes(n);
  check(H5Aread(attribute, type, bytes.data()), "read an attribute");
  to.kind = Hdf5Attribute::Kind::kTruth;
  to.values.assign(bytes.begin(), bytes.end());
}

Hdf5Attribute read(hid_t attribute) {
  Hdf5Attribute to;
  const Hdf5Id type(check(H5Aget_type(attribute), "read an attribute's type"), H5Tclose);
  const Hdf5Id space(check(H5Aget_space(attribute), "read an attribute's shape"), H5Sclose);
  const int rank = check(H5Sget_simple_extent_ndims(space), "read an attribute's shape");
  const auto n = static_cast<std::size_t>(
      check(H5Sget_simple_extent_npoints(space), "read an attribute's shape"));
  if (rank > 1 || H5Sget_simple_extent_type(space) == H5S_NULL) return to;
  if (n > kMostValues) throw Error("An attribute has too many values.");
  to.list = rank == 1;
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  if (kind == H5T_STRING) {
    read_texts(attribute, type, space, n, to);
  } else if (kind == H5T_ENUM && size == 1) {
    read_truths(attribute, type, n, to);
  } else if ((kind == H5T_INTEGER || kind == H5T_FLOAT) && size <= 8) {
    const bool is_signed = kind == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
    to.kind = kind == H5T_FLOAT ? Hdf5Attribute::Kind::kReal
              : is_signed       ? Hdf5Attribute::Kind::kSigned
                                : Hdf5Attribute::Kind::kUnsigned;
    const hid_t memory = kind == H5T_FLOAT ? H5T_NATIVE_DOUBLE
                         : is_signed       ? H5T_NATIVE_INT64
                                           : H5T_NATIVE_UINT64;
    to.values.resize(n);
    if (n > 0) check(H5Aread(attribute, memory, to.values.data()), "read an attribute");
  }
  return to;
}

struct Iteration {
  Hdf5Object* object;
  std::string failure;  // exceptions must not pass through the library
};

herr_t note_attribute(hid_t owner, const char* name, const H5A_info_t*, void* to) {
  auto& iteration = *static_cast<Iteration*>(to);
  try {
    if (iteration.object->attributes.size() >= kMostAttributes)
      throw Error("There are too many attributes.");
    const Hdf5Id attribute(check(H5Aopen(owner, name, H5P_DEFAULT), "open an attribute"), H5Aclose);
    iteration.object->attributes.emplace(name, read(attribute));
  } catch (const std::exception& e) {
    iteration.failure = fmt::format("Attribute {}: {}", name, e.what());
    return -1;
  }
  return 0;
}

void note_attributes(hid_t owner, Hdf5Object& to) {
  Iteration iteration{&to, ""};
  const herr_t result =
      H5Aiterate2(owner, H5_INDEX_NAME, H5_ITER_INC, nullptr, note_attribute, &iteration);
  if (!iteration.failure.empty()) throw Error(iteration.failure);
  check(result, "read attributes");
}

struct Link {
  std::string path;
  bool outside = false;  // of this file
};

struct Links {
  std::vector<Link> all;
};

herr_t note_link(hid_t, const char* name, const H5L_info_t* info, void* to) {
  auto& links = static_cast<Links*>(to)->all;
  if (links.size() >= kMostObjects) return -1;
  links.push_back({name, info->type == H5L_TYPE_EXTERNAL});
  return 0;
}

bool reads_other_files(hid_t creation) {
  if (H5Pget_external_count(creation) > 0) return true;
  if (H5Pget_layout(creation) != H5D_VIRTUAL) return false;
  std::size_t n = 0;
  check(H5Pget_virtual_count(creation, &n), "read a dataset's layout");
  for (std::size_t i = 0; i < n; ++i) {
    std::array<char, 8> name{};
    if (H5Pget_virtual_filename(creation, i, name.data(), name.size()) != 1 || name[0] != '.')
      return true;
  }
  return false;
}

// The most that any usual filter unpacks out of a byte.
constexpr double kMostUnpacked = 1100;

std::string why_refused(const Hdf5Object& object, hid_t dataset, hid_t creation) {
  if (reads_other_files(creation))
    return fmt::format(
        "Dataset {} lies in other files, which are not followed. Write it into this one: h5repack.",
        object.path);
  double bytes = static_cast<double>(object.dtype ? size_of(*object.dtype) : 2);
  for (const std::int64_t extent : object.shape) bytes *= static_cast<double>(extent);
  const auto stored = static_cast<double>(H5Dget_storage_size(dataset));
  constexpr double kSmall = 1 << 26;
  if (H5Pget_layout(creation) != H5D_VIRTUAL && bytes > kSmall && bytes > kMostUnpacked * stored)
    return fmt::format(
        "Dataset {} is declared with {:.0f} bytes, of which {:.0f} are in the file. It was not "
        "written, or only in part.",
        object.path, bytes, stored);
  return "";
}

void describe_dataset(hid_t dataset, Hdf5Object& to) {
  to.is_dataset = true;
  const Hdf5Id space(check(H5Dget_space(dataset), "read a dataset's shape"), H5Sclose);
  if (H5Sget_simple_extent_type(space) == H5S_NULL)
    to.refused = fmt::format("Dataset {} has no cells.", to.path);
  to.shape = dataset_shape(dataset);
  const Hdf5Id type(check(H5Dget_type(dataset), "read a dataset's type"), H5Tclose);
  to.type = describe_type(dataset);
  to.dtype = float_type(type);
  to.native = to.dtype.has_value();
  if (!to.dtype && H5Tget_class(type) == H5T_FLOAT) {  // in the other byte order
    const Hdf5Id turned(check(H5Tcopy(type), "copy a type"), H5Tclose);
    check(H5Tset_order(turned, H5T_ORDER_LE), "turn a type");
    to.dtype = float_type(turned);
  }
  double cells = 1;
  for (const std::int64_t extent : to.shape) cells *= static_cast<double>(extent);
  if (cells >= kMostCells) to.refused = fmt::format("Dataset {} has too many cells.", to.path);
  const Hdf5Id creation(check(H5Dget_create_plist(dataset), "read a dataset's layout"), H5Pclose);
  if (to.refused.empty()) to.refused = why_refused(to, dataset, creation);
  if (!to.refused.empty() || H5Pget_layout(creation) != H5D_CONTIGUOUS) return;
  if (const haddr_t address = H5Dget_offset(dataset);
      address != HADDR_UNDEF && address < haddr_t{1} << 62)
    to.offset = static_cast<std::int64_t>(address);
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    x_file = Hdf5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (x_file < 0)
      throw Error(
          fmt::format("It is an HDF5 file, but truncated or damaged ({}). Copy or write it again.",
                      hdf5_reason()));
    // Links to other files lead nowhere, on whatever way they are reached.
    check(H5Lunregister(H5L_TYPE_EXTERNAL), "forbid links to other files");
  }

  std::vector<Hdf5Object> list() const {
    std::vector<Hdf5Object> objects(1);
    note_attributes(x_file, objects.front());
    Links links;
    const herr_t visited = H5Lvisit(x_file, H5_INDEX_NAME, H5_ITER_INC, note_link, &links);
    if (links.all.size() >= kMostObjects) throw Error("It holds too many objects.");
    check(visited, "list what it holds");
    for (const Link& link : links.all) {
      Hdf5Object object;
      object.path = link.path;
      if (link.outside) {
        object.is_dataset = true;
        object.type = "link";
        object.refused = fmt::format(
            "{} is a link to another file, which is not followed. Copy what it points to into this "
            "one: h5copy.",
            link.path);
      } else {
        const Hdf5Id opened(H5Oopen(x_file, link.path.c_str(), H5P_DEFAULT), H5Oclose);
        if (opened < 0) continue;  // a link to nowhere
        note_attributes(opened, object);
        if (H5Iget_type(opened) == H5I_DATASET) describe_dataset(opened, object);
      }
      objects.push_back(std::move(object));
    }
    return objects;
  }

  Bytes read(const std::string& path, std::optional<DType> dtype, std::int64_t at, std::int64_t n) {
    open_dataset_at(path);
    const Hdf5Id type = dtype ? file_type(*dtype)
                              : Hdf5Id(check(H5Tcopy(H5T_NATIVE_UINT16), "copy a type"), H5Tclose);
    const std::size_t cell = dtype ? size_of(*dtype) : 2;
    Bytes bytes(static_cast<std::size_t>(n) * cell);
    read_boxes(type, cell, at, n, bytes.data());
    return bytes;
  }

 private:
  // It stays open, with what was unpacked of it, until another is asked for.
  void open_dataset_at(const std::string& path) {
    if (path == x_path && x_dataset >= 0) return;
    const Hdf5Id access(check(H5Pcreate(H5P_DATASET_ACCESS), "open a dataset"), H5Pclose);
    constexpr std::size_t kSlots = 12421, kCache = std::size_t{1} << 28;
    check(H5Pset_chunk_cache(access, kSlots, kCache, 1.0), "open a dataset");
    x_dataset =
        Hdf5Id(check(H5Dopen2(x_file, path.c_str(), access), "open dataset " + path), H5Dclose);
    x_path = path;
    x_shape = dataset_shape(x_dataset);
    if (x_shape.empty()) x_shape = {1};
  }

  // A run of cells is a sequence of boxes, each full along its last axes.
  void read_boxes(hid_t type, std::size_t cell, std::int64_t at, std::int64_t n, std::byte* to) {
    const std::string doing = "read " + x_path;
    const Hdf5Id file_space(check(H5Dget_space(x_dataset), doing), H5Sclose);
    if (H5Sget_simple_extent_type(file_space) == H5S_SCALAR) {
      check(H5Dread(x_dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to), doing);
      return;
    }
    const std::size_t rank = x_shape.size();
    while (n > 0) {
      std::vector<hsize_t> start(rank), count(rank, 1);
      std::int64_t rest = at;
      for (std::size_t i = rank; i-- > 0; rest /= x_shape[i])
        start[i] = static_cast<hsize_t>(rest % x_shape[i]);
      std::int64_t box = 1;  // cells of the axes behind `axis`, all of them taken
      std::size_t axis = rank - 1;
      while (axis > 0 && start[axis] == 0 && box * x_shape[axis] <= n) {
        count[axis] = static_cast<hsize_t>(x_shape[axis]);
        box *= x_shape[axis--];
      }
      const std::int64_t along =
          std::min(x_shape[axis] - static_cast<std::int64_t>(start[axis]), n / box);
      count[axis] = static_cast<hsize_t>(along);
      box *= along;
      check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                nullptr),
            doing);
      const auto extent = static_cast<hsize_t>(box);
      const Hdf5Id memory_space(check(H5Screate_simple(1, &extent, nullptr), doing), H5Sclose);
      check(H5Dread(x_dataset, type, memory_space, file_space, H5P_DEFAULT, to), doing);
      to += box * static_cast<std::int64_t>(cell);
      at += box;
      n -= box;
    }
  }

  Hdf5Id x_file, x_dataset;
  std::string x_path;
  std::vector<std::int64_t> x_shape;
};

Bytes encode(const std::vector<Hdf5Object>& objects) {
  WireWriter to;
  to.number(objects.size());
  for (const Hdf5Object& o : objects) {
    to.text(o.path).truth(o.is_dataset).number(o.attributes.size());
    for (const auto& [name, a] : o.attributes) {
      to.text(name).number(static_cast<std::uint64_t>(a.kind)).truth(a.list);
      to.texts(a.texts).number(a.values.size());
      for (const std::uint64_t value : a.values) to.number(value);
    }
    to.number(o.shape.size());
    for (const std::int64_t extent : o.shape) to.number(static_cast<std::uint64_t>(extent));
    to.text(o.type).number(o.dtype ? 1 + static_cast<std::uint64_t>(*o.dtype) : 0);
    to.truth(o.native).number(static_cast<std::uint64_t>(o.offset)).text(o.refused);
  }
  return to.take();
}

// 0: none.
std::optional<DType> dtype_of(std::uint64_t number) {
  if (number == 0 || number > 1 + static_cast<std::uint64_t>(DType::kFp64)) return std::nullopt;
  return static_cast<DType>(number - 1);
}

}  // namespace

Bytes ask_for_listing() {
  return WireWriter().number(static_cast<std::uint64_t>(Question::kListing)).take();
}

Bytes ask_for_cells(const Hdf5Object& dataset, std::int64_t at, std::int64_t n) {
  WireWriter to;
  to.number(static_cast<std::uint64_t>(Question::kCells)).text(dataset.path);
  to.number(dataset.dtype ? 1 + static_cast<std::uint64_t>(*dataset.dtype) : 0);
  return to.number(static_cast<std::uint64_t>(at)).number(static_cast<std::uint64_t>(n)).take();
}

Bytes answer_about_hdf5(const std::string& path, const Bytes& question) {
  static std::optional<OpenFile> file;
  if (!file) file.emplace(path);
  WireReader from(question);
  if (static_cast<Question>(from.number()) == Question::kListing) return encode(file->list());
  const std::string dataset = from.text();
  const std::optional<DType> dtype = dtype_of(from.number());
  const std::int64_t at = from.signed_number();
  return file->read(dataset, dtype, at, from.signed_number());
}

std::vector<Hdf5Object> parse_listing(const Bytes& answer) {
  WireReader from(answer);
  std::vector<Hdf5Object> objects(std::max<std::size_t>(1, from.count()));
  for (Hdf5Object& o : objects) {
    o.path = from.text();
    o.is_dataset = from.truth();
    for (std::size_t i = from.count(); i > 0; --i) {
      Hdf5Attribute& a = o.attributes[from.text()];
      const std::uint64_t kind = from.number();
      if (kind < static_cast<std::uint64_t>(Hdf5Attribute::Kind::kOther))
        a.kind = static_cast<Hdf5Attribute::Kind>(kind);
      a.list = from.truth();
      a.texts = from.texts();
      a.values.resize(from.count());
      for (std::uint64_t& value : a.values) value = from.number();
    }
    o.shape.resize(from.count());
    for (std::int64_t& extent : o.shape) extent = from.signed_number();
    o.type = from.text();
    o.dtype = dtype_of(from.number());
    o.native = from.truth();
    o.offset = from.signed_number();
    o.refused = from.text();
    double cells = 1;
    for (const std::int64_t extent : o.shape)
      cells *= extent < 0 ? kMostCells : static_cast<double>(extent);
    if (!(cells < kMostCells) && o.refused.empty())
      throw HelperLost(HelperLost::How::kCrashed, "its answer makes no sense");
  }
  return objects;
}

}  // namespace attn_diag
