// Where the kernel stores o: which row's element ends up in a cell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "reference/counterfactual/evaluator.h"

namespace attn_diag::reference {

// The place of a row among those of which the first `rows_owned` have a warp.
inline std::int32_t place_in_run(const PredictionInputs::Data& c, const StoreChange& change,
                                 std::int32_t query) {
  const std::int32_t block_m = c.geometry.tile.block_m;
  return query % block_m % (change.owned_of > 0 ? change.owned_of : block_m);
}

// Whether some warp has the row: none of its tensors is written otherwise.
inline bool owns(const PredictionInputs::Data& c, const StoreChange& change, std::int32_t query) {
  const std::int32_t block_m = c.geometry.tile.block_m;
  if (change.whole_tiles && query >= c.problem.seqlen_q / block_m * block_m) return false;
  const std::int32_t row = query % block_m - change.unowned_first;
  if (row >= 0 && row < change.unowned_rows) return false;
  return change.rows_owned == 0 || place_in_run(c, change, query) < change.rows_owned;
}

// The query whose sums are taken for those of one that no warp has; none: nobody's.
inline std::optional<std::int32_t> left_over(const PredictionInputs::Data& c,
                                             const StoreChange& change, std::int32_t query) {
  if (change.unwritten != Unwritten::kOfRowBefore || change.rows_owned == 0) return std::nullopt;
  return query - place_in_run(c, change, query) + change.rows_owned - 1;
}

// Whose lse stands in the place of `row`; none: nobody's.
std::optional<RowIndex> lse_source(const Problem& p, LsePlace place, const RowIndex& row);

class StoredOutput {
 public:
  StoredOutput(const PredictionInputs::Data& c, const StoreChange& change, Evaluator& evaluator)
      : c_(c), change_(change), evaluator_(evaluator) {}

  // The cells of o that belong to `row`; value, bound, known and unwritten are (head_dim_v).
  void cells(const RowIndex& row, double* value, double* bound, std::uint8_t* known,
             std::uint8_t* unwritten);

 private:
  struct Source {
    RowIndex row;
    std::int32_t column;
  };
  struct Stored {
    std::vector<double> o, error;
    bool known;
  };
  // None: nobody writes there, or what is outside the output.
  std::optional<Source> source_of(const RowIndex& row, std::int32_t column) const;
  const Stored& stored(const RowIndex& row);

  const PredictionInputs::Data& c_;
  const StoreChange& change_;
  Evaluator& evaluator_;
  RowState state_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Stored> rows_;
};

}  // namespace attn_diag::reference
