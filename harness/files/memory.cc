// Arrays in memory.
#include <algorithm>
#include <cstring>

#include "attn_diag/harness/files.h"
#include "harness/capture/capture_fields.h"
#include "harness/files/array.h"

namespace attn_diag::files {
namespace {

// The element of row-major index `at`, and how many of those that follow it lie beside it.
struct Run {
  std::int64_t offset = 0, length = 1;
};
Run run_at(const ForeignArray& array, const std::vector<std::int64_t>& strides, std::int64_t at) {
  Run run;
  for (std::size_t axis = array.shape.size(); axis-- > 0;) {
    const std::int64_t extent = array.shape[axis], i = at % extent;
    if (axis + 1 == array.shape.size() && strides[axis] == 1) run.length = extent - i;
    run.offset += i * strides[axis];
    at /= extent;
  }
  return run;
}

std::vector<std::int64_t> strides_of(const ForeignArray& array) {
  if (!array.strides.empty() || array.shape.empty()) return array.strides;
  std::vector<std::int64_t> strides(array.shape.size(), 1);
  for (std::size_t axis = strides.size() - 1; axis-- > 0;)
    strides[axis] = strides[axis + 1] * array.shape[axis + 1];
  return strides;
}

}  // namespace

Array array_in_memory(const ForeignArray& from) {
  Array array;
  array.name = name(from.role);
  array.shape = from.shape;
  array.type = text(from.dtype);
  array.dtype = from.dtype;
  const std::size_t element = size_of(from.dtype);
  array.bytes = static_cast<std::uint64_t>(array.size()) * element;
  // load() asks for whole elements.
  array.read = [from, strides = strides_of(from), element](std::uint64_t begin,
                                                           std::uint64_t size) {
    std::vector<std::byte> bytes(size);
    const auto* const data = static_cast<const std::byte*>(from.data);
    auto at = static_cast<std::int64_t>(begin / element);
    for (std::uint64_t done = 0; done < size;) {
      const Run run = run_at(from, strides, at);
      const std::uint64_t n =
          std::min(static_cast<std::uint64_t>(run.length) * element, size - done);
      std::memcpy(bytes.data() + done, data + run.offset * static_cast<std::int64_t>(element), n);
      done += n;
      at += run.length;
    }
    return bytes;
  };
  return array;
}

}  // namespace attn_diag::files
