// PTX's mbarrier: arrivals, bytes, phases, and who waits for them.
#include "harness/host/block_mbarriers.h"

#include <cstring>

#include "attn_diag_host/mbarrier.h"
#include "harness/host/mbarrier_word.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

MbarrierWord word_of(const std::uint64_t* barrier) { return MbarrierWord::unpack(*barrier); }

}  // namespace

Mbarriers::Mbarriers(BlockContext& block, CopiesInFlight& copies)
    : x_block(block), x_copies(copies) {
  block.describe_wait(Wait::kMbarrier, &Mbarriers::state_text);
}

void Mbarriers::init(std::uint64_t* barrier, unsigned count, const char* file, int line,
                     std::uintptr_t pc) {
  check_memory(barrier, file, line);
  if (count < 1 || count > kMostMbarrierArrivals) {
    record_misuse("initialises an mbarrier for ", concat(count, " arrivals"),
                  "It must be 1 to 1048575", file, line);
    x_block.leave_for_good();
  }
  x_block.note_access(Access::kWrite, barrier, sizeof *barrier, pc);
  *barrier = MbarrierWord{count, count, 0, false}.pack();
}

void Mbarriers::inval(std::uint64_t* barrier, const char* file, int line, std::uintptr_t pc) {
  check(barrier, file, line);
  x_block.note_access(Access::kWrite, barrier, sizeof *barrier, pc);
  std::memset(barrier, 0xFF, sizeof *barrier);
}

std::uint64_t Mbarriers::change(std::uint64_t* barrier, const MbarrierChange& change,
                                const char* file, int line, std::uintptr_t pc,
                                std::uintptr_t frame) {
  x_block.step_together(pc, frame);
  check(barrier, file, line);
  x_block.note_barrier(barrier, sizeof *barrier, pc);
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->arrive(x_block.current_thread(), address(barrier));
  x_block.count_step();
  return apply(barrier, change, file, line);
}

std::uint64_t Mbarriers::apply(std::uint64_t* barrier, const MbarrierChange& change,
                               const char* file, int line) {
  const std::uint64_t before = *barrier;
  MbarrierWord word = word_of(barrier);
  if (change.arrivals > word.pending) {
    record_misuse(
        concat("arrives ", change.arrivals, " times"),
        concat(" at an mbarrier that lacks ", word.pending, " of ", word.expected, " arrivals"),
        "Initialise it with the number of arrivals of each phase, and let nobody arrive "
        "for the next phase before it has waited for this one",
        file, line);
    x_block.leave_for_good();
  }
  const std::int64_t bytes = word.bytes + change.bytes;
  if (bytes > MbarrierWord::kMostBytes || bytes < -MbarrierWord::kMostBytes) {
    record_misuse("lets an mbarrier expect ", concat(bytes, " bytes"),
                  "The bytes of a phase are at most 1048575", file, line);
    x_block.leave_for_good();
  }
  word.bytes = static_cast<std::int32_t>(bytes);
  word.pending -= change.arrivals;
  if (change.drop) word.expected -= change.arrivals;
  if (word.pending == 0 && word.bytes == 0) {
    word.phase = !word.phase;
    word.pending = word.expected;
    if (x_block.check() != nullptr) [[unlikely]]
      x_block.check()->complete(address(barrier));
  }
  *barrier = word.pack();
  return before;
}

bool Mbarriers::test_wait(std::uint64_t* barrier, bool phase, const char* file, int line,
                          std::uintptr_t pc, std::uintptr_t frame) {
  x_block.step_together(pc, frame);
  check(barrier, file, line);
  x_block.note_barrier(barrier, sizeof *barrier, pc);
  if (x_copies.any()) land_copies_for(barrier, file, line);
  if (word_of(barrier).phase != phase) {
    if (x_block.check() != nullptr) [[unlikely]]
      x_block.check()->leave(x_block.current_thread(), address(barrier));
    return true;
  }
  Fiber& fiber = x_block.current();
  fiber.value = address(barrier);
  x_block.poll(Wait::kMbarrier, file, line, pc, frame);
  // Its memory may have been given another use meanwhile.
  check(barrier, file, line);
  const bool passed = word_of(barrier).phase != phase;
  if (passed && x_block.check() != nullptr) [[unlikely]]
    x_block.check()->leave(fiber.index.linear, address(barrier));
  return passed;
}

void Mbarriers::arrive_after_copies(std::uint64_t* barrier, bool noinc, const char* file, int line,
                                    std::uintptr_t pc) {
  check(barrier, file, line);
  x_block.note_barrier(barrier, sizeof *barrier, pc);
  if (!noinc) {
    MbarrierWord word = word_of(barrier);
    ++word.pending;
    // Counted for this phase only: pending may exceed expected until the arrival comes.
    *barrier = word.pack();
  }
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->arrive(x_block.current_thread(), address(barrier));
  x_copies.arrive_after(x_block.current_thread(), barrier);
  if (x_block.plan().async_copies == AsyncCopies::kEarly) land_copies_for(barrier, file, line);
}

// Somebody looks at the barrier: the last moment for the copies that it waits for.
void Mbarriers::land_copies_for(std::uint64_t* barrier, const char* file, int line) {
  const unsigned arrivals = x_copies.land_for(barrier);
  if (arrivals > 0) apply(barrier, {arrivals, false, 0}, file, line);
}

std::string Mbarriers::state_text(const Fiber& fiber) {
  const auto* barrier = reinterpret_cast<const std::uint64_t*>(fiber.value);
  if (!MbarrierWord::is_valid(*barrier)) return "mbarrier";
  const MbarrierWord word = word_of(barrier);
  return concat("mbarrier (phase ", word.phase ? 1 : 0, ", ", word.pending, " of ", word.expected,
                " arrivals and ", word.bytes, " bytes missing)");
}

void Mbarriers::check_memory(const std::uint64_t* barrier, const char* file, int line) {
  if (!x_block.memory().is_shared(address(barrier)))
    x_block.memory().report_not_shared("uses an mbarrier", barrier, file, line);
  const std::uintptr_t at = x_block.memory().device_address(address(barrier));
  if (x_block.memory().may_be_aligned(address(barrier), alignof(std::uint64_t))) [[likely]]
    return;
  record_misuse("uses an mbarrier", concat(" that is ", at % 8, " bytes past a multiple of 8"),
                "Align it to 8 bytes", file, line);
  x_block.leave_for_good();
}

void Mbarriers::check(const std::uint64_t* barrier, const char* file, int line) {
  check_memory(barrier, file, line);
  if (MbarrierWord::is_valid(*barrier)) [[likely]]
    return;
  record_misuse(
      "uses an mbarrier", " that was not initialised",
      "One thread calls mbarrier.init, then fence and __syncthreads(), before any uses it", file,
      line);
  x_block.leave_for_good();
}

void Mbarriers::record_misuse(const std::string& does, const std::string& what, const char* advice,
                              const char* file, int line) {
  x_block.record(
      LaunchFindingKind::kBarrierDivergence,
      concat(x_block.thread_name(x_block.current()), ' ', does, what, ", at ", file, ':', line),
      advice, file, line);
}

}  // namespace attn_diag::host
