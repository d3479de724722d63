// From a case that fails to the smallest that fails in the same way: `attn-diag shrink`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/experiment.h"
#include "attn_diag/harness/trace.h"
#include "harness/shrink/cases.h"

namespace attn_diag::shrink {

struct ShrinkOptions {
  double seconds = 120;           // for all of it
  int processes = 0;              // at the same time; 0: all cores
  bool keep_values = false;       // numbers stay as they are
  bool lines = false;             // the line that trace names must stay, too
  Judge judge;                    // of cases, in this process; else they are traced in others
  std::vector<std::string> hold;  // names of sizes that stay: "head_dim"
  // Called from time to time: which step, and what is tried, with the seconds that are left.
  std::function<void(int step, int steps, const std::string& what)> on_step;
};

// A size, as it was and as it is, and what its neighbours said.
struct SizeReport {
  std::string name;  // "Sk"
  std::int64_t from = 0, to = 0, least = 1;
  struct Neighbour {
    std::int64_t size = 0;
    Said said = Said::kPasses;
    std::string what;  // of kOther
  };
  std::optional<Neighbour> below,
      above;                           // the next ones that were tried; refused ones are gone over
  std::optional<std::int64_t> passes;  // the largest below that passes
  std::int64_t smaller = 0;            // sizes below that the kernel takes
  std::int64_t smaller_tried = 0;      // and of these, those that were tried
};

struct ShrinkResult {
  bool fails = false;  // else there is nothing to make smaller: everything agrees
  Failure failure;     // of the smallest case; of the case as it was given where none is smaller
  TriedCase given, smallest;
  std::array<std::int64_t, 4> origin{};  // of the smallest in the given: batch, KV head, query, key
  TriedCase before_values;               // the smallest whose numbers are those that were given
  bool made = false;                     // before_values: its numbers are those of make_inputs()
  std::vector<SizeReport> sizes;         // those that could be smaller
  std::array<std::int64_t, 2>
      elements{};                 // of q, k and v of the smallest: all, and those that are not 0
  bool integers = false;          // all of them are
  int tried = 0, remembered = 0;  // trials, and those that the cache saved
  double seconds = 0;
  bool out_of_time = false;
  std::vector<std::string> notes;
  // The trace of the smallest case, where its run comes to an end; what it says is what was aimed at. `capture` is
  // of the run that shows it: with taps, or, where only the production kernel is wrong, without.
  Look look;
  std::optional<TraceResult> trace;
  Capture
      capture;  // always; of a judge's cases without a trace: without any tensor where there was no run
  bool shows_it = false;   // a comparison of `capture` alone tells
  bool with_taps = false;  // how it was run
};

// Runs cases in processes of its own. Throws Error where nothing can be said of the case that is given.
ShrinkResult shrink(const Experiment& experiment, const ShrinkOptions& options);

}  // namespace attn_diag::shrink
