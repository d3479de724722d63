// PTX's mbarrier: arrivals, bytes, phases, and who waits for them.
#include "attn_diag_host/mbarrier.h"

#include <cstring>

#include "harness/host/block_runner_switch.h"
#include "harness/host/mbarrier_word.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

MbarrierWord word_of(const std::uint64_t* barrier) { return MbarrierWord::unpack(*barrier); }

}  // namespace

void mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file, int line) {
  BlockRunner::current()->mbarrier_init(barrier, count, file, line);
}

void mbarrier_inval(std::uint64_t* barrier, const char* file, int line) {
  BlockRunner::current()->mbarrier_inval(barrier, file, line);
}

#define ATTN_DIAG_HOST_PLACE \
  file, line, address(__builtin_return_address(0)), address(__builtin_frame_address(0))

std::uint64_t mbarrier_arrive(std::uint64_t* barrier, unsigned count, const char* file, int line) {
  return BlockRunner::current()->mbarrier_change(barrier, {count, false, 0}, ATTN_DIAG_HOST_PLACE);
}

std::uint64_t mbarrier_arrive_drop(std::uint64_t* barrier, unsigned count, const char* file,
                                   int line) {
  return BlockRunner::current()->mbarrier_change(barrier, {count, true, 0}, ATTN_DIAG_HOST_PLACE);
}

std::uint64_t mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes, const char* file,
                                        int line) {
  return BlockRunner::current()->mbarrier_change(barrier, {1, false, std::int64_t{bytes}},
                                                 ATTN_DIAG_HOST_PLACE);
}

void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes, const char* file, int line) {
  BlockRunner::current()->mbarrier_change(barrier, {0, false, std::int64_t{bytes}},
                                          ATTN_DIAG_HOST_PLACE);
}

void mbarrier_complete_tx(std::uint64_t* barrier, unsigned bytes, const char* file, int line) {
  BlockRunner::current()->mbarrier_change(barrier, {0, false, -std::int64_t{bytes}},
                                          ATTN_DIAG_HOST_PLACE);
}

bool mbarrier_test_wait_parity(std::uint64_t* barrier, unsigned parity, const char* file,
                               int line) {
  return BlockRunner::current()->mbarrier_test_wait(barrier, (parity & 1u) != 0,
                                                    ATTN_DIAG_HOST_PLACE);
}

bool mbarrier_test_wait(std::uint64_t* barrier, std::uint64_t state, const char* file, int line) {
  return BlockRunner::current()->mbarrier_test_wait(barrier, MbarrierWord::unpack(state).phase,
                                                    ATTN_DIAG_HOST_PLACE);
}

#undef ATTN_DIAG_HOST_PLACE

unsigned mbarrier_pending_count(std::uint64_t state) { return MbarrierWord::unpack(state).pending; }

void cp_async_mbarrier_arrive(std::uint64_t* barrier, bool noinc, const char* file, int line) {
  BlockRunner::current()->mbarrier_arrive_after_copies(barrier, noinc, file, line);
}

void BlockRunner::mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file,
                                int line) {
  check_mbarrier_memory(barrier, file, line);
  if (count < 1 || count > kMostMbarrierArrivals) {
    record_mbarrier("initialises an mbarrier for ", concat(count, " arrivals"),
                    "It must be 1 to 1048575", file, line);
    leave_for_good();
  }
  *barrier = MbarrierWord{count, count, 0, false}.pack();
}

void BlockRunner::mbarrier_inval(std::uint64_t* barrier, const char* file, int line) {
  check_mbarrier(barrier, file, line);
  std::memset(barrier, 0xFF, sizeof *barrier);
}

std::uint64_t BlockRunner::mbarrier_change(std::uint64_t* barrier, const MbarrierChange& change,
                                           const char* file, int line, std::uintptr_t pc,
                                           std::uintptr_t frame) {
  step_together(pc, frame);
  check_mbarrier(barrier, file, line);
  if (x_check != nullptr) [[unlikely]]
    x_check->arrive(x_current->index.linear, address(barrier));
  ++x_steps;
  return apply_to_mbarrier(barrier, change, file, line);
}

std::uint64_t BlockRunner::apply_to_mbarrier(std::uint64_t* barrier, const MbarrierChange& change,
                                             const char* file, int line) {
  const std::uint64_t before = *barrier;
  MbarrierWord word = word_of(barrier);
  if (change.arrivals > word.pending) {
    record_mbarrier(
        concat("arrives ", change.arrivals, " times"),
        concat(" at an mbarrier that lacks ", word.pending, " of ", word.expected, " arrivals"),
        "Initialise it with the number of arrivals of each phase, and let nobody arrive "
        "for the next phase before it has waited for this one",
        file, line);
    leave_for_good();
  }
  const std::int64_t bytes = word.bytes + change.bytes;
  if (bytes > MbarrierWord::kMostBytes || bytes < -MbarrierWord::kMostBytes) {
    record_mbarrier("lets an mbarrier expect ", concat(bytes, " bytes"),
                    "The bytes of a phase are at most 1048575", file, line);
    leave_for_good();
  }
  word.bytes = static_cast<std::int32_t>(bytes);
  word.pending -= change.arrivals;
  if (change.drop) word.expected -= change.arrivals;
  if (word.pending == 0 && word.bytes == 0) {
    word.phase = !word.phase;
    word.pending = word.expected;
    if (x_check != nullptr) [[unlikely]]
      x_check->complete(address(barrier));
  }
  *barrier = word.pack();
  return before;
}

bool BlockRunner::mbarrier_test_wait(std::uint64_t* barrier, bool phase, const char* file, int line,
                                     std::uintptr_t pc, std::uintptr_t frame) {
  step_together(pc, frame);
  check_mbarrier(barrier, file, line);
  if (x_copies_in_flight) land_copies_for(barrier, file, line);
  if (word_of(barrier).phase != phase) {
    if (x_check != nullptr) [[unlikely]]
      x_check->leave(x_current->index.linear, address(barrier));
    return true;
  }
  Fiber& fiber = *x_current;
  fiber.value = address(barrier);
  poll(Wait::kMbarrier, file, line, pc, frame);
  // Its memory may have been given another use meanwhile.
  check_mbarrier(barrier, file, line);
  const bool passed = word_of(barrier).phase != phase;
  if (passed && x_check != nullptr) [[unlikely]]
    x_check->leave(fiber.index.linear, address(barrier));
  return passed;
}

void BlockRunner::mbarrier_arrive_after_copies(std::uint64_t* barrier, bool noinc, const char* file,
                                               int line) {
  check_mbarrier(barrier, file, line);
  if (!noinc) {
    MbarrierWord word = word_of(barrier);
    ++word.pending;
    // Counted for this phase only: pending may exceed expected until the arrival comes.
    *barrier = word.pack();
  }
  if (x_check != nullptr) [[unlikely]]
    x_check->arrive(x_current->index.linear, address(barrier));
  x_copies_in_flight = true;
  x_copies.arrive_after(x_current->index.linear, barrier);
  if (x_plan->async_copies == AsyncCopies::kEarly) land_copies_for(barrier, file, line);
}

// Somebody looks at the barrier: the last moment for the copies that it waits for.
void BlockRunner::land_copies_for(std::uint64_t* barrier, const char* file, int line) {
  const unsigned arrivals = x_copies.land_for(barrier);
  if (arrivals > 0) apply_to_mbarrier(barrier, {arrivals, false, 0}, file, line);
}

std::string BlockRunner::mbarrier_state(const Fiber& fiber) const {
  const auto* barrier = reinterpret_cast<const std::uint64_t*>(fiber.value);
  if (!MbarrierWord::is_valid(*barrier)) return "mbarrier";
  const MbarrierWord word = word_of(barrier);
  return concat("mbarrier (phase ", word.phase ? 1 : 0, ", ", word.pending, " of ", word.expected,
                " arrivals and ", word.bytes, " bytes missing)");
}

void BlockRunner::check_mbarrier_memory(const std::uint64_t* barrier, const char* file, int line) {
  if (!is_shared(address(barrier))) report_not_shared("uses an mbarrier", barrier, file, line);
  const std::uintptr_t at = device_address(address(barrier));
  if (may_be_aligned(address(barrier), alignof(std::uint64_t))) [[likely]]
    return;
  record_mbarrier("uses an mbarrier", concat(" that is ", at % 8, " bytes past a multiple of 8"),
                  "Align it to 8 bytes", file, line);
  leave_for_good();
}

void BlockRunner::check_mbarrier(const std::uint64_t* barrier, const char* file, int line) {
  check_mbarrier_memory(barrier, file, line);
  if (MbarrierWord::is_valid(*barrier)) [[likely]]
    return;
  record_mbarrier(
      "uses an mbarrier", " that was not initialised",
      "One thread calls mbarrier.init, then fence and __syncthreads(), before any uses it", file,
      line);
  leave_for_good();
}

void BlockRunner::record_mbarrier(const std::string& does, const std::string& what,
                                  const char* advice, const char* file, int line) {
  record(FindingKind::kBarrierDivergence,
         concat(thread_name(*x_current), ' ', does, what, ", at ", file, ':', line), advice, file,
         line);
}

}  // namespace attn_diag::host
