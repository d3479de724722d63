// The smallest edit of a kernel's source under which everything agrees, found by trying: `attn-diag repair`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attn_diag/harness/experiment.h"
#include "harness/repair/places.h"
#include "harness/toolchain/build/settings.h"

namespace attn_diag::repair {

struct RepairOptions {
  // Where edits are tried first. Empty: at the lines that trace suspects, then at those that check names.
  std::vector<SourcePlace> suspects;
  bool order = false;    // threads do not wait for each other, as check has found at these
  double seconds = 120;  // for all of it
  int processes = 0;     // at the same time; 0: all cores
  // What agrees is built by itself, and held to lockstep and check, too. Otherwise only barriers are: they make many a
  // case agree, wherever they stand.
  bool build_each = true;
  // Called from time to time: how many of how many edits were tried, and what is being done.
  std::function<void(int tried, int edits, const std::string& what)> on_step;
};

// An edit under which all cases agree.
struct RepairedEdit {
  std::string file, shown;  // its path, and as reports have it
  int line = 0;
  std::string operation;  // "relational operator"
  std::string diff;       // unified
  bool built =
      false;  // by itself, with all cases, lockstep and check; else tried as one of many in a library
  std::string before, after;  // the file's text
};

// An edit that makes most of the first case right, but not all of it, or not all cases.
struct HelpfulEdit {
  std::string file, shown;
  int line = 0;
  std::string operation;
  std::string before;             // the file's text
  std::string diff;               // unified
  std::int64_t left = 0, of = 0;  // wrong elements of that case: under the edit, and without it
  // Where the case itself agrees in every order of threads, with other bytes in memory and other numbers: how many cases
  // agree, of how many, and the first that does not; empty: none disagrees, but there was no time for those that take a
  // build of the edit alone. 0: that is not so.
  std::size_t agreed = 0, cases = 0;
  std::string but;

  bool is_sound() const { return agreed > 0; }
  bool agrees_so_far() const { return is_sound() && but.empty(); }
};

enum class RepairVerdict { kFound, kNothing, kAgreesAlready };

struct RepairResult {
  RepairVerdict verdict = RepairVerdict::kNothing;
  std::vector<RepairedEdit> edits;    // those built first, then the smallest first; up to five
  std::vector<HelpfulEdit> helpful;   // where there are none: of up to five lines, the best first
  int also = 0;                       // more than those that make the cases agree
  std::string failing;                // the case that edits were tried on first
  std::string failing_how;            // what was wrong with it
  std::vector<SourcePlace> suspects;  // where edits were tried first
  std::vector<std::string> cases;     // all that the edits found agree on
  int proposed = 0, tried = 0, built = 0, not_possible = 0;
  double seconds = 0;
  bool out_of_time = false;
  std::string reason;  // why nothing was found
  std::vector<std::string> notes;
};

// Builds and runs edited copies, in processes of their own; the user's files are only read. Throws Error where that
// cannot be: a library that `attn-diag build` did not make, sources that have changed since or are not there.
RepairResult repair(const Experiment& experiment, const RepairOptions& options,
                    const build::Settings& settings);

// Puts the edit into the user's file. Throws Error if the file is no longer as it was, or cannot be written.
void apply_edit(const RepairedEdit& edit);

}  // namespace attn_diag::repair
