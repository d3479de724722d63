// One row of S from its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag::xraying {

// What is known of a row.
struct RowInput {
  std::span<const double> weight;  // by key
  // Errors of a weight, as in Weights; relative inf: nothing is known of the row.
  double relative = 0, absolute = 0;
  std::optional<double> lse;  // as the kernel wrote it
  // The reference's, with their rounding bounds.
  const double* score = nullptr;
  const double* score_bound = nullptr;
  double reference_lse = 0, lse_bound = 0;
};

struct RowScores {
  // By key. Uncertainty inf: too small to be seen. -inf with uncertainty 0: no weight, where there should
  // have been one or none.
  std::vector<double> score, uncertainty;
  bool without_lse = false;  // fixed by the reference's lse, or by where the scores agree with its
  double anchor = 0;         // what was added to ln weight
};

void scores_of_row(const RowInput& row, RowScores& out);

// m, l and P of the row in the tiles and frame of a geometry: dense by tile and by key, with uncertainties.
struct RowTiles {
  std::vector<double> m, l, p, m_uncertainty, l_uncertainty, p_uncertainty;
};
void tiles_of_row(const RowInput& row, const RowScores& scores, const Problem& problem,
                  const Geometry& geometry, RowTiles& out);

}  // namespace attn_diag::xraying
