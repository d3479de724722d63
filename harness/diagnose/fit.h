// The free parameter of a hypothesis: found from a few rows, then snapped to a value with a name.
#pragma once

#include <span>
#include <vector>

#include "attn_diag/reference/counterfactual.h"
#include "harness/diagnose/judge.h"

namespace attn_diag::matching {

// How general a candidate is. Where several account for everything, the least general is the answer.
enum class Generality : std::uint8_t {
  kFixed,   // no parameter was fitted
  kNamed,   // a fitted parameter is a value with a name
  kFitted,  // a fitted parameter is just a number
};

struct Fitted {
  reference::Variant variant;
  Generality generality = Generality::kFixed;
};

// `variant` with its free parameter, if it has one, at the value that accounts best for the wrong rows
// among the first `depth` of `rows`: searched from the parameter's starts, its named values and a grid (by orders of
// magnitude where its bounds are positive), then by golden section. A named value at which those rows
// are within their bounds is preferred, the nearest first.
Fitted fit(const Evidence& evidence, const reference::PredictionInputs& c,
           const reference::Variant& variant, const Rows& rows, std::size_t depth);

// The indices of at most n wrong rows among the first `depth`, those with a finite recorded number first.
std::vector<std::size_t> rows_to_fit(const Evidence& evidence, const Rows& rows, std::size_t depth,
                                     int n);

}  // namespace attn_diag::matching
