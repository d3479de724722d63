// What `attn-diag shrink` found, as text and as JSON.
#pragma once

#include <string>

#include "harness/report/json.h"
#include "harness/report/text.h"
#include "harness/shrink/shrink.h"

namespace attn_diag::report {

struct ShrinkView {
  shrink::ShrinkResult result;
  std::string kernel, backend;  // as typed, "host"
  Tolerance tolerance;
  bool of_function =
      false;              // of a caller: no tiles, and what is left behind is the caller's to say
  std::string reproduce;  // one shell line
  std::string
      trace_before;  // one that traces the case before its numbers were changed; empty: there is none
  // What was written, empty: nothing; and the shell line that looks at the dump.
  std::string dump, test_file, sheet_file, look;
};

// One line without its newline: "SMALLEST: o is wrong, B=1 ..." or "AGREES: ...".
std::string shrink_headline(const ShrinkView& view);
std::string shrink_text(const ShrinkView& view, const Style& style, bool verdict_only);
Json shrink_json(const ShrinkView& view, const CommandContext& context);

// A Catch2 test of the smallest case, which fails until the kernel is mended: a whole file.
std::string catch2_test(const ShrinkView& view);

// The smallest case as a sheet like those of fixtures/hand: what is expected at every step, and what the kernel made of
// those that were recorded. Empty where the case is too large for a person (worth_a_sheet), or has not been run.
std::string worked_sheet(const ShrinkView& view);
bool worth_a_sheet(const Problem& problem);

}  // namespace attn_diag::report
