// Flags of attn-diag diagnose, besides those of a case.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct DiagnoseFlags {
  std::vector<std::string> why_not;
  bool no_pairs = false, active = false;
};

inline constexpr const char* kDiagnoseSummary =
    "The name of the bug: which known mistake reproduces the wrong numbers";
inline constexpr const char* kDiagnoseFooter = R"(
Computes what every bug of the catalogue (docs/catalogue.md) would have made of the inputs, and names
the one that reproduces what was recorded, within rounding, where the others do not. What the inputs cannot
tell apart is listed, with the experiment that would (docs/diagnosing.md).
A file is a dump, or HDF5, .npy, .npz or safetensors of any program with q, k, v, o and maybe lse
(docs/files.md); then --layout, --dtype, --mask, --softmax-scale, --tile and --num-splits say what it does not.

Examples:
  attn-diag diagnose --kernel split_k@reduce-counts-l-twice --mask causal
  attn-diag diagnose failing.h5
  attn-diag diagnose case.safetensors --mask causal --o attn.wrong_out
  attn-diag diagnose failing.h5 --why-not temperature
  attn-diag diagnose --kernel ./libmine.so:mine --seqlen 1000 --json

Exit codes: 0 nothing is wrong; 1 something is, named or not; 2 could not diagnose; 3 internal error.)";

void add_diagnose_flags(CLI::App& app, DiagnoseFlags& flags);

}  // namespace attn_diag::cli
