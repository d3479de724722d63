// What several hypotheses predict for one set of inputs, beside one another: can a result tell them
// apart?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::matching {

class Contrast {
 public:
  // Predicts the tensors (bit t for Tensor t) of the rows under every deviation.
  Contrast(const reference::PredictionInputs& c, const std::vector<reference::RowIndex>& rows,
           const std::vector<reference::Deviation>& deviations, std::uint32_t tensors, int threads);

  std::size_t size() const { return x_predictions.size(); }
  // The cell at which two differ most, in the sum of their bounds: beyond 1 no result can be within the
  // bounds of both. 0 where they are the same, or where either is unknown.
  struct Gap {
    double over_bound = 0;
    Tensor tensor = Tensor::kO;
    std::size_t row = 0;
    double a = 0, b = 0;
  };
  Gap gap(std::size_t a, std::size_t b) const;
  bool apart(std::size_t a, std::size_t b) const;
  // Whether a hypothesis predicts all of its numbers: none is what lay in memory.
  bool knows_all(std::size_t a) const;
  // Whether all that both know is equal, to a part in a million of the largest value of its row.
  bool same(std::size_t a, std::size_t b) const;

 private:
  std::vector<reference::Prediction> x_predictions;
  std::size_t x_rows;
};

// Inputs for which hypotheses can be compared: of the problem's shape, of some kind that make_inputs has.
struct OtherInputs {
  std::string kind;
  reference::PredictionInputs data;
};
// `like` with other inputs: random, rising, and probes where there are such.
std::vector<OtherInputs> other_inputs(const reference::PredictionInputs& like);

// Up to n rows of a problem, spread.
std::vector<reference::RowIndex> rows_of(const Problem& problem, int n);

}  // namespace attn_diag::matching
