// Barriers named by number: bar.sync and bar.arrive.
#include "attn_diag_host/named_barrier.h"

#include <algorithm>

#include "harness/host/block_runner_switch.h"
#include "harness/host/text.h"

namespace attn_diag::host {

void named_barrier_sync(unsigned id, unsigned threads, const char* file, int line) {
  BlockRunner::current()->named_barrier(id, threads, true, file, line,
                                        address(__builtin_return_address(0)),
                                        address(__builtin_frame_address(0)));
}

void named_barrier_arrive(unsigned id, unsigned threads, const char* file, int line) {
  BlockRunner::current()->named_barrier(id, threads, false, file, line,
                                        address(__builtin_return_address(0)),
                                        address(__builtin_frame_address(0)));
}

void BlockRunner::named_barrier(unsigned id, unsigned threads, bool wait, const char* file,
                                int line, std::uintptr_t pc, std::uintptr_t frame) {
  const bool whole_block = threads == 0 || threads == x_threads;
  if (id == 0 && whole_block && wait && (x_named.open & 1u) == 0) {
    barrier_vote(0, file, line, pc, frame);
    return;
  }
  check_named_barrier(id, threads, wait, file, line);
  Fiber& fiber = arrive(Wait::kNamedBarrier, file, line, pc, frame);
  fiber.mask = id;
  NamedBarrier& barrier = x_named.barriers[id];
  if ((x_named.open >> id & 1u) == 0) {
    x_named.open |= 1u << id;
    barrier = {};
    barrier.threads = threads;
    barrier.file = file;
    barrier.line = line;
  }
  const unsigned thread = fiber.index.linear;
  const std::uint64_t bit = 1ull << (thread % 64);
  if (barrier.threads != threads) {
    record_named_barrier(id, concat("with a count of ", threads, ", where others came with ",
                                    barrier.threads, " at ", barrier.file, ':', barrier.line));
    leave_for_good();
  }
  if ((barrier.came[thread / 64] & bit) != 0) {
    record_named_barrier(id, "a second time before the threads it waits for have arrived");
    leave_for_good();
  }
  if (x_check != nullptr) [[unlikely]]
    x_check->arrive(thread, id);
  barrier.came[thread / 64] |= bit;
  if (wait) barrier.waiting[thread / 64] |= bit;
  ++barrier.arrived;
  const bool complete = barrier.arrived == (threads == 0 ? x_live : std::min(threads, x_threads));
  if (!wait) fiber.wait = Wait::kNone;
  if (!complete) {
    if (wait) wait_for_others(fiber);
  } else {
    release_named_barrier(id);
    if (wait) switch_to(is_lockstep() ? *next_lockstep() : first_thread());
  }
  if (wait && x_check != nullptr) [[unlikely]]
    x_check->leave(thread, id);
}

void BlockRunner::release_named_barrier(unsigned id) {
  x_named.open &= ~(1u << id);
  const NamedBarrier& barrier = x_named.barriers[id];
  if (x_check != nullptr) [[unlikely]]
    x_check->complete(id);
  for (unsigned w = 0; w < x_words; ++w) x_runnable[w] |= barrier.waiting[w];
}

// A thread has ended: those that wait for all of the block wait for one less.
void BlockRunner::release_named_barriers_of_all() {
  for (std::uint32_t open = x_named.open; open != 0; open &= open - 1) {
    const auto id = static_cast<unsigned>(std::countr_zero(open));
    const NamedBarrier& barrier = x_named.barriers[id];
    if (barrier.threads == 0 && barrier.arrived == x_live) release_named_barrier(id);
  }
}

void BlockRunner::check_named_barrier(unsigned id, unsigned threads, bool wait, const char* file,
                                      int line) {
  const char* what = nullptr;
  if (id >= NamedBarriers::kCount)
    what = "; a block has barriers 0 to 15";
  else if (threads % kWarpSize != 0)
    what = "; a count is a multiple of 32";
  else if (threads > (x_threads + kWarpSize - 1) / kWarpSize * kWarpSize)
    what = "; that is more threads than the block has";
  else if (threads == 0 && !wait)
    what = "; bar.arrive needs a count";
  else if (id == 0 && x_arrived != 0)
    what = "; threads of the block wait at __syncthreads, which is barrier 0 too";
  if (what == nullptr) return;
  record(FindingKind::kBarrierDivergence,
         concat(thread_name(*x_current), " arrives at barrier ", id, " with a count of ", threads,
                what, ", at ", file, ':', line),
         "Name one of the barriers 1 to 15 and the number of threads that use it, whole warps",
         file, line);
  leave_for_good();
}

void BlockRunner::record_named_barrier(unsigned id, const std::string& what) {
  const Fiber& fiber = *x_current;
  record(FindingKind::kBarrierDivergence,
         concat(thread_name(fiber), " arrives at barrier ", id, ' ', what, ", at ", fiber.file, ':',
                fiber.line),
         "All threads that sync at or arrive at a barrier name the same count, and each comes once "
         "in a phase",
         fiber.file, fiber.line);
}

void BlockRunner::note_open_named_barriers() {
  const auto id = static_cast<unsigned>(std::countr_zero(x_named.open));
  const NamedBarrier& barrier = x_named.barriers[id];
  x_outcome.note = concat(x_outcome.note, x_outcome.note.empty() ? "" : " ", where(), ": ",
                          barrier.arrived, " threads arrived at barrier ", id, " at ", barrier.file,
                          ':', barrier.line, ", but the block ended before the other ",
                          barrier.threads - barrier.arrived, " came.");
}

}  // namespace attn_diag::host
