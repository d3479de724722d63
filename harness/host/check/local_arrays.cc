#include "harness/host/check/local_arrays.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace attn_diag::host {

void LocalArrays::declare(std::uintptr_t begin, std::size_t bytes, const char* name,
                          ArrayShape shape) {
  std::erase_if(x_arrays, [&](const LocalArray& a) {
    return a.begin < begin + bytes && begin < a.begin + a.written.size();
  });
  LocalArray array;
  array.begin = begin;
  array.name = name;
  array.shape = std::move(shape);
  array.written.assign(bytes, false);
  array.contents.resize(bytes);
  std::memcpy(array.contents.data(), reinterpret_cast<const void*>(begin), bytes);
  x_arrays.push_back(std::move(array));
}

LocalArray* LocalArrays::find(std::uintptr_t at, std::uintptr_t frame) {
  while (!x_arrays.empty() && x_arrays.back().begin < frame) x_arrays.pop_back();
  for (LocalArray& array : x_arrays)
    if (at - array.begin < array.written.size()) return &array;
  return nullptr;
}

void LocalArrays::write(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame) {
  LocalArray* const array = find(at, frame);
  if (array == nullptr) return;
  const std::size_t first = at - array->begin;
  const std::size_t end = std::min(first + bytes, array->written.size());
  const auto begin = array->written.begin();
  std::fill(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end),
            true);
}

bool LocalArrays::is_written(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame) {
  while (!x_arrays.empty() && x_arrays.back().begin < frame) x_arrays.pop_back();
  for (const LocalArray& array : x_arrays) {
    const std::uintptr_t first = std::max(at, array.begin);
    const std::uintptr_t end = std::min(at + bytes, array.begin + array.written.size());
    for (std::uintptr_t i = first; i < end; ++i)
      if (!array.written[i - array.begin]) return false;
  }
  return true;
}

const LocalArray* LocalArrays::read(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame) {
  LocalArray* const array = find(at, frame);
  if (array == nullptr) return nullptr;
  const std::size_t first = at - array->begin;
  const std::size_t end = std::min(first + bytes, array->written.size());
  // Some bytes of a wide load may be padding: it counts only where none of its bytes was written.
  for (std::size_t i = first; i < end; ++i)
    if (array->written[i]) return nullptr;
  const bool as_declared = std::memcmp(reinterpret_cast<const void*>(array->begin + first),
                                       array->contents.data() + first, end - first) == 0;
  return as_declared ? array : nullptr;
}

}  // namespace attn_diag::host
