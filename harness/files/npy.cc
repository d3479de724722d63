// NumPy's .npy format, versions 1 to 3 (numpy/lib/format.py): "\x93NUMPY", two bytes of version, the
// length of the header in 2 or 4 bytes, a Python dict of descr, fortran_order and shape, the cells.
#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "harness/files/array.h"
#include "harness/files/scalar.h"

namespace attn_diag::files {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::string_view chars(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What stands behind 'key': in the header's dict; empty if it is not there.
std::string_view value_of(std::string_view dict, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{0}{1}{0}", quote, key);
    const std::size_t at = dict.find(quoted);
    if (at == std::string_view::npos) continue;
    std::string_view rest = dict.substr(at + quoted.size());
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return {};
    rest.remove_prefix(colon + 1);
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front())) != 0)
      rest.remove_prefix(1);
    return rest;
  }
  return {};
}

// "(2, 3)", "(5,)", "()"; older files have 2L for 2.
std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  if (text.empty() || text.front() != '(') return std::nullopt;
  text.remove_prefix(1);
  std::vector<std::int64_t> shape;
  while (true) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',' || text.front() == 'L'))
      text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
    if (text.front() == ')') return shape;
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc()) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

// No kind of NumPy's, and none that a file can spell.
constexpr char kBfloat16 = '\x01';

struct Type {
  char order = '|', kind = 'V';
  std::size_t size = 0;
};

std::optional<Type> parse_type(std::string_view value) {
  if (value.size() < 4 || (value.front() != '\'' && value.front() != '"')) return std::nullopt;
  const std::size_t end = value.find(value.front(), 1);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view text = value.substr(1, end - 1);
  Type type;
  if (text == "bfloat16") return Type{'<', kBfloat16, 2};  // of ml_dtypes
  if (text.size() < 3) return std::nullopt;
  type.order = text[0];
  type.kind = text[1];
  if (type.kind == kBfloat16) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data() + 2, text.data() + text.size(), type.size);
  constexpr std::size_t kMost = std::size_t{1} << 32;
  if (error != std::errc() || rest != text.data() + text.size() || type.size > kMost)
    return std::nullopt;
  return type;
}

std::string spelled(const Type& type) {
  const std::size_t bits = 8 * type.size;
  switch (type.kind) {
    case 'f':
      return fmt::format("float{}", bits);
    case kBfloat16:
      return "bfloat16";
    case 'i':
      return fmt::format("int{}", bits);
    case 'u':
      return fmt::format("uint{}", bits);
    case 'b':
      return "bool";
  }
  return fmt::format("{}{}", type.kind, type.size);
}

std::optional<DType> dtype_of(const Type& type) {
  if (type.kind == kBfloat16) return DType::kBf16;
  if (type.kind != 'f') return std::nullopt;
  if (type.size == 2) return DType::kFp16;
  if (type.size == 4) return DType::kFp32;
  if (type.size == 8) return DType::kFp64;
  return std::nullopt;
}

// A 0-d array as text: a number, a bool, or a string of ASCII.
std::optional<std::string> scalar_text(const Type& type, const std::vector<std::byte>& bytes) {
  if (type.kind == 'U') {  // UTF-32
    std::string text;
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      std::uint32_t c = 0;
      std::memcpy(&c, bytes.data() + i, 4);
      if (c == 0) break;
      if (c > 127) return std::nullopt;
      text += static_cast<char>(c);
    }
    return text;
  }
  return number_text(type.kind, type.size, bytes.data());
}

}  // namespace

void read_npy(const std::string& file, const std::string& name, const ReadBytes& read,
              std::uint64_t size, Contents& to) {
  static_assert(std::endian::native == std::endian::little);
  Array array;
  array.file = file;
  array.name = name;
  const std::string what = array.where();
  const auto refuse = [&](const std::string& why) -> Error {
    return Error(fmt::format(
        "{} is no .npy array that can be read: {}. Write it again with numpy.save.", what, why));
  };
  if (size < 12) throw refuse(fmt::format("it has {} bytes, fewer than a header", size));
  const std::vector<std::byte> start = read(0, 12);
  if (chars(start).substr(0, kMagic.size()) != kMagic)
    throw refuse("it does not begin with \\x93NUMPY");
  const int version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3)
    throw refuse(fmt::format("its format is version {}, and 1 to 3 are known", version));
  std::uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, version == 1 ? 2 : 4);
  const std::uint64_t begin = version == 1 ? 10 : 12;
  if (length > size - begin) throw refuse("it ends within its header");
  const std::vector<std::byte> header = read(begin, length);

  const std::string_view dict = chars(header);
  const auto type = parse_type(value_of(dict, "descr"));
  const auto shape = parse_shape(value_of(dict, "shape"));
  const std::string_view fortran = value_of(dict, "fortran_order");
  if (!shape || fortran.empty()) throw refuse(fmt::format("its header is '{}'", dict));
  array.shape = *shape;
  array.type = type ? spelled(*type) : "structured";
  const std::uint64_t offset = begin + length;
  const auto cells = static_cast<std::uint64_t>(array.size());
  if (!type || type->kind == 'O') {
    array.unreadable = "It holds Python objects or records: save plain numbers.";
  } else if (const std::uint64_t item = type->kind == 'U' ? 4 * type->size : type->size;
             item > 0 && cells > (size - offset) / item) {
    throw Error(fmt::format(
        "{} is truncated: {} cells of {} bytes are more than the {} bytes that follow its header. "
        "Copy or write it again.",
        what, cells, item, size - offset));
  } else {
    if (shape->empty() && type->order != '>') {
      if (const auto value = scalar_text(*type, read(offset, item))) {
        to.settings.emplace(name, *value);
        return;
      }
    }
    array.dtype = dtype_of(*type);
    array.opaque16 = type->size == 2 && (type->kind == 'u' || type->kind == 'V');
    if (type->order == '>')
      array.unreadable =
          "It is big-endian: save it with numpy.save(file, x.astype(x.dtype.newbyteorder('<'))).";
    else if (fortran.starts_with("True") && shape->size() > 1)
      array.unreadable =
          "Its cells are in Fortran order: save it with numpy.save(file, "
          "numpy.ascontiguousarray(x)).";
    array.bytes = cells * item;
    array.offset = offset;
    array.read = [read, offset](std::uint64_t at, std::uint64_t n) { return read(offset + at, n); };
  }
  to.arrays.push_back(std::move(array));
}

}  // namespace attn_diag::files
