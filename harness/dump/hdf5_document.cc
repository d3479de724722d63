#include "harness/dump/hdf5_document.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <numeric>

#include "attn_diag/harness/error.h"
#include "harness/dump/hdf5_handle.h"
#include "harness/dump/hdf5_listing.h"

namespace attn_diag {
namespace {

// Whole files are read at some 100 MB/s and more, and the library keeps little of them.
HelperLimits limits_for(std::int64_t file_bytes) {
  constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;
  HelperLimits limits;
  limits.memory = kMemory + 4 * static_cast<std::uint64_t>(file_bytes);
  limits.processor_seconds = 10 + static_cast<double>(file_bytes) / 20e6;
  return limits;
}

// One that cannot be opened is no regular file.
std::optional<std::int64_t> size_of_regular(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status.st_size;
}

std::int64_t cells_of(const Hdf5Object& dataset) {
  return std::accumulate(dataset.shape.begin(), dataset.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::int64_t cell_bytes(const Hdf5Object& dataset) {
  return dataset.dtype ? static_cast<std::int64_t>(size_of(*dataset.dtype)) : 2;
}

std::string words(const char* name, bool list, const char* noun) {
  return fmt::format("Attribute {} is not {}{}.", name, list ? "a list of " : "a single ", noun);
}

const Hdf5Attribute& attribute(const Hdf5Object& object, const char* name, bool list,
                               std::initializer_list<Hdf5Attribute::Kind> kinds) {
  const auto found = object.attributes.find(name);
  if (found == object.attributes.end()) throw Error(fmt::format("Attribute {} is missing.", name));
  const Hdf5Attribute& a = found->second;
  const bool text = *kinds.begin() == Hdf5Attribute::Kind::kText;
  if (a.list != list || std::find(kinds.begin(), kinds.end(), a.kind) == kinds.end() ||
      (!list && (text ? a.texts.size() : a.values.size()) != 1))
    throw Error(words(name, list, text ? "string" : "number"));
  return a;
}

std::int64_t signed_value(const Hdf5Attribute& a, std::size_t i, const char* name) {
  const auto value = static_cast<std::int64_t>(a.values[i]);
  if (a.kind == Hdf5Attribute::Kind::kUnsigned && value < 0)
    throw Error(fmt::format("Attribute {} is {}, which is out of range.", name, a.values[i]));
  return value;
}

}  // namespace

Hdf5Document::Hdf5Document(const std::string& path)
    : x_path(path), x_descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (x_descriptor < 0)
    throw Error(fmt::format("It could not be opened: {}. Check the name.", std::strerror(errno)));
  try {
    const std::optional<std::int64_t> size = size_of_regular(path);
    if (!size) throw Error("It is not a regular file.");
    {
      const Hdf5Session session;  // so that no other thread is within the library
      x_helper = std::make_unique<Helper>(limits_for(*size), [&path](const Bytes& question) {
        return answer_about_hdf5(path, question);
      });
    }
    x_objects = parse_listing(ask(ask_for_listing()));
    for (Hdf5Object& object : x_objects) {
      const std::int64_t bytes = cells_of(object) * cell_bytes(object);
      if (object.offset < 0 || bytes <= *size - object.offset || !object.refused.empty()) continue;
      object.refused = fmt::format(
          "Dataset {} ends beyond the end of the file. Copy or write the file again.", object.path);
    }
  } catch (...) {
    ::close(x_descriptor);
    throw;
  }
  for (std::size_t i = 0; i < x_objects.size(); ++i) x_by_path.emplace(x_objects[i].path, i);
}

Hdf5Document::~Hdf5Document() { ::close(x_descriptor); }

Bytes Hdf5Document::ask(const Bytes& question) const {
  try {
    return x_helper->ask(question);
  } catch (const HelperLost& e) {
    throw Error(
        e.how() == HelperLost::How::kTookTooLong
            ? fmt::format(
                  "The HDF5 library was stopped while it read it: {}. The file is damaged, or made "
                  "to do this: copy or write it again.",
                  e.what())
            : fmt::format(
                  "The HDF5 library crashed on it ({}). The file is damaged, or made to do this: "
                  "copy or write it again.",
                  e.what()));
  } catch (const std::bad_alloc&) {
    throw Error(
        "The HDF5 library wanted far more memory than a file of its size needs. The file is "
        "damaged, or "
        "made to do this: copy or write it again.");
  }
}

const Hdf5Object* Hdf5Document::find(std::string_view path) const {
  if (path.starts_with('/')) path.remove_prefix(1);
  const auto found = x_by_path.find(path);
  return found == x_by_path.end() ? nullptr : &x_objects[found->second];
}

void Hdf5Document::read(const Hdf5Object& dataset, std::int64_t at, std::int64_t n,
                        std::byte* cells) const {
  if (!dataset.refused.empty()) throw Error(dataset.refused);
  const auto cell = static_cast<std::size_t>(cell_bytes(dataset));
  if (dataset.offset >= 0 && dataset.native) {
    std::size_t left = static_cast<std::size_t>(n) * cell;
    auto position = static_cast<off_t>(dataset.offset + at * static_cast<std::int64_t>(cell));
    while (left > 0) {
      const ssize_t got = ::pread(x_descriptor, cells, left, position);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        throw Error(fmt::format("Dataset {} could not be read: {}. Copy or write the file again.",
                                dataset.path,
                                got == 0 ? "the file ends early" : std::strerror(errno)));
      cells += got;
      position += got;
      left -= static_cast<std::size_t>(got);
    }
    return;
  }
  constexpr std::int64_t kPiece = std::int64_t{1} << 24;  // cells
  while (n > 0) {
    const std::int64_t piece = std::min(n, kPiece);
    const Bytes bytes = ask(ask_for_cells(dataset, at, piece));
    if (bytes.size() != static_cast<std::size_t>(piece) * cell)
      throw Error(fmt::format("Dataset {} could not be read.", dataset.path));
    std::memcpy(cells, bytes.data(), bytes.size());
    cells += bytes.size();
    at += piece;
    n -= piece;
  }
}

Bytes Hdf5Document::read(const Hdf5Object& dataset) const {
  if (!dataset.refused.empty()) throw Error(dataset.refused);
  const std::int64_t n = cells_of(dataset);
  Bytes cells(static_cast<std::size_t>(n * cell_bytes(dataset)));
  read(dataset, 0, n, cells.data());
  return cells;
}

bool is_hdf5_file(const std::string& path) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  const std::optional<std::int64_t> size = size_of_regular(path);
  if (!size) return false;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  // At the beginning, or behind a block of the user's of 512 bytes, 1024, 2048, ...
  bool found = false;
  for (std::int64_t at = 0; !found && at + 8 <= *size; at = at == 0 ? 512 : 2 * at) {
    char bytes[8];
    found = ::pread(file, bytes, sizeof bytes, at) == sizeof bytes &&
            std::string_view(bytes, sizeof bytes) == kSignature;
  }
  ::close(file);
  return found;
}

void read_attribute(const Hdf5Object& object, const char* name, std::string& value) {
  value = attribute(object, name, false, {Hdf5Attribute::Kind::kText}).texts.front();
}

void read_attribute(const Hdf5Object& object, const char* name, std::int64_t& value) {
  using Kind = Hdf5Attribute::Kind;
  value = signed_value(attribute(object, name, false, {Kind::kSigned, Kind::kUnsigned}), 0, name);
}

void read_attribute(const Hdf5Object& object, const char* name, std::uint64_t& value) {
  using Kind = Hdf5Attribute::Kind;
  const Hdf5Attribute& a = attribute(object, name, false, {Kind::kSigned, Kind::kUnsigned});
  value = a.values.front();
  if (a.kind == Kind::kSigned && static_cast<std::int64_t>(value) < 0)
    throw Error(fmt::format("Attribute {} is {}, which is out of range.", name,
                            static_cast<std::int64_t>(value)));
}

void read_attribute(const Hdf5Object& object, const char* name, double& value) {
  using Kind = Hdf5Attribute::Kind;
  const Hdf5Attribute& a =
      attribute(object, name, false, {Kind::kReal, Kind::kSigned, Kind::kUnsigned});
  const std::uint64_t bits = a.values.front();
  value = a.kind == Kind::kReal     ? std::bit_cast<double>(bits)
          : a.kind == Kind::kSigned ? static_cast<double>(static_cast<std::int64_t>(bits))
                                    : static_cast<double>(bits);
}

void read_attribute(const Hdf5Object& object, const char* name, std::vector<std::int64_t>& values) {
  using Kind = Hdf5Attribute::Kind;
  const Hdf5Attribute& a = attribute(object, name, true, {Kind::kSigned, Kind::kUnsigned});
  values.clear();
  for (std::size_t i = 0; i < a.values.size(); ++i) values.push_back(signed_value(a, i, name));
}

void read_attribute(const Hdf5Object& object, const char* name, std::vector<std::string>& values) {
  values = attribute(object, name, true, {Hdf5Attribute::Kind::kText}).texts;
}

bool has_attribute(const Hdf5Object& object, const char* name) {
  return object.attributes.find(name) != object.attributes.end();
}

}  // namespace attn_diag
