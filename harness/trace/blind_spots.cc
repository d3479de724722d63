#include "harness/trace/blind_spots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attn_diag {

std::vector<std::string> blind_spots(const Problem& problem, const Geometry& geometry) {
  std::vector<std::string> spots;
  const int tiles = num_kv_tiles(problem, geometry);
  if (tiles == 1) {
    spots.emplace_back(
        "the rescale between KV tiles (there is one KV tile; take a longer --seqlen or a smaller "
        "--tile)");
  } else if (geometry.has_split_merge && geometry.tiles_per_split == 1) {
    spots.push_back(fmt::format(
        "the recurrence within a split (every split holds one KV tile; take --num-splits {})",
        (tiles + 1) / 2));
  }
  if (geometry.has_split_merge && geometry.num_splits == 1)
    spots.emplace_back("the merge of splits (there is one split)");
  if (problem.seqlen_q % geometry.tile.block_m == 0 &&
      problem.seqlen_k % geometry.tile.block_n == 0)
    spots.emplace_back("tails (the tiles divide the sequences)");
  if (problem.mask.kind == MaskKind::kNone) spots.emplace_back("masks");
  if (problem.heads == problem.kv_heads) spots.emplace_back("grouped heads");
  if (problem.batch == 1) spots.emplace_back("more than one batch");
  return spots;
}

std::string describe_blind_spots(const Problem& problem, const Geometry& geometry) {
  const std::vector<std::string> spots = blind_spots(problem, geometry);
  return spots.empty() ? ""
                       : fmt::format("These sizes do not exercise: {}.", fmt::join(spots, "; "));
}

}  // namespace attn_diag
