// Numerical diagnostics and invariants as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/numerics.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

struct NumericsView {
  std::string subject;  // "fa1 on host", or a file
  const Capture* capture = nullptr;
  std::optional<Numerics> numerics;  // none: invariants alone
  std::vector<InvariantResult> invariants;
  std::optional<DriftReport> drift;
  std::string baseline, written;  // files; empty: none
  std::string baseline_run;       // "split_k, 2026-11-24 ..., build 1a2b": what the baseline is of
  std::string reproduce;          // one shell line

  // An invariant that is broken and a drift count as a divergence.
  Answer answer() const;
};

std::string numerics_headline(const NumericsView& view);
std::string numerics_text(const NumericsView& view, const Style& style, bool verdict_only);
std::string invariants_text(const std::vector<InvariantResult>& all, const Style& style);
Json numerics_json(const NumericsView& view, const CommandContext& context);

}  // namespace attn_diag::report
