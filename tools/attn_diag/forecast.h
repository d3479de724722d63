// How long a run will take and how much memory, said before it begins where that is much.
#pragma once

#include <optional>
#include <string>

#include "tools/attn_diag/cases.h"

namespace attn_diag::cli {

struct Forecast {
  double kernel_seconds = 0;     // of one run on the host executor; of a GPU not foreseen: 0
  double reference_seconds = 0;  // of the rows that are judged
  double bytes = 0;              // of the capture, the kernel's memory and the reference
  double seconds() const { return kernel_seconds + reference_seconds; }
};

// From the rates of a small part, which is run for it: a few tiles of one head, a few rows of the reference. nullopt where
// a run takes no more than some seconds and 1 GiB, by counted operations, or the part cannot be run.
std::optional<Forecast> forecast(const Kernel& kernel, const RequestedCase& one);

// Says it on stderr, with the flag of a run that takes less; nothing where there is nothing to say.
void say_forecast(const Kernel& kernel, const RequestedCase& one, bool each_run = false);

}  // namespace attn_diag::cli
