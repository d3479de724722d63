// Flags of attn-diag shrink, besides those of a case.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct ShrinkFlags {
  std::string time_limit, test, sheet;
  bool keep_values = false;
};

inline constexpr const char* kShrinkSummary =
    "From a case that fails to the smallest that fails in the same way";
inline constexpr const char* kShrinkFooter = R"(
Tries smaller cases in processes of their own: batch, heads, lengths, head dimension, mask, tile and splits, then
simpler numbers: zeros, ones, integers. A case counts as failing if its verdict is of the same kind, the same tensor
is wrong first and wrong in the same way (numbers, NaN, infinite, never written); with --lines also the line. Of each
size it says what the neighbours do, by trying them. What a kernel does not take is gone over.

Examples:
  attn-diag shrink --kernel ./mine.so --mask causal --seqlen 300
  attn-diag shrink --kernel ./mine.so --seqlen 129 -o smallest.h5 --test smallest_test.cc
  attn-diag shrink --kernel ./mine.so --inputs failing.h5 --time-limit 30

Exit codes: 0 everything agrees, there is nothing to make smaller; 1 the case fails, and the smallest is shown; 2 could
not look; 3 internal error.)";

void add_shrink_flags(CLI::App& app, ShrinkFlags& flags);

}  // namespace attn_diag::cli
