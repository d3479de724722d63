// Asynchronous copies and cuda::barrier: who waits, and when copies land.
#include "attn_diag_host/async_copy.h"
#include "harness/host/block_runner_switch.h"
#include "harness/host/text.h"
#include "harness/host/values/recorder.h"

namespace attn_diag::host {

void async_copy(void* to, const void* from, std::size_t bytes, std::size_t zeros,
                const void* barrier, const char* file, int line, bool around_l1) {
  BlockRunner::current()->async_copy(
      {static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, zeros, file, line,
       around_l1, copied_at()},
      barrier, address(__builtin_return_address(0)), address(__builtin_frame_address(0)));
}

void async_commit() { BlockRunner::current()->async_commit(); }

void async_wait(std::size_t prior) {
  BlockRunner::current()->async_wait(prior, address(__builtin_return_address(0)),
                                     address(__builtin_frame_address(0)));
}

void barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file, int line) {
  BlockRunner::current()->barrier_init(barrier, expected, file, line);
}

std::uint32_t barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop, const char* file,
                             int line) {
  return BlockRunner::current()->barrier_arrive(barrier, count, drop, file, line,
                                                address(__builtin_return_address(0)),
                                                address(__builtin_frame_address(0)));
}

void barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file, int line) {
  BlockRunner::current()->barrier_wait(barrier, phase, file, line,
                                       address(__builtin_return_address(0)),
                                       address(__builtin_frame_address(0)));
}

void BlockRunner::async_copy(const AsyncCopy& copy, const void* barrier, std::uintptr_t pc,
                             std::uintptr_t frame) {
  check_copy(copy, pc);
  if (x_plan->async_copies == AsyncCopies::kEarly) {
    step_together(pc, frame);
    land(copy);
    return;
  }
  if (x_check != nullptr) [[unlikely]]
    x_check->async_copy(x_current->index.linear, address(copy.to), address(copy.from), copy.bytes,
                        copy.zeros, pc);
  x_copies_in_flight = true;
  if (barrier != nullptr)
    x_copies.add(barrier, copy);
  else
    x_copies.add(x_current->index.linear, copy);
}

void BlockRunner::async_commit() {
  if (x_copies_in_flight) x_copies.commit(x_current->index.linear);
}

void BlockRunner::async_wait(std::size_t prior, std::uintptr_t pc, std::uintptr_t frame) {
  step_together(pc, frame);
  if (x_copies_in_flight) x_copies.land(x_current->index.linear, prior);
}

void BlockRunner::barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file,
                               int line) {
  if (expected < 1) {
    record(FindingKind::kBarrierDivergence,
           concat(thread_name(*x_current), " initialises a cuda::barrier for ", expected,
                  " arrivals at ", file, ':', line),
           "It must be at least 1", file, line);
    leave_for_good();
  }
  *barrier = {expected, expected, 0};
}

std::uint32_t BlockRunner::barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop,
                                          const char* file, int line, std::uintptr_t pc,
                                          std::uintptr_t frame) {
  step_together(pc, frame);
  check_barrier(barrier, file, line);
  const std::uint32_t phase = barrier->phase;
  if (count < 1 || count > barrier->missing) {
    record(
        FindingKind::kBarrierDivergence,
        concat(thread_name(*x_current), " arrives ", count, " times at a cuda::barrier that lacks ",
               barrier->missing, " of ", barrier->expected, " arrivals, at ", file, ':', line),
        "Initialise it with the number of threads that arrive in each phase", file, line);
    leave_for_good();
  }
  if (x_check != nullptr) [[unlikely]]
    x_check->arrive(x_current->index.linear, address(barrier));
  barrier->missing -= count;
  if (drop) --barrier->expected;
  if (barrier->missing > 0) return phase;
  barrier->missing = barrier->expected;
  ++barrier->phase;
  if (x_copies_in_flight) x_copies.land(barrier);
  if (x_check != nullptr) [[unlikely]]
    x_check->complete(address(barrier));
  for (unsigned t = 0; t < x_threads; ++t)
    if (x_fibers[t].wait == Wait::kBarrierObject && x_fibers[t].value == address(barrier))
      x_runnable[t / 64] |= 1ull << (t % 64);
  return phase;
}

void BlockRunner::barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file,
                               int line, std::uintptr_t pc, std::uintptr_t frame) {
  check_barrier(barrier, file, line);
  Fiber& fiber = arrive(Wait::kBarrierObject, file, line, pc, frame);
  fiber.value = address(barrier);
  if (phase == barrier->phase) wait_for_others(fiber);
  x_current->wait = Wait::kNone;
  if (x_check != nullptr) [[unlikely]]
    x_check->leave(x_current->index.linear, address(barrier));
}

void BlockRunner::check_copy(const AsyncCopy& copy, std::uintptr_t pc) {
  const std::uintptr_t to = address(copy.to), from = address(copy.from);
  const char* what = nullptr;
  const char* advice = nullptr;
  if (copy.around_l1 && copy.bytes != 16) {
    what = "by cp.async.cg, which copies 16";
    advice = "Copy 4 or 8 bytes by cp.async.ca";
  } else if (copy.bytes != 4 && copy.bytes != 8 && copy.bytes != 16) {
    what = "of a size that is not 4, 8 or 16 bytes";
    advice = "Split it, or copy with plain loads and stores";
  } else if (!may_be_aligned(to, copy.bytes) || from % copy.bytes != 0) {
    what = from % copy.bytes == 0 ? "whose destination is not aligned to its size"
                                  : "whose source is not aligned to its size";
    advice = "Both addresses must be multiples of the bytes copied";
  } else if (copy.zeros > copy.bytes) {
    what = "that fills with more zeros than it has bytes";
    advice = "zfill is at most the size";
  } else if (!is_shared(to)) {
    what = "whose destination is not in shared memory";
    advice = "Only copies from global to shared memory are asynchronous";
  } else if (copy.zeros < copy.bytes && (is_shared(from) || is_own(from))) {
    what = "whose source is not in global memory";
    advice = "Only copies from global to shared memory are asynchronous";
  } else {
    return;
  }
  record(FindingKind::kAsyncCopyMisuse,
         concat(thread_name(*x_current), " issues an asynchronous copy of ", copy.bytes, " bytes ",
                what, " at ", copy.file, ':', copy.line),
         advice, copy.file, copy.line);
  if (x_check != nullptr) x_check->ended_at(x_current->index.linear, pc);
  leave_for_good();
}

void BlockRunner::check_barrier(const BlockBarrier* barrier, const char* file, int line) {
  if (barrier->expected >= 0 && barrier->missing > 0) return;
  record(FindingKind::kBarrierDivergence,
         concat(thread_name(*x_current), " uses a cuda::barrier that was not initialised at ", file,
                ':', line),
         "One thread calls init(&barrier, count), then __syncthreads(), before any uses it", file,
         line);
  leave_for_good();
}

void BlockRunner::note_dropped_copies() {
  x_copies.drop_bound();
  const DroppedCopies dropped = x_copies.take_dropped();
  if (dropped.count == 0) return;
  x_outcome.note = concat(
      x_outcome.note, x_outcome.note.empty() ? "" : " ", where(), ": ", dropped.count,
      " asynchronous copies were never waited for and did not land; the first was issued at ",
      dropped.file, ':', dropped.line, '.');
}

}  // namespace attn_diag::host
