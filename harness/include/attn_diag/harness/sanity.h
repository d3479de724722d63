// Does the production kernel give the same bits again? Asked before any verdict: what moves is a race, a
// read of memory that was never written, or sums in the order of arrival, and no formula explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/run.h"

namespace attn_diag {

enum class SanityFinding : std::uint8_t {
  kNotChecked,
  kSteady,          // the same bits in every run
  kReadsUnwritten,  // they depend on what was in some memory before the run
  kDependsOnOrder,  // they depend on the order in which threads run
  kMoves,           // two runs differ though nothing was changed
};

struct Sanity {
  SanityFinding finding = SanityFinding::kNotChecked;
  int runs = 0;  // of the production kernel, after the first

  // Memory whose contents before the run change o or lse, each found by changing it alone.
  struct Culprit {
    GivenMemory memory = GivenMemory::kWorkspace;
    std::uint8_t byte = 0;       // what it was filled with, instead of 0xFF
    std::int64_t differing = 0;  // cells of o and lse; 0: the kernel did not complete
    std::optional<Repetition::Cell> first;
    std::string error;  // where it did not complete
  };
  std::vector<Culprit> culprits;
  // Of kDependsOnOrder and kMoves: every run agrees with the reference. Sums by atomics or under a lock are
  // so, in whose order threads or blocks arrive, and races whose effect is below rounding.
  bool within_bounds = false;
  std::string detail;  // what was run and what came out, complete sentences

  bool moved() const {
    return finding != SanityFinding::kNotChecked && finding != SanityFinding::kSteady;
  }
};

}  // namespace attn_diag
