// A trace as text for people: the verdict first, the evidence below it.
#pragma once

#include <array>
#include <string>

#include "attn_diag/harness/trace.h"
#include "harness/report/text.h"

namespace attn_diag::report {

struct TraceTextOptions {
  Style style;
  Tolerance tolerance;    // as the trace was made with
  std::string check;      // the shell line that looks for races and unwritten reads; empty: none
  std::string repair;     // the shell line that tries edits; empty: none
  std::string reproduce;  // one shell line
  bool verdict_only = false;
  bool tables = false;  // what variables hold, and what lines load
};

// "reduce diverges first, head 0, query 1, query tile 0, kv tile 0"
std::string first_text(const FirstDivergence& first, const Problem& problem);

// "o(0, 0, 1, 3) is 0.5, expected 0.25 within 1e-05: 2.5e+04x what rounding can explain"
std::string first_cell_text(const FirstDivergence& first, const Tolerance& tolerance,
                            const Style& style);
// Its index, as the tensor's axes have it.
std::array<std::int64_t, 5> index_of(const FirstDivergence& first);

// One line without its newline: "DIVERGES: ..." or "AGREES: ...".
std::string trace_headline(const TraceResult& result);

std::string trace_text(const TraceResult& result, const TraceTextOptions& options);

}  // namespace attn_diag::report
