// Does the production kernel give the same bits again? Asked before any verdict: what moves by more than
// rounding is a race or a read of memory that was never written, and no formula explains it.
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
  kBlocksRace,  // threads of two blocks race, as attn-diag check finds, whether or not it showed in these runs
  kMoves,  // two runs differ though nothing was changed, or nothing that accounts for it alone
};

// What a GPU most likely makes of a kernel whose result moves by more than rounding: its warps mostly stay
// converged, as in lockstep; its new memory mostly holds zeros, but shared memory, and what lies around a buffer,
// holds numbers of somebody else. kEither: its warps and blocks come in no order, and the order decides.
enum class OnGpu : std::uint8_t { kUnknown, kRight, kWrong, kEither };

struct Sanity {
  SanityFinding finding = SanityFinding::kNotChecked;
  int runs = 0;        // of the production kernel, after the first
  double seconds = 0;  // that they took

  // Memory whose contents before the run change o or lse, each found by changing it alone.
  struct Culprit {
    GivenMemory memory = GivenMemory::kWorkspace;
    std::uint8_t byte = 0;       // what it was filled with, instead of 0xFF
    std::int64_t differing = 0;  // cells of o and lse; 0: the kernel did not complete
    std::optional<Repetition::Cell> first;
    std::string error;  // where it did not complete
  };
  std::vector<Culprit> culprits;
  bool by_copies = false;  // kDependsOnOrder: on when asynchronous copies land
  // The result moves, but no run is further from the first than rounding can take two runs, and all are right or
  // all wrong: sums by atomics or under a lock, which are added as threads or blocks arrive, and races with an
  // effect below rounding. What is wrong then is wrong for another reason.
  bool within_bounds = false;
  std::string detail;  // what was run and what came out, complete sentences

  // Where the result moves by more.
  OnGpu on_gpu = OnGpu::kUnknown;
  // How the kernel was run where its result holds still. There it is right, or it is wrong for
  // another reason, or by the same one.
  struct Calm {
    std::string schedule;
    MemoryFill fill;
    bool right = false;
    std::string text;  // "in lockstep, with zeros in the workspace"
  };
  std::optional<Calm> calm;

  // What attn-diag check finds in the same case, where it was asked.
  struct Checked {
    bool race = false, unwritten = false;  // of any that may change a result
    bool early_copy = false;               // an asynchronous copy is used before it has landed
    std::string other;                     // the first error of another kind
  };
  std::optional<Checked> checked;

  bool moved() const {
    return finding != SanityFinding::kNotChecked && finding != SanityFinding::kSteady;
  }
  // By more than rounding.
  bool unsound() const { return moved() && !within_bounds; }
  // Right only by what this machine or a GPU happens to do.
  bool latent() const { return unsound() && on_gpu == OnGpu::kRight; }
};

}  // namespace attn_diag
