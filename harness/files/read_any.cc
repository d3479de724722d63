// Which format a file is in.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "harness/base/helper.h"
#include "harness/dump/hdf5_document.h"
#include "harness/files/array.h"

namespace attn_diag::files {
namespace {

namespace fs = std::filesystem;

void read_npy_file(const std::string& path, Contents& to) {
  read_npy(path, fs::path(path).stem().string(), bytes_of_file(path), file_size(path), to);
}

void read_folder(const std::string& path, Contents& to) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".npy") files.push_back(entry.path().string());
  if (files.empty())
    throw Error(fmt::format(
        "{} is a folder without .npy files. Name a folder that has q.npy, k.npy, v.npy and "
        "o.npy, or a file.",
        path));
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) read_npy_file(file, to);
}

// In a helper.
void read_other(const std::string& path, Contents& to) {
  if (std::error_code ignored; fs::is_directory(path, ignored)) return read_folder(path, to);
  const std::uint64_t size = file_size(path);
  const std::vector<std::byte> bytes = bytes_of_file(path)(0, std::min<std::uint64_t>(size, 16));
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (start.starts_with("\x93NUMPY") || path.ends_with(".npy")) return read_npy_file(path, to);
  if (start.starts_with("PK") || path.ends_with(".npz")) return read_npz(path, to);
  if ((start.size() > 8 && start[8] == '{') || path.ends_with(".safetensors"))
    return read_safetensors(path, to);
  if (start.starts_with("\x80") || path.ends_with(".pt") || path.ends_with(".pkl"))
    throw Error(
        fmt::format("{} is a Python pickle, which can be read by Python alone. Save the arrays "
                    "with numpy.savez or safetensors.",
                    path));
  throw Error(
      fmt::format("{} is of no format that can be read: HDF5, .npy, .npz and safetensors are. If "
                  "it was one of these, its beginning is lost.",
                  path));
}

enum class Question : std::uint64_t { kListing, kCells };

Bytes encode(const Contents& contents) {
  WireWriter to;
  to.number(contents.settings.size());
  for (const auto& [name, value] : contents.settings) to.text(name).text(value);
  to.number(contents.arrays.size());
  for (const Array& a : contents.arrays) {
    to.text(a.file).text(a.name).text(a.type).text(a.unreadable).number(a.shape.size());
    for (const std::int64_t extent : a.shape) to.number(static_cast<std::uint64_t>(extent));
    to.number(a.dtype ? 1 + static_cast<std::uint64_t>(*a.dtype) : 0).truth(a.opaque16);
    to.number(a.bytes).truth(a.offset.has_value()).number(a.offset.value_or(0));
  }
  return to.take();
}

// In a helper.
Bytes answer(const std::string& path, const Bytes& question) {
  static std::optional<Contents> contents;
  if (!contents) read_other(path, contents.emplace());
  WireReader from(question);
  if (static_cast<Question>(from.number()) == Question::kListing) return encode(*contents);
  const Array& array = contents->arrays.at(from.number());
  const std::uint64_t at = from.number();
  return array.read(at, from.number());
}

// What a file of `bytes` may take to be read.
HelperLimits limits_for(std::uint64_t bytes) {
  HelperLimits limits;
  limits.memory = (std::uint64_t{1} << 30) + 4 * bytes;
  limits.processor_seconds = 10 + static_cast<double>(bytes) / 1e6;  // npz unpacks a thousandfold
  return limits;
}

class Reader {
 public:
  explicit Reader(const std::string& path)
      : x_path(path), x_helper(limits_for(size_of(path)), [&path](const Bytes& question) {
          return answer(path, question);
        }) {}

  Bytes ask(const Bytes& question) {
    try {
      return x_helper.ask(question);
    } catch (const HelperLost& e) {
      throw Error(
          fmt::format("{} could not be read: what reads it was lost ({}). Copy or write it again.",
                      x_path, e.what()));
    } catch (const std::bad_alloc&) {
      throw Error(
          fmt::format("{} could not be read: it asks for far more memory than a file of its size "
                      "needs. Copy or "
                      "write it again.",
                      x_path));
    }
  }

 private:
  static std::uint64_t size_of(const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored) ? 0 : file_size(path);
  }

  std::string x_path;
  Helper x_helper;
};

ReadBytes cells_of_array(const std::shared_ptr<Reader>& reader, std::size_t index,
                         const Array& array) {
  if (array.offset)
    return [read = bytes_of_file(array.file), begin = *array.offset](
               std::uint64_t at, std::uint64_t n) { return read(begin + at, n); };
  return [reader, index](std::uint64_t at, std::uint64_t n) {
    WireWriter question;
    question.number(static_cast<std::uint64_t>(Question::kCells)).number(index);
    return reader->ask(question.number(at).number(n).take());
  };
}

void read_in_helper(const std::string& path, Contents& to) {
  const auto reader = std::make_shared<Reader>(path);
  const Bytes listing =
      reader->ask(WireWriter().number(static_cast<std::uint64_t>(Question::kListing)).take());
  WireReader from(listing);
  for (std::size_t i = from.count(); i > 0; --i) {
    const std::string name = from.text();
    to.settings.emplace(name, from.text());
  }
  const std::size_t arrays = from.count();
  for (std::size_t i = 0; i < arrays; ++i) {
    Array a;
    a.file = from.text();
    a.name = from.text();
    a.type = from.text();
    a.unreadable = from.text();
    a.shape.resize(from.count());
    for (std::int64_t& extent : a.shape) extent = from.signed_number();
    const std::uint64_t dtype = from.number();
    if (dtype > 0 && dtype <= 1 + static_cast<std::uint64_t>(DType::kFp64))
      a.dtype = static_cast<DType>(dtype - 1);
    a.opaque16 = from.truth();
    a.bytes = from.number();
    const bool in_place = from.truth();
    const std::uint64_t offset = from.number();
    if (in_place) a.offset = offset;
    a.read = cells_of_array(reader, i, a);
    to.arrays.push_back(std::move(a));
  }
}

}  // namespace

void read_any(const std::string& path, Contents& to) {
  if (is_hdf5_file(path)) return read_hdf5(path, to);
  try {
    read_in_helper(path, to);
  } catch (const HelperLost& e) {
    throw Error(fmt::format("{} could not be read: {}. Copy or write it again.", path, e.what()));
  }
}

}  // namespace attn_diag::files
