// Flags of attn-diag xray, besides those of a case.
#pragma once

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct XrayFlags {
  bool properties = false;
};

inline constexpr const char* kXraySummary =
    "S, m, l and P of a kernel without taps, read out of o; properties";
inline constexpr const char* kXrayFooter = R"(
Runs the production kernel with one-hot v, head_dim_v keys at a time, so that o is what the kernel has as
normalised P; with its lse, S follows. What o's type rounds away is known cell by cell, and is not judged
(docs/xray.md). The dump compares, shows and diagnoses as any other.

Examples:
  attn-diag xray --kernel fa1
  attn-diag xray --kernel ./libmine.so:mine --mask causal -o mine.h5
  attn-diag xray --kernel ./libmine.so:mine --inputs probe --properties

Exit codes: 0 agrees, and every property tried holds; 1 not; 2 could not look; 3 internal error.)";

void add_xray_flags(CLI::App& app, XrayFlags& flags);

}  // namespace attn_diag::cli
