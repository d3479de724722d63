// The barriers of a block: __syncthreads and those named by number.
#pragma once

#include "attn_diag_host/synchronize.h"
#include "harness/host/block_context.h"
#include "harness/host/named_barriers.h"

namespace attn_diag::host {

class __attribute__((visibility("hidden"))) BlockBarriers {
 public:
  explicit BlockBarriers(BlockContext& block);

  void begin_block();
  // A thread has ended: the others may have waited for it alone. True: they go on from __syncthreads.
  bool thread_exited() {
    if (x_named.open != 0) [[unlikely]]
      release_named_of_all();
    if (x_arrived != x_block.live()) return false;
    release();
    return true;
  }
  // The block has ended.
  void note_open() const;

  // `block` is x_block, passed so that finding it takes no load: barriers decide how fast the executor is.
  void barrier(BlockContext& block, const char* file, int line, std::uintptr_t pc,
               std::uintptr_t frame);
  BarrierVotes barrier_vote(int predicate, const char* file, int line, std::uintptr_t pc,
                            std::uintptr_t frame);
  // `wait`: until as many threads have arrived as are named; 0: all.
  void named_barrier(unsigned id, unsigned threads, bool wait, const char* file, int line,
                     std::uintptr_t pc, std::uintptr_t frame);

 private:
  void pass();
  void release();
  void release_named(unsigned id);
  void release_named_of_all();
  void check_named(unsigned id, unsigned threads, bool wait, const char* file, int line);
  void record_named(unsigned id, const std::string& what);
  [[noreturn]] void report_divergence();
  [[noreturn]] void report_barrier_zero();
  void note_exited_threads();

  BlockContext& x_block;
  unsigned x_arrived = 0;
  const char* x_file = nullptr;  // of the first that arrived
  int x_line = 0;
  bool x_differs = false;  // others arrived elsewhere
  int x_ayes = 0;          // of the barrier being waited for
  BarrierVotes x_votes{};  // of the one last released
  NamedBarriers x_named;
};

__attribute__((always_inline)) inline void BlockBarriers::barrier(BlockContext& block,
                                                                  const char* file, int line,
                                                                  std::uintptr_t pc,
                                                                  std::uintptr_t frame) {
  Fiber& fiber = block.arrive(Wait::kBarrier, file, line, pc, frame);
  if (x_arrived == 0) {
    x_file = file;
    x_line = line;
  } else if (line != x_line || file != x_file) [[unlikely]] {
    x_differs = x_differs || line != x_line || __builtin_strcmp(file, x_file) != 0;
  }
  if (++x_arrived == block.live()) [[unlikely]]
    pass();
  else
    block.wait_for_others(fiber);
}

}  // namespace attn_diag::host
