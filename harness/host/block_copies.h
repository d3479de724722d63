// Asynchronous copies and cuda::barrier: who waits, and when copies land.
#pragma once

#include "attn_diag_host/async_copy.h"
#include "attn_diag_host/block_barrier.h"
#include "harness/host/async_copies.h"
#include "harness/host/block_context.h"

namespace attn_diag::host {

class __attribute__((visibility("hidden"))) BlockCopies {
 public:
  explicit BlockCopies(BlockContext& block) : x_block(block) {}

  CopiesInFlight& in_flight() { return x_copies; }
  void thread_exited(unsigned thread) {
    if (x_copies.any()) x_copies.drop(thread);
  }
  // Notes copies that nobody waited for; drops those of an abandoned block.
  void end_block(bool abandoned);

  void copy(const AsyncCopy& copy, const void* barrier, std::uintptr_t pc, std::uintptr_t frame);
  void commit();
  void wait(std::size_t prior, std::uintptr_t pc, std::uintptr_t frame);
  void barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file, int line,
                    std::uintptr_t pc);
  std::uint32_t barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop,
                               const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file, int line,
                    std::uintptr_t pc, std::uintptr_t frame);

 private:
  void check_copy(const AsyncCopy& copy);
  void check_barrier(const BlockBarrier* barrier, const char* file, int line);

  BlockContext& x_block;
  CopiesInFlight x_copies{kMaxThreads};
};

}  // namespace attn_diag::host
