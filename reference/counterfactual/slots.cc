#include "reference/counterfactual/slots.h"

#include <algorithm>

namespace attn_diag::reference {

namespace {

bool has_padding(const PredictionInputs::Data& c, const MaskChange& mask) {
  return mask.padding != Padding::kNotCounted && c.problem.seqlen_k % c.geometry.tile.block_n != 0;
}

bool is_plain(const PredictionInputs::Data& c, const MaskChange& mask) {
  return !has_padding(c, mask) && !mask.boundary_key_twice;
}

}  // namespace

std::shared_ptr<const Slots> slots_of(const PredictionInputs::Data& c, const MaskChange& mask) {
  return is_plain(c, mask) ? c.plain_slots : std::make_shared<const Slots>(c, mask);
}

Slots::Slots(const PredictionInputs::Data& c, const MaskChange& mask) : plain(is_plain(c, mask)) {
  const std::int32_t block_n = c.geometry.tile.block_n, seqlen = c.problem.seqlen_k;
  const bool padded = has_padding(c, mask);
  const std::int32_t counted_keys =
      mask.padded_keys > 0 ? seqlen + mask.padded_keys : c.tiles * block_n;
  tile_begin.push_back(0);
  for (std::int32_t t = 0; t < c.tiles; ++t) {
    const std::int32_t first = t * block_n;
    const std::int32_t keys = padded ? counted_keys : seqlen;
    const std::int32_t end = std::min(first + block_n, keys);
    for (std::int32_t j = first; j < end; ++j) {
      position.push_back(j);
      home.push_back(j < seqlen ? j : -1);
    }
    const bool ends = !mask.boundary_of_split || (t + 1) % c.geometry.tiles_per_split == 0;
    if (mask.boundary_key_twice && ends && end < seqlen) {
      position.push_back(end);
      home.push_back(-1);
    }
    tile_begin.push_back(static_cast<std::int32_t>(position.size()));
  }
  size = static_cast<std::int32_t>(position.size());
}

}  // namespace attn_diag::reference
