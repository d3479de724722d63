// Flags of `attn-diag adapt`.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

inline constexpr const char* kAdaptSummary =
    "Drafts the adapter that attn-diag build needs for a source";
inline constexpr const char* kAdaptFooter = R"(
Finds the host functions that launch, and kernels that nothing launches, reads their parameters by name,
type and order, and writes the ten lines that call the best of them, with what it declares of dtypes,
head dims, masks, layout, tiles and arithmetic. The source is read as it is, without its headers that
are not beside it. What was found, what was guessed and why, and what could not be told goes to
stderr. The adapter includes the source. --try builds and runs the draft, where nothing but the kernel's own
code tells the layout with either, and keeps the one that agrees.

Examples:
  attn-diag adapt my_kernel.cu
  attn-diag adapt my_kernel.cu -o adapter.cu
  attn-diag adapt my_kernel.cu --function flash_fwd -o adapter.cu
  attn-diag adapt my_kernel.cu --try -o adapter.cu
  attn-diag build my_kernel.cu --adapter adapter.cu -o my_kernel.so
  attn-diag run --kernel ./my_kernel.so

Exit codes: 0 drafted; 2 nothing to draft, unreadable source, FILE exists.)";

struct AdaptFlags {
  std::string function, layout;
  bool try_out = false;
};

void add_adapt_flags(CLI::App& app, AdaptFlags& flags);

}  // namespace attn_diag::cli
