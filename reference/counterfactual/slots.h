// The keys that a kernel's tiles hold, in the order of its loop. A right kernel's slots are the keys;
// bugs add some: padding past the end, a key counted in two tiles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/counterfactual/prediction_inputs_data.h"
#include "reference/mask.h"

namespace attn_diag::reference {

struct Slots {
  Slots(const PredictionInputs::Data& c, const MaskChange& mask);

  bool plain;  // slot s is key s
  std::int32_t size = 0;
  std::vector<std::int32_t> tile_begin;  // (tiles + 1)
  std::vector<std::int32_t>
      position;                    // the key's index, which the mask sees; past the end: padding
  std::vector<std::int32_t> home;  // the cell of S and P it is recorded in, or -1

  KeyRange of_tile(std::int32_t tile) const {
    const auto t = static_cast<std::size_t>(tile);
    return {tile_begin[t], tile_begin[t + 1]};
  }
};

// Under a mask with these bugs; those of a right kernel are shared.
std::shared_ptr<const Slots> slots_of(const PredictionInputs::Data& c, const MaskChange& mask);

}  // namespace attn_diag::reference
