// What one run of a kernel says, on the host or on a GPU, and whether two say the same.
#pragma once

#include <string>
#include <vector>

namespace attn_diag::gpu_check {

struct BackendVerdict {
  enum class Kind { kAgrees, kDiverges, kDidNotComplete, kHangs } kind = Kind::kDidNotComplete;
  std::vector<std::string> tensors;  // that diverge, sorted
  std::string message;               // why it did not complete
};

// The verdict of `attn-diag run --json`.
BackendVerdict read_run(int exit_code, bool timed_out, const std::string& out,
                        const std::string& err);

// "diverges in lse, o"
std::string in_words(const BackendVerdict& verdict);

// Both agree, both diverge in the same tensors, or neither completes.
bool same_verdict(const BackendVerdict& host, const BackendVerdict& gpu);

// Whether these are what a kernel of the pairs should give: one with nothing wrong must run and agree on both.
bool as_expected(const BackendVerdict& host, const BackendVerdict& gpu, bool broken);

// What `attn-diag check --json` found that lets a GPU and the host differ: "check: latent race: ..."; "" if
// it found nothing.
std::string reason_of(int exit_code, const std::string& out);

}  // namespace attn_diag::gpu_check
