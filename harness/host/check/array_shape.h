// The extents of an array of a kernel's source, and names of its elements by them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::host {

// `float sQ[30][32]` has extents 30 and 32 and element_bytes 4. No extents: not known, or no array.
struct ArrayShape {
  std::vector<std::uint64_t> extents;
  std::uint64_t element_bytes = 0;

  bool is_known() const { return !extents.empty(); }
  std::string declared() const;  // "[30][32]"
};

// As instrumented code has it (callouts::kAbout); null: not known.
ArrayShape read_shape(const std::uint64_t* words);
// Reads "30x32x4", as symbols have it. A text that is no shape gives a shape that is not known.
ArrayShape parse_shape(std::string_view text);

struct ArrayElement {
  std::string indices;  // "[30][0]": the first may be outside of what is declared
  unsigned byte = 0;    // within the element
};
// The element that has a byte of a known shape, as if there were more rows before and behind it.
ArrayElement element_at(const ArrayShape& shape, std::int64_t offset);
// The first `dimension` indices of the part of the array that begins at `offset`.
std::string part_at(const ArrayShape& shape, std::int64_t offset, std::uint32_t dimension);

// What an index or a report is about, as instrumented code says beforehand.
struct AboutVariable {
  const char* name = nullptr;
  const std::uint64_t* shape = nullptr;
  std::int64_t offset = 0;
  std::uint32_t dimension = 0;
};

}  // namespace attn_diag::host
