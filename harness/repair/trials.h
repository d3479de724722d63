// What an edited kernel is held to: cases with their sizes, orders of threads, and what check says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attn_diag/harness/experiment.h"
#include "harness/repair/places.h"

namespace attn_diag::repair {

struct Trial {
  std::string words;  // "H=2 S=40 D=32 fp32 causal, schedule reverse"
  Problem problem;
  std::shared_ptr<const InputData> inputs;
  RunOptions run;
  Tolerance tolerance;
  bool check = false;    // races, reads of what nobody wrote, bounds: nothing may be found
  bool other = false;    // of another size, type or mask, or of numbers about the limits of types
  bool smaller = false;  // the case as it is given, with fewer queries and keys, or one head

  bool instrumented() const;  // needs x.lockstep.so
};

struct TrialVerdict {
  bool agrees = false;
  std::int64_t wrong = -1;  // elements; -1: not counted
  std::string what;         // why not: an error, how much is wrong
  bool refused = false;     // the kernel does not take such a case, and says so
  bool left_out = false;    // it launches what the library was not built for: nothing is known
  // Lines that check names, or an error, in their order.
  std::vector<SourcePlace> places;
  bool order = false;  // check finds that threads do not wait for each other
  std::vector<std::string>
      kernels;  // that it launched, as host::launched_kernels(), where that is asked for
};

// The case as it is given, under its own schedule, is the first, then smaller ones like it, the smallest first. Then
// other orders of threads and other bytes in memory; lockstep and check, where `instrumented`; other numbers; lengths
// about the edges of tiles, masks, types and head counts that the kernel declares. Cases that it refuses are left out.
// All are small.
std::vector<Trial> make_trials(const Experiment& experiment, bool instrumented);

// Runs it, in this process. `spec`: a library, as Kernel::load takes it. `edit`: the number of the one that is chosen;
// 0: none, or the library has no choice.
// `noted`: sets entry n where the run comes by the place whose first edit has number n. `name_kernels`: TrialVerdict has
// them, for which the library's symbols are read.
TrialVerdict run_trial(const std::string& spec, const Trial& trial, int edit,
                       std::vector<bool>* noted = nullptr, bool name_kernels = false);

}  // namespace attn_diag::repair
