// Where edits are tried first: what trace's lines and check suspect, unless the user names lines.
#pragma once

#include <string>
#include <vector>

#include "harness/base/helper.h"
#include "harness/repair/edit.h"
#include "harness/repair/trials.h"

namespace attn_diag::repair {

// One after the other, the likeliest first.
struct Suspects {
  std::vector<SourcePlace> by_user, by_error, by_check, by_lines;
  bool order = false;  // threads do not wait for each other, says check

  bool empty() const {
    return by_user.empty() && by_error.empty() && by_check.empty() && by_lines.empty();
  }
  // Each once; only the user's, where there are some. Lines that check names come before those of trace: after a race or
  // an index out of bounds, numbers begin to be wrong at a later line.
  std::vector<SourcePlace> in_order() const;
};

// Whether numbers of this trial can be followed to lines: they are wrong, and not by the order of threads.
bool has_lines(const Trial& trial);
// What trace would suspect. Empty: nothing, or it could not look.
std::vector<SourcePlace> suspected_lines(const std::string& spec, const Trial& trial);

Bytes to_bytes(const TrialVerdict& verdict);
TrialVerdict verdict_of(WireReader& from);

// Edits in the order in which they are to be tried: usual ones before unusual ones, those near a suspect before
// others, small ones before large ones.
std::vector<int> ordered(const Program& program, const std::vector<Edit>& edits,
                         const Suspects& suspects);

}  // namespace attn_diag::repair
