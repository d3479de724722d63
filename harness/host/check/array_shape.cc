#include "harness/host/check/array_shape.h"

#include <charconv>
#include <cstddef>

#include "harness/host/text.h"

namespace attn_diag::host {

std::string ArrayShape::declared() const {
  std::string text;
  for (const std::uint64_t extent : extents) text += concat('[', extent, ']');
  return text;
}

ArrayShape read_shape(const std::uint64_t* words) {
  if (words == nullptr) return {};
  return {{words + 2, words + 2 + words[0]}, words[1]};
}

ArrayShape parse_shape(std::string_view text) {
  ArrayShape shape;
  for (;;) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number == 0) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) {
      shape.element_bytes = number;
      return shape;
    }
    if (text.front() != 'x') return {};
    text.remove_prefix(1);
    shape.extents.push_back(number);
  }
}

std::string part_at(const ArrayShape& shape, std::int64_t offset, std::uint32_t dimension) {
  std::int64_t bytes = static_cast<std::int64_t>(shape.element_bytes);
  for (const std::uint64_t extent : shape.extents) bytes *= static_cast<std::int64_t>(extent);
  std::string text;
  for (std::size_t i = 0; i < shape.extents.size() && i < dimension; ++i) {
    bytes /= static_cast<std::int64_t>(shape.extents[i]);
    std::int64_t index = offset / bytes;
    if (index * bytes > offset) --index;  // before the begin
    offset -= index * bytes;
    text += concat('[', index, ']');
  }
  return text;
}

ArrayElement element_at(const ArrayShape& shape, std::int64_t offset) {
  const auto bytes = static_cast<std::int64_t>(shape.element_bytes);
  const std::int64_t byte = (offset % bytes + bytes) % bytes;
  return {part_at(shape, offset, static_cast<std::uint32_t>(shape.extents.size())),
          static_cast<unsigned>(byte)};
}

}  // namespace attn_diag::host
