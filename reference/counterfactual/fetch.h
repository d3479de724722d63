// Which elements of q, k and v a kernel with a fetch bug reads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/counterfactual/prediction_inputs_data.h"
#include "reference/mask.h"

namespace attn_diag::reference {

// Rows of an operand, gathered: dense (positions, columns).
struct Gathered {
  std::vector<double> values;
  std::vector<std::uint8_t> known;  // (positions): 0 where an element is not known
  bool all_known = true;
  std::vector<double> norms;  // of each row; gather_all() fills them
};

struct FetchRequest {
  std::int32_t batch = 0;
  std::int32_t query_head = 0;
  bool is_query = false;       // q: heads are query heads, tiles are query tiles
  std::int32_t tile_rows = 1;  // rows of the operand in one tile
  std::int32_t columns = 0;    // of each row; past the operand's own: what follows in memory
  Padding padding = Padding::kNotCounted;  // what positions past the end hold
  KeyRange visited;                        // the tiles of the loop
  std::int32_t tiles_per_split = 1;
  bool operator==(const FetchRequest&) const = default;
};

// The head of q, or of k and v, that is read for a query head. It may not exist.
std::int32_t head_read(const Problem& p, HeadMap map, std::int32_t query_head, bool is_query);

void gather(const PredictionInputs::Data& c, const Operand& operand, const FetchChange& change,
            FetchRequest request, std::span<const std::int32_t> positions, Gathered& out);

// All positions of an operand in order. Kept for the next call with the same arguments on this thread: of
// many deviations that are tried one after another most read the same.
std::shared_ptr<const Gathered> gather_all(const PredictionInputs::Data& c, const Operand& operand,
                                           const FetchChange& change, const FetchRequest& request,
                                           std::span<const std::int32_t> positions);

}  // namespace attn_diag::reference
