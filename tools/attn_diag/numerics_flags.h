// Flags of attn-diag numerics, besides those of a case.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct NumericsFlags {
  bool invariants = false;
  std::string baseline, write_baseline;
};

inline constexpr const char* kNumericsSummary =
    "How large errors are, where, and which rounding makes them; invariants";
inline constexpr const char* kNumericsFooter = R"(
Of a run, or of a dump: errors of every tensor in ULPs and over their bounds, their sign and where
they are; what each declared rounding adds (P in 16 bits, sums in fp32, ...), against what is
observed; what cancels; NaN, infinities, subnormals, and which operands made the first of them; and
what holds of attention without a reference (docs/numerics.md).

--invariants computes no reference at all: what was recorded is held against itself, and the kernel
is run again with constant v, with keys, heads and batch entries permuted, and with another number
of splits.

Examples:
  attn-diag numerics --kernel fused_wmma --mask causal
  attn-diag numerics failing.h5
  attn-diag numerics --kernel fa1 --seqlen 4096 --stage full --invariants
  attn-diag numerics --kernel fa1 --write-baseline fa1.json
  attn-diag numerics --kernel fa1 --baseline fa1.json

Exit codes: 0 within the bounds, no invariant broken, nothing drifted; 1 not; 2 could not be told;
3 internal error.)";

void add_numerics_flags(CLI::App& app, NumericsFlags& flags);

}  // namespace attn_diag::cli
