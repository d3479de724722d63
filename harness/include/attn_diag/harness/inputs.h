// The q, k and v of a case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/shared_bytes.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

struct InputData {
  // In the problem's dtype and layout: quantised once, given to both sides.
  SharedBytes q, k, v;
  std::string kind;
  std::uint64_t seed = 0;
  double scale = 1;
  bool has_nonfinite = false;  // a NaN or infinity in q, k or v: allowed, and worth saying
};

// What make_inputs can make, and what each is good for.
struct InputKindInfo {
  const char* name;
  const char* summary;
};
const std::vector<InputKindInfo>& input_kinds();

// q, k, v of one kind, times `scale`. Element (b, h, s, d) depends on its coordinates, the seed,
// the kind and the scale alone, not on layout or threads (kinds whose scores follow a plan: also on
// sizes and softmax_scale). docs/inputs.md says what each kind promises.
// Throws Error for an unknown kind or a problem that check_problem refuses.
InputData make_inputs(const Problem& problem, const std::string& kind, std::uint64_t seed,
                      double scale);

// True if a NaN or an infinity is among the elements.
bool has_nonfinite(const std::vector<std::byte>& elements, DType dtype);

}  // namespace attn_diag
