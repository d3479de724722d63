// What the parts of a block share: its threads, who runs next, what is reported, its shared memory. A
// part (barriers, collectives, matrices, copies, mbarriers) knows this and not the other parts; the runner
// has them all.
#pragma once

#include "harness/host/block_memory.h"
#include "harness/host/block_scheduler.h"

namespace attn_diag::host {

class __attribute__((visibility("hidden"))) BlockContext : public BlockScheduler {
 public:
  BlockMemory& memory() { return x_memory; }
  const BlockMemory& memory() const { return x_memory; }

  // Tells the checker of memory that the executor reads or writes for the current thread.
  void note_access(Access kind, const void* at, std::size_t bytes, std::uintptr_t pc,
                   std::uint32_t flags = 0) const {
    if (x_check != nullptr) [[unlikely]]
      x_check->access(x_current->index.linear, {kind, address(at), bytes, flags}, pc);
  }
  // The same of a barrier object, as it is used.
  void note_barrier(const void* at, std::size_t bytes, std::uintptr_t pc) const {
    if (x_check != nullptr) [[unlikely]]
      x_check->use_barrier(x_current->index.linear, address(at), bytes, pc);
  }
  // The current thread has passed an address that the executor does not look at.
  void note_ignored_address() const {
    if (x_check != nullptr) [[unlikely]]
      x_check->ignores_address(x_current->index.linear);
  }

 protected:
  BlockMemory x_memory{*this};
};

}  // namespace attn_diag::host
