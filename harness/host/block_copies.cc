#include "harness/host/block_copies.h"

#include "harness/host/text.h"

namespace attn_diag::host {

void BlockCopies::copy(const AsyncCopy& copy, const void* barrier, std::uintptr_t pc,
                       std::uintptr_t frame) {
  check_copy(copy);
  if (x_block.plan().async_copies == AsyncCopies::kEarly) {
    x_block.step_together(pc, frame);
    land(copy, false);
    return;
  }
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->async_copy(x_block.current_thread(), address(copy.to), address(copy.from),
                                copy.bytes, copy.zeros, pc);
  if (barrier != nullptr)
    x_copies.add(barrier, copy);
  else
    x_copies.add(x_block.current_thread(), copy);
}

void BlockCopies::commit() {
  if (x_copies.any()) x_copies.commit(x_block.current_thread());
}

void BlockCopies::wait(std::size_t prior, std::uintptr_t pc, std::uintptr_t frame) {
  x_block.step_together(pc, frame);
  if (!x_copies.any()) return;
  const unsigned thread = x_block.current_thread();
  x_copies.land(thread, prior);
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->waited_for_copies(thread, !x_copies.has(thread), pc);
}

void BlockCopies::barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file,
                               int line, std::uintptr_t pc) {
  if (expected < 1) {
    x_block.record(
        LaunchFindingKind::kBarrierDivergence,
        concat(x_block.thread_name(x_block.current()), " initialises a cuda::barrier for ",
               expected, " arrivals at ", file, ':', line),
        "It must be at least 1", file, line);
    x_block.leave_for_good();
  }
  x_block.note_access(Access::kWrite, barrier, sizeof *barrier, pc);
  *barrier = {expected, expected, 0};
}

std::uint32_t BlockCopies::barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop,
                                          const char* file, int line, std::uintptr_t pc,
                                          std::uintptr_t frame) {
  x_block.step_together(pc, frame);
  check_barrier(barrier, file, line);
  const std::uint32_t phase = barrier->phase;
  if (count < 1 || count > barrier->missing) {
    x_block.record(LaunchFindingKind::kBarrierDivergence,
                   concat(x_block.thread_name(x_block.current()), " arrives ", count,
                          " times at a cuda::barrier that lacks ", barrier->missing, " of ",
                          barrier->expected, " arrivals, at ", file, ':', line),
                   "Initialise it with the number of threads that arrive in each phase", file,
                   line);
    x_block.leave_for_good();
  }
  x_block.note_barrier(barrier, sizeof *barrier, pc);
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->arrive(x_block.current_thread(), address(barrier));
  barrier->missing -= count;
  if (drop) --barrier->expected;
  if (barrier->missing > 0) return phase;
  barrier->missing = barrier->expected;
  ++barrier->phase;
  if (x_copies.any()) x_copies.land(barrier);
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->complete(address(barrier));
  for (unsigned t = 0; t < x_block.threads(); ++t)
    if (x_block.fiber(t).wait == Wait::kBarrierObject && x_block.fiber(t).value == address(barrier))
      x_block.let_go_on(t);
  return phase;
}

void BlockCopies::barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file,
                               int line, std::uintptr_t pc, std::uintptr_t frame) {
  check_barrier(barrier, file, line);
  x_block.note_barrier(barrier, sizeof *barrier, pc);
  Fiber& fiber = x_block.arrive(Wait::kBarrierObject, file, line, pc, frame);
  fiber.value = address(barrier);
  if (phase == barrier->phase) x_block.wait_for_others(fiber);
  x_block.current().wait = Wait::kNone;
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->leave(x_block.current_thread(), address(barrier));
}

void BlockCopies::check_copy(const AsyncCopy& copy) {
  const std::uintptr_t to = address(copy.to), from = address(copy.from);
  const char* what = nullptr;
  const char* advice = nullptr;
  if (copy.around_l1 && copy.bytes != 16) {
    what = "by cp.async.cg, which copies 16";
    advice = "Copy 4 or 8 bytes by cp.async.ca";
  } else if (copy.bytes != 4 && copy.bytes != 8 && copy.bytes != 16) {
    what = "of a size that is not 4, 8 or 16 bytes";
    advice = "Split it, or copy with plain loads and stores";
  } else if (!x_block.memory().may_be_aligned(to, copy.bytes) || from % copy.bytes != 0) {
    what = from % copy.bytes == 0 ? "whose destination is not aligned to its size"
                                  : "whose source is not aligned to its size";
    advice = "Both addresses must be multiples of the bytes copied";
  } else if (copy.zeros > copy.bytes) {
    what = "that fills with more zeros than it has bytes";
    advice = "zfill is at most the size";
  } else if (!x_block.memory().is_shared(to)) {
    what = "whose destination is not in shared memory";
    advice = "Only copies from global to shared memory are asynchronous";
  } else if (copy.zeros < copy.bytes &&
             (x_block.memory().is_shared(from) || x_block.is_own(from))) {
    what = "whose source is not in global memory";
    advice = "Only copies from global to shared memory are asynchronous";
  } else {
    return;
  }
  x_block.record(LaunchFindingKind::kAsyncCopyMisuse,
                 concat(x_block.thread_name(x_block.current()), " issues an asynchronous copy of ",
                        copy.bytes, " bytes ", what, " at ", copy.file, ':', copy.line),
                 advice, copy.file, copy.line);
  x_block.leave_for_good();
}

void BlockCopies::check_barrier(const BlockBarrier* barrier, const char* file, int line) {
  if (barrier->expected >= 0 && barrier->missing > 0) return;
  x_block.record(LaunchFindingKind::kBarrierDivergence,
                 concat(x_block.thread_name(x_block.current()),
                        " uses a cuda::barrier that was not initialised at ", file, ':', line),
                 "One thread calls init(&barrier, count), then __syncthreads(), before any uses it",
                 file, line);
  x_block.leave_for_good();
}

void BlockCopies::end_block(bool abandoned) {
  if (!x_copies.take_any()) return;
  if (abandoned) {
    x_copies = CopiesInFlight(kMaxThreads);
    return;
  }
  x_copies.drop_bound();
  const DroppedCopies dropped = x_copies.take_dropped();
  if (dropped.count == 0) return;
  x_block.note(concat(x_block.where(), ": ", dropped.count,
                      " asynchronous copies were never waited for and did not land; the first was "
                      "issued at ",
                      dropped.file, ':', dropped.line, '.'));
}

}  // namespace attn_diag::host
