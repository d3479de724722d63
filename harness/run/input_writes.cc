#include "harness/run/input_writes.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace attn_diag {
namespace {

std::optional<InputWrite> find_write(char name, const std::vector<std::byte>& given,
                                     const GuardedBuffer& after, const Problem& p,
                                     std::int64_t heads, std::int64_t rows, std::int64_t width) {
  if (given.empty() || std::memcmp(given.data(), after.data(), given.size()) == 0)
    return std::nullopt;
  const std::size_t size = size_of(p.dtype);
  InputWrite found;
  found.input = name;
  for_each_element(p.layout, p.batch, heads, rows, width,
                   [&](const auto& index, std::int64_t cell) {
                     const std::size_t at = static_cast<std::size_t>(cell) * size;
                     if (std::memcmp(given.data() + at, after.data() + at, size) == 0) return;
                     if (found.cells++ > 0) return;
                     found.index = index;
                     found.before = load_element(given.data(), p.dtype, cell);
                     found.after = load_element(after.data(), p.dtype, cell);
                   });
  return found;
}

}  // namespace

std::vector<InputWrite> find_input_writes(const Problem& p, const InputData& given,
                                          const Between& between, const RunMemory& after) {
  std::vector<InputWrite> writes;
  const auto look = [&](std::optional<InputWrite> found) {
    if (found) writes.push_back(*found);
  };
  look(find_write('q', given.q, after.q, p, p.heads, p.seqlen_q, p.head_dim));
  look(find_write('k', given.k, after.k, p, p.kv_heads, p.seqlen_k, p.head_dim));
  look(find_write('v', given.v, after.v, p, p.kv_heads, p.seqlen_k, p.head_dim_v));
  Problem dense = p;
  dense.dtype = between.type;
  dense.layout = Layout::kBHSD;
  look(find_write(*between_name(between.part), between.given, after.between, dense, p.heads,
                  p.seqlen_q, p.seqlen_k));
  return writes;
}

std::string input_write_text(const InputWrite& w) {
  return fmt::format(
      "the kernel wrote {0}, an input: {1} of its elements, first {0}({2}, {3}, {4}, {5}), which "
      "was "
      "{6:.9g} and is {7:.9g}",
      w.input, w.cells, w.index[0], w.index[1], w.index[2], w.index[3], w.before, w.after);
}

std::string input_writes_text(const std::vector<InputWrite>& writes) {
  std::string text;
  for (const InputWrite& write : writes)
    text += fmt::format("{}{}", text.empty() ? "" : "; ", input_write_text(write));
  return text;
}

}  // namespace attn_diag
