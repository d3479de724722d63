// safetensors: the length of a JSON header in 8 bytes, the header, the cells. The header maps each name
// to dtype, shape and data_offsets (begin and end, from the header's end on), and __metadata__ to
// strings.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "attn_diag/harness/error.h"
#include "harness/files/array.h"

namespace attn_diag::files {
namespace {

using Json = nlohmann::json;

std::optional<DType> dtype_of(const std::string& text) {
  if (text == "F16") return DType::kFp16;
  if (text == "BF16") return DType::kBf16;
  if (text == "F32") return DType::kFp32;
  if (text == "F64") return DType::kFp64;
  return std::nullopt;
}

}  // namespace

void read_safetensors(const std::string& path, Contents& to) {
  const std::uint64_t size = file_size(path);
  const ReadBytes read = bytes_of_file(path);
  const auto refuse = [&](const std::string& why) {
    return Error(fmt::format(
        "{} is not a whole safetensors file: {}. Copy it again, or write it again with save_file.",
        path, why));
  };
  if (size < 8)
    throw refuse(fmt::format("it has {} bytes, and the header's length alone takes 8", size));
  std::uint64_t length = 0;
  std::memcpy(&length, read(0, 8).data(), 8);
  if (length > size - 8)
    throw refuse(
        fmt::format("its header is said to have {} bytes, and the file has {}", length, size));
  const std::vector<std::byte> bytes = read(8, length);
  const char* text = reinterpret_cast<const char*>(bytes.data());
  const Json header = Json::parse(text, text + bytes.size(), nullptr, false);
  if (!header.is_object()) throw refuse("its header is not a JSON object");
  const std::uint64_t data = 8 + length;

  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw refuse("its __metadata__ is not an object");
      for (const auto& [key, value] : entry.items())
        if (value.is_string()) to.settings.emplace(key, value.get<std::string>());
      continue;
    }
    Array array;
    array.file = path;
    array.name = name;
    std::vector<std::uint64_t> range;
    try {
      array.type = entry.at("dtype").get<std::string>();
      array.shape = entry.at("shape").get<std::vector<std::int64_t>>();
      range = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
    } catch (const Json::exception&) {
      throw refuse(fmt::format("its entry {} has no dtype, shape or data_offsets", name));
    }
    array.dtype = dtype_of(array.type);
    if (range.size() != 2 || range[0] > range[1] || range[1] > size - data)
      throw refuse(
          fmt::format("{} lies at bytes [{}] of {}", name, fmt::join(range, ", "), size - data));
    const std::uint64_t held = range[1] - range[0];
    if (array.dtype && static_cast<std::uint64_t>(array.size()) * size_of(*array.dtype) != held)
      throw refuse(fmt::format("{} has {} bytes, which {} {} does not take", name, held, array.type,
                               shape_text(array.shape)));
    array.bytes = held;
    array.offset = data + range[0];
    array.read = [read, begin = data + range[0]](std::uint64_t at, std::uint64_t n) {
      return read(begin + at, n);
    };
    to.arrays.push_back(std::move(array));
  }
}

}  // namespace attn_diag::files
