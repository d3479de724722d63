// What a block has found, as findings.
#include <algorithm>

#include "harness/host/check/block_checker.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

constexpr std::uintptr_t kZone = 1 << 20;
constexpr std::uint32_t kSynchronising = kAtomic | kVolatile;

const char* verb(bool write) { return write ? "write" : "read"; }

}  // namespace

SeenAccess BlockChecker::seen(const Now& now) const {
  SeenAccess a;
  a.block = x_block;
  a.thread = now.thread;
  a.interval = x_interval;
  a.pc = now.pc;
  a.bytes = now.bytes;
  a.write = now.kind == Access::kWrite;
  a.atomic = (now.how & kAtomic) != 0;
  a.is_volatile = (now.how & kVolatile) != 0;
  a.async = (now.how & kAsync) != 0;
  return a;
}

SeenAccess BlockChecker::seen(const Entry& entry, bool write, unsigned bytes) const {
  const std::uint32_t segment = segment_of(entry.epoch);
  SeenAccess a;
  a.block = x_checker->block_of(segment);
  a.thread = thread_of(entry.epoch);
  a.interval = x_checker->interval_of(segment);
  a.pc = entry.pc;
  a.bytes = bytes;
  a.write = write;
  a.atomic = (entry.how & kAtomic) != 0;
  a.is_volatile = (entry.how & kVolatile) != 0;
  a.async = (entry.how & kAsync) != 0;
  return a;
}

void BlockChecker::name_memory(SeenFinding& finding, std::uintptr_t at) const {
  if (x_dynamic.contains(at)) {
    finding.space = "shared";
    finding.array = "dynamic shared memory";
    finding.offset = static_cast<std::int64_t>(at - x_dynamic.begin());
    return;
  }
  finding.space = "global";
  if (x_static.contains(at)) {
    finding.space = "shared";
    // The array that has the byte, or the one before it.
    for (const StaticArray& array : x_static_arrays) {
      if (at < array.begin && !finding.array.empty()) break;
      finding.array = array.name;
      finding.offset = static_cast<std::int64_t>(at - array.begin);
      if (at < array.begin + array.bytes) break;
    }
    return;
  }
  if (const WatchedMemory* allocation = x_checker->nearest(at)) {
    finding.array = allocation->name;
    finding.offset = static_cast<std::int64_t>(at - allocation->begin);
  }
}

void BlockChecker::report_race(const Entry& earlier, bool earlier_writes, const Now& now) {
  const bool write = now.kind == Access::kWrite;
  if ((earlier.how & now.how & kAtomic) != 0) return;
  if ((earlier.how & kSynchronising) != 0 && (now.how & kSynchronising) != 0) return;
  SeenFinding finding;
  finding.kind = CheckKind::kRace;
  finding.access = seen(now);
  finding.other = seen(earlier, earlier_writes, now.bytes);
  finding.has_other = true;
  name_memory(finding, now.at);
  const bool same_block = finding.other.block == x_block;
  const bool same_warp = same_block && finding.other.thread / 32 == now.thread / 32;
  const bool one_instruction = same_warp && earlier_writes && write && earlier.pc == now.pc &&
                               ((earlier.how ^ now.how) & kStepMask) == 0;
  const char* const actions = earlier_writes && write
                                  ? "write the same bytes"
                                  : "access the same bytes, one of them writing,";
  if (one_instruction) {
    finding.message =
        "lanes of one warp store different values to the same bytes by one instruction: which "
        "stays is undefined";
    finding.advice = "Let one lane store, or give each its own element";
  } else if (same_warp) {
    finding.severity = Severity::kLatent;
    finding.message = concat("two lanes of one warp ", actions,
                             " with no __syncwarp() between: only convergence orders them");
    finding.advice = "Put __syncwarp() between the two";
  } else if (same_block) {
    finding.message = concat("two threads of one block ", actions, " with no barrier between");
    finding.advice =
        concat("Put __syncthreads() between the ", verb(earlier_writes), " and the ", verb(write));
  } else if (const SharedClock& unfenced = x_thread[now.thread].unfenced;
             unfenced != nullptr && unfenced->covers(finding.other.block, earlier.epoch)) {
    finding.kind = CheckKind::kMissingFence;
    finding.message = concat(
        "threads of two blocks ", actions,
        " handed over by a flag or counter without a fence: the flag may be seen before the data");
    finding.advice = concat("Put __threadfence() between the ", verb(earlier_writes),
                            " and the atomic or volatile store that hands over");
  } else {
    finding.message = concat("threads of two blocks ", actions, " with nothing to order them");
    finding.advice =
        "Use atomics, give each block its own memory, or hand over by __threadfence() and an "
        "atomic "
        "flag";
  }
  const bool plain = (finding.other.atomic || finding.access.atomic) == false;
  if (earlier_writes && write && plain && now.bytes <= 16)
    x_checker->settle_later(finding, now.at, now.bytes);
  else
    x_checker->add(finding);
}

void BlockChecker::report_in_flight(const Entry& copy, const Now& now) {
  SeenFinding finding;
  finding.kind = CheckKind::kAsyncCopy;
  finding.access = seen(now);
  finding.other = seen(copy, true, now.bytes);
  finding.has_other = true;
  name_memory(finding, now.at);
  finding.message = concat(verb(now.kind == Access::kWrite),
                           "s what an asynchronous copy that nobody has waited for still writes");
  finding.advice =
      "Wait for the copy's group first (cp.async.wait_group, __pipeline_wait_prior, with as few "
      "left "
      "in flight as this needs), then __syncthreads()";
  x_checker->add(finding);
}

void BlockChecker::report_uninitialised(const Now& now) {
  for (const StaticArray& array : x_static_arrays)
    if (array.is_guard && now.at - array.begin < array.bytes) return;
  SeenFinding finding;
  finding.kind = CheckKind::kUninitialisedRead;
  finding.access = seen(now);
  name_memory(finding, now.at);
  finding.message = now.shared ? "reads shared memory that no thread of the block has written"
                               : "reads global memory that nothing has written";
  finding.advice = now.shared ? "Store to it first, also for rows and columns past the end of the "
                                "problem"
                              : "Write it first, by a kernel or cudaMemset";
  x_checker->add(finding);
}

SeenAccess BlockChecker::seen_at(unsigned thread, std::uintptr_t pc, std::size_t bytes) const {
  SeenAccess a;
  a.block = x_block;
  a.thread = thread;
  a.interval = x_interval;
  a.pc = static_cast<std::uint32_t>(pc - x_plan->library.base);
  a.bytes = static_cast<unsigned>(bytes);
  return a;
}

void BlockChecker::look_at_local(unsigned thread, const MemoryAccess& what, std::uintptr_t pc,
                                 std::uintptr_t frame) {
  LocalArrays& locals = x_thread[thread].locals;
  if (what.kind != Access::kWrite) {
    if (const LocalArray* const array = locals.read(what.at, what.bytes, frame)) {
      SeenFinding finding;
      finding.kind = CheckKind::kUninitialisedRead;
      finding.access = seen_at(thread, pc, what.bytes);
      finding.space = "local";
      finding.array = array->name;
      finding.offset = static_cast<std::int64_t>(what.at - array->begin);
      finding.message = "reads an element of a local array that the thread has not written";
      finding.advice = "Set every element first";
      x_checker->add(finding);
    }
  }
  if (what.kind != Access::kRead) locals.write(what.at, what.bytes, frame);
}

void BlockChecker::overflow(unsigned thread, std::int64_t left, const char* sign,
                            std::int64_t right, const char* type, std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = CheckKind::kIntOverflow;
  finding.access = seen_at(thread, pc, 0);
  finding.message = concat(left, ' ', sign, ' ', right, " does not fit in ", type);
  finding.advice = "Widen an operand first, as in static_cast<std::int64_t>(row) * stride";
  x_checker->add(finding);
}

void BlockChecker::index_out_of_bounds(unsigned thread, std::int64_t index, const char* array,
                                       std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = CheckKind::kOutOfBounds;
  finding.access = seen_at(thread, pc, 0);
  finding.message = concat("index ", index, " is past the end of an array of type ", array);
  finding.advice = "Check the index against the size of the array";
  x_checker->add(finding);
}

void BlockChecker::misaligned(unsigned thread, std::uintptr_t at, unsigned alignment,
                              const char* type, std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = CheckKind::kMisaligned;
  finding.access = seen_at(thread, pc, alignment);
  name_memory(finding, at);
  finding.message = concat("accesses ", type, " at an address that is ", at % alignment,
                           " bytes past a multiple of ", alignment);
  finding.advice =
      "Vector loads and stores need addresses that are multiples of their size; the rest of this "
      "block "
      "was not run";
  x_checker->add(finding);
}

bool BlockChecker::is_outside_static(std::uintptr_t at, std::size_t bytes) const {
  for (const StaticArray& array : x_static_arrays)
    if (at >= array.begin && at + bytes <= array.begin + array.bytes) return false;
  return !x_static_arrays.empty();
}

void BlockChecker::report_outside(const Now& now) {
  SeenFinding finding;
  finding.kind = CheckKind::kOutOfBounds;
  finding.access = seen(now);
  name_memory(finding, now.at);
  finding.message = concat(verb(now.kind == Access::kWrite), "s ", now.bytes, " bytes outside ",
                           finding.array.empty() ? "all arrays" : finding.array);
  finding.advice = "Check the index against the size of the array";
  x_checker->add(finding);
}

bool BlockChecker::is_usable_global(ShadowPage& page, const Now& now) {
  const WatchedMemory* const near = x_checker->nearest(now.at);
  if (near != nullptr && now.at >= near->begin && now.at + now.bytes <= near->begin + near->bytes) {
    if (!near->freed) return true;
    SeenFinding finding;
    finding.kind = CheckKind::kUseAfterFree;
    finding.access = seen(now);
    name_memory(finding, now.at);
    finding.message = concat(verb(now.kind == Access::kWrite), "s memory after cudaFree");
    finding.advice = "Free it after the last launch that uses it has ended";
    x_checker->add(finding);
    return false;
  }
  // Memory that the harness or a library holds is not known. Near an array it is taken for that one's.
  const auto distance = [&] {
    const std::uintptr_t end = near->begin + near->bytes;
    return now.at < near->begin ? near->begin - now.at : now.at - std::min(now.at, end);
  };
  if (page.begin == page.end &&
      (near == nullptr || distance() > kZone || x_checker->is_other_memory(now.at))) {
    page.ignored = true;
    ++x_checker->summary().unknown;
    return false;
  }
  report_outside(now);
  return false;
}

}  // namespace attn_diag::host
