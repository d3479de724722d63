// Smaller cases out of a large one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attn_diag/harness/experiment.h"
#include "harness/shrink/trials.h"

namespace attn_diag::shrink {

// A block of a case: its sizes, and where it begins in the case's own batch entries, KV heads, queries and keys.
struct Block {
  Problem problem;
  TileShape tile;
  int num_splits = 0;
  std::array<std::int64_t, 4> origin{};  // batch, kv_head, query, key

  bool fits_into(const Problem& whole) const;
};

// The numbers of q, k and v that a block takes from `whole`, whose heads come in groups: head h of the block is in
// the group of its own KV head. Must fit.
InputData cut_out(const Problem& whole, const InputData& inputs, const Block& block);

// A block as a case that the kernel takes; nullopt: it does not, or there are no numbers for it. Larger blocks than
// `whole` get numbers as make_inputs() gives them, where those of `whole` are of that kind.
std::optional<TriedCase> case_of(const Experiment& whole, const Block& block);

// Whether make_inputs() gives the same numbers for the case.
bool made_by_kind(const TriedCase& one);

// softmax_scale is the default of its head_dim, and follows it.
bool has_default_scale(const Problem& problem);

// The numbers of a case, to be changed.
struct Numbers {
  std::array<std::vector<double>, 3> values;  // q, k, v, in the problem's layout
};
Numbers numbers_of(const TriedCase& one);
std::shared_ptr<const InputData> inputs_of(const Numbers& numbers, const Problem& problem);

// What is simplified together: the heads of q, k and v, their rows, their single elements. Each part is indices into
// one of the tensors.
struct Part {
  int tensor = 0;
  std::vector<std::int64_t> elements;
};
enum class PartSize { kHeads, kRows, kElements };
std::vector<Part> parts_of(const Problem& problem, PartSize size);

}  // namespace attn_diag::shrink
