// What a block has to report: its finding, its notes, who waits where; and how a thread leaves the block
// after a finding.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/block_threads.h"

namespace attn_diag::host {

struct BlockOutcome {
  std::optional<LaunchFinding> finding;
  std::string note;                 // empty: none
  std::vector<std::string> latent;  // notes that are the same for every block
  std::uint64_t steps = 0;
  bool silent = false;  // it polled or looped without end: perhaps for what another failed to do
};

class __attribute__((visibility("hidden"))) BlockReporter : public BlockThreads {
 public:
  // Record the finding; then leave_for_good() abandons the block. Apart, so that no string is left behind
  // on the fiber's stack.
  // `who`: the thread that stopped at that line; null: the one that runs.
  void record(LaunchFindingKind kind, const std::string& what, const std::string& advice,
              const char* file, int line, const Fiber* who = nullptr);
  [[noreturn]] void leave_for_good();
  // Several notes are put one after another.
  void note(const std::string& text);
  bool has_note() const { return !x_outcome.note.empty(); }
  // Notes, once per place and launch, what is right only on some devices or for a reason that CUDA does not give.
  void note_latent(const std::string& what, const std::string& why, const char* file, int line);

  std::string where() const;
  std::string thread_name(const Fiber& fiber) const;
  // "threads (0..15,0,0), (0..31,1,0) at ...; thread (3,0,0) at ..."
  std::string waiting_list() const;
  // For debuggers: which threads run, wait and have ended.
  std::string threads_text() const;
  // What a thread of this kind waits for, in words; where it does so is added.
  using WaitText = std::function<std::string(const Fiber&)>;
  void describe_wait(Wait wait, WaitText text);

 protected:
  void begin_launch(const LaunchPlan& plan, void (*fiber_main)());
  void begin_block();
  void record_silence();
  void record_exception(const std::string& what);
  [[noreturn]] void report_stuck();
  [[noreturn]] void report_step_limit();

  bool x_abandoned = false;
  BlockOutcome x_outcome;

 private:
  std::string waits_at(const Fiber& fiber) const;
  // What may be return addresses into the kernel's library on the stack of a thread, innermost first.
  std::vector<StackWord> returns_of(const Fiber& fiber) const;

  std::array<WaitText, kNumWaits> x_wait_text;
  std::vector<std::pair<const char*, int>> x_latent_places;  // noted in this launch
};

}  // namespace attn_diag::host
