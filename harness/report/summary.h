// Figures of several tensors taken together: of one stage, or of a whole comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/trace.h"

namespace attn_diag::report {

struct Summary {
  std::int64_t compared = 0, mismatched = 0, unjudged = 0;
  double max_err_over_bound = 0, max_abs_err = 0, max_ulp = 0, zeros_err_over_bound = 0;
  const TensorComparison* first_wrong = nullptr;  // in pipeline order

  Answer answer() const { return answer_of(compared, mismatched); }
};

// Sums up the tensors of one stage, or of all.
Summary summarise(const Comparison& comparison, std::optional<Stage> stage = std::nullopt);

// Cells that were never written or written more than once, over all tensors (or those of a stage).
std::int64_t coverage_faults(const Capture& capture, std::optional<Stage> stage = std::nullopt);

// Whether errors can be told in ULPs: cells differ, and some of them where ULPs mean something.
constexpr bool has_ulps(double max_ulp, double max_abs_err) {
  return max_ulp > 0 || max_abs_err == 0;
}

std::string_view name(Answer a);  // "agrees", "diverges", "could not compare"
std::string_view name(
    Verdict v);  // "agrees", "diverges", "exempt", "not reached", "not run", "not judged"
std::string_view name(ScheduleFinding f);
// The name as a word for JSON: "not_reached", "order_dependent".
std::string json_name(Answer a);
std::string json_name(Verdict v);
std::string json_name(ScheduleFinding f);

}  // namespace attn_diag::report
