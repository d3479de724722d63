// Random attention cases for tests: shapes, masks, tilings, layouts, dtypes, inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag::reference::testing {

struct Case {
  Problem problem;
  Geometry geometry;
  std::vector<std::byte> q, k, v;
  double input_scale = 1;

  Inputs inputs() const { return {q.data(), k.data(), v.data()}; }
  std::string describe() const;  // for INFO in a failing test
};

// Sizes up to `largest_seqlen`; input magnitudes from 1e-3 to 30.
Case random_case(std::mt19937_64& random, std::int32_t largest_seqlen, bool with_fp64);

// q, k and v of a case, normally distributed with the case's input scale, in the problem's dtype.
void fill_inputs(std::mt19937_64& random, Case& c);

// Element (batch, head, position, d) of a tensor with `heads`, `seqlen`, `dim` in the problem's
// dtype and layout.
double element(const std::vector<std::byte>& data, const Problem& problem, std::int32_t heads,
               std::int32_t seqlen, std::int32_t dim, std::int32_t batch, std::int32_t head,
               std::int32_t position, std::int32_t d);

}  // namespace attn_diag::reference::testing
