// Barriers: who waits, and who goes on when all have arrived.
#include "harness/host/block_barriers.h"

#include <algorithm>
#include <bit>

#include "harness/host/text.h"

namespace attn_diag::host {

BlockBarriers::BlockBarriers(BlockContext& block) : x_block(block) {
  block.describe_wait(Wait::kNamedBarrier, [this](const Fiber& fiber) {
    const NamedBarrier& barrier = x_named.barriers[fiber.mask];
    const unsigned threads = barrier.threads == 0 ? x_block.live() : barrier.threads;
    return concat("barrier ", fiber.mask, " (", barrier.arrived, " of ", threads, " threads)");
  });
}

void BlockBarriers::begin_block() {
  x_arrived = 0;
  x_differs = false;
  x_ayes = 0;
  x_named.open = 0;
}

// A thread has ended: those that wait for all of the block wait for one less.
void BlockBarriers::release_named_of_all() {
  for (std::uint32_t open = x_named.open; open != 0; open &= open - 1) {
    const auto id = static_cast<unsigned>(std::countr_zero(open));
    const NamedBarrier& barrier = x_named.barriers[id];
    if (barrier.threads == 0 && barrier.arrived == x_block.live()) release_named(id);
  }
}

BarrierVotes BlockBarriers::barrier_vote(int predicate, const char* file, int line,
                                         std::uintptr_t pc, std::uintptr_t frame) {
  x_ayes += predicate != 0;
  barrier(x_block, file, line, pc, frame);
  return x_votes;
}

// Out of line: the last thread to arrive.
__attribute__((noinline)) void BlockBarriers::pass() {
  release();
  x_block.switch_to_first();
}

void BlockBarriers::release() {
  if (x_differs) report_divergence();
  if ((x_named.open & 1u) != 0) report_barrier_zero();
  if (x_block.live() != x_block.threads()) note_exited_threads();
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->block_barrier();
  x_votes = {x_ayes, static_cast<int>(x_arrived)};
  x_ayes = 0;
  x_arrived = 0;
  x_block.let_all_go_on();
}

void BlockBarriers::named_barrier(unsigned id, unsigned threads, bool wait, const char* file,
                                  int line, std::uintptr_t pc, std::uintptr_t frame) {
  const bool whole_block = threads == 0 || threads == x_block.threads();
  if (id == 0 && whole_block && wait && (x_named.open & 1u) == 0) {
    barrier_vote(0, file, line, pc, frame);
    return;
  }
  check_named(id, threads, wait, file, line);
  Fiber& fiber = x_block.arrive(Wait::kNamedBarrier, file, line, pc, frame);
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
    record_named(id, concat("with a count of ", threads, ", where others came with ",
                            barrier.threads, " at ", barrier.file, ':', barrier.line));
    x_block.leave_for_good();
  }
  if ((barrier.came[thread / 64] & bit) != 0) {
    record_named(id, "a second time before the threads it waits for have arrived");
    x_block.leave_for_good();
  }
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->arrive(thread, id);
  barrier.came[thread / 64] |= bit;
  if (wait) barrier.waiting[thread / 64] |= bit;
  ++barrier.arrived;
  const bool complete =
      barrier.arrived == (threads == 0 ? x_block.live() : std::min(threads, x_block.threads()));
  if (!wait) fiber.wait = Wait::kNone;
  if (!complete) {
    if (wait) x_block.wait_for_others(fiber);
  } else {
    release_named(id);
    if (wait) x_block.switch_to_anyone();
  }
  if (wait && x_block.check() != nullptr) [[unlikely]]
    x_block.check()->leave_named(thread, id, file, line);
}

void BlockBarriers::release_named(unsigned id) {
  x_named.open &= ~(1u << id);
  const NamedBarrier& barrier = x_named.barriers[id];
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->complete(id);
  for (unsigned w = 0; w < x_block.words(); ++w) x_block.let_word_go_on(w, barrier.waiting[w]);
}

void BlockBarriers::check_named(unsigned id, unsigned threads, bool wait, const char* file,
                                int line) {
  const char* what = nullptr;
  if (id >= NamedBarriers::kCount)
    what = "; a block has barriers 0 to 15";
  else if (threads % kWarpSize != 0)
    what = "; a count is a multiple of 32";
  else if (threads > (x_block.threads() + kWarpSize - 1) / kWarpSize * kWarpSize)
    what = "; that is more threads than the block has";
  else if (threads == 0 && !wait)
    what = "; bar.arrive needs a count";
  else if (id == 0 && x_arrived != 0)
    what = "; threads of the block wait at __syncthreads, which is barrier 0 too";
  if (what == nullptr) return;
  x_block.record(
      LaunchFindingKind::kBarrierDivergence,
      concat(x_block.thread_name(x_block.current()), " arrives at barrier ", id,
             " with a count of ", threads, what, ", at ", file, ':', line),
      "Name one of the barriers 1 to 15 and the number of threads that use it, whole warps", file,
      line);
  x_block.leave_for_good();
}

void BlockBarriers::record_named(unsigned id, const std::string& what) {
  const Fiber& fiber = x_block.current();
  x_block.record(
      LaunchFindingKind::kBarrierDivergence,
      concat(x_block.thread_name(fiber), " arrives at barrier ", id, ' ', what, ", at ", fiber.file,
             ':', fiber.line),
      "All threads that sync at or arrive at a barrier name the same count, and each comes once "
      "in a phase",
      fiber.file, fiber.line);
}

void BlockBarriers::note_open() const {
  if (x_named.open == 0) return;
  const auto id = static_cast<unsigned>(std::countr_zero(x_named.open));
  const NamedBarrier& barrier = x_named.barriers[id];
  x_block.note(concat(x_block.where(), ": ", barrier.arrived, " threads arrived at barrier ", id,
                      " at ", barrier.file, ':', barrier.line,
                      ", but the block ended before the other ", barrier.threads - barrier.arrived,
                      " came."));
}

void BlockBarriers::report_divergence() {
  // The last thread to arrive may still be marked runnable; it waits too.
  x_block.stop_all();
  x_block.record(
      LaunchFindingKind::kBarrierDivergence,
      concat("threads of the block wait at different __syncthreads(): ", x_block.waiting_list()),
      "All threads of a block that have not returned must reach the same __syncthreads(); move "
      "it out of the branch",
      x_file, x_line);
  x_block.leave_for_good();
}

void BlockBarriers::report_barrier_zero() {
  const NamedBarrier& zero = x_named.barriers[0];
  x_block.record(
      LaunchFindingKind::kBarrierDivergence,
      concat(zero.arrived, " threads have arrived at barrier 0 with a count of ", zero.threads,
             " at ", zero.file, ':', zero.line, ", and ", x_arrived, " wait at __syncthreads at ",
             x_file, ':', x_line, ", which is barrier 0 too"),
      "Use barriers 1 to 15 for a part of the block", zero.file, zero.line);
  x_block.leave_for_good();
}

void BlockBarriers::note_exited_threads() {
  if (x_block.check() != nullptr)
    x_block.check()->threads_returned(x_block.threads() - x_block.live(), x_file, x_line);
  if (x_block.has_note()) return;
  x_block.note(concat(x_block.where(), ": ", x_block.threads() - x_block.live(), " of ",
                      x_block.threads(), " threads had returned before __syncthreads() at ", x_file,
                      ':', x_line, " (legal since Volta: they no longer count)."));
}

}  // namespace attn_diag::host
