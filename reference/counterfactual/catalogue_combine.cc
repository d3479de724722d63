// F22 to F25b: the merge of splits.
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

Deviation scaled(std::int32_t split, double factor) {
  Deviation d;
  d.combine.scaled_split = split;
  d.combine.factor = factor;
  return d;
}

const Entry kEntries[] = {
    {{.id = "split-dropped",
      .statement = "one split is left out of the merge",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split"},
      .citation = "flash-attention#2388",
      .remedy = "the number of splits the merge loops over, and who writes each partial",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) {
       const std::int32_t splits = c.geometry().num_splits;
       if (splits < 2) return;
       for (std::int32_t n = 0; n < splits; ++n) {
         if (n * c.geometry().tiles_per_split >= num_kv_tiles(c.problem(), c.geometry())) continue;
         out.add(scaled(n, 0), {{"split", static_cast<double>(n), ""}});
       }
     }},
};

}  // namespace

std::span<const Entry> combine_entries() { return kEntries; }

}  // namespace attn_diag::reference
