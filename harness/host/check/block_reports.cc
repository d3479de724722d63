// What a block has found, as findings.
#include <algorithm>
#include <bit>

#include "harness/host/check/block_checker.h"
#include "harness/host/check/stored_values.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

constexpr std::uintptr_t kZone = 1 << 20;
constexpr std::uint32_t kSynchronising = kAtomic | kVolatile;

std::uintptr_t distance_to(const WatchedMemory& memory, std::uintptr_t at) {
  const std::uintptr_t end = memory.begin + memory.bytes;
  return at < memory.begin ? memory.begin - at : at - std::min(at, end);
}

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
  a.tile = (now.how & kTile) != 0;
  return a;
}

SeenAccess BlockChecker::seen(const Entry& entry, bool write, unsigned bytes) const {
  const std::uint32_t segment = segment_of(entry.epoch);
  SeenAccess a;
  a.block = x_checker->block_of(segment);
  a.thread = thread_of(entry.epoch);
  a.interval = x_checker->interval_of(segment);
  a.pc = entry.pc;
  a.bytes = size_of(entry.how) != 0 ? size_of(entry.how) : bytes;
  a.write = write;
  a.atomic = (entry.how & kAtomic) != 0;
  a.is_volatile = (entry.how & kVolatile) != 0;
  a.async = (entry.how & kAsync) != 0;
  return a;
}

void BlockChecker::name_memory(SeenFinding& finding, std::uintptr_t at, unsigned thread) const {
  finding.shape = {};
  if (x_dynamic.contains(at)) {
    finding.space = "shared";
    finding.array = "dynamic shared memory";
    std::uintptr_t begin = x_dynamic_begin;
    // By the last of the thread's pointers that is not past it.
    for (const SharedPointer& pointer : x_thread[thread].pointers) {
      if (pointer.at < begin || pointer.at > at) continue;
      finding.array = pointer.name;
      begin = pointer.at;
    }
    finding.offset = static_cast<std::int64_t>(at - begin);
    return;
  }
  finding.space = "global";
  if (x_static.contains(at)) {
    finding.space = "shared";
    const auto known = x_plan->statics.nearest(at - x_static_storage);
    if (known.variable != nullptr) {
      finding.array = known.variable->name;
      finding.offset = known.offset;
      for (const StaticArray& array : x_static_arrays)
        if (array.begin == x_static_storage + known.variable->begin) finding.shape = array.shape;
      return;
    }
    // The array that has the byte, or the one before it.
    for (const StaticArray& array : x_static_arrays) {
      if (at < array.begin && !finding.array.empty()) break;
      finding.array = array.name;
      finding.shape = array.shape;
      finding.offset = static_cast<std::int64_t>(at - array.begin);
      if (at < array.begin + array.bytes) break;
    }
    return;
  }
  finding.at = at;
  if (const WatchedMemory* allocation = x_checker->nearest(at)) {
    const WatchedMemory::Part part = allocation->part_of(at);
    finding.array = part.name;
    finding.shape = allocation->shape;
    finding.offset = static_cast<std::int64_t>(at - part.begin);
  }
}

// "12 bytes past the end of sQ and 4 bytes before sK": whose index it is the address does not tell.
std::string BlockChecker::outside_text(std::uintptr_t at, std::size_t bytes) const {
  struct Neighbour {
    std::string name;
    std::uintptr_t begin = 0, end = 0;
  };
  Neighbour before, after;
  const auto consider = [&](const std::string& name, std::uintptr_t begin, std::size_t size) {
    const std::uintptr_t end = begin + size;
    if (begin <= at && (before.name.empty() || end > before.end)) before = {name, begin, end};
    if (begin > at && (after.name.empty() || begin < after.begin)) after = {name, begin, end};
  };
  if (x_static.contains(at) && !x_plan->statics.variables.empty()) {
    for (const StaticVariable& v : x_plan->statics.variables)
      consider(v.name, x_static_storage + v.begin, v.bytes);
  } else if (x_static.contains(at)) {
    for (const StaticArray& array : x_static_arrays)
      if (!array.is_guard) consider(array.name, array.begin, array.bytes);
  } else {
    if (x_dynamic_bytes != 0 || x_dynamic.contains(at))
      consider("dynamic shared memory", x_dynamic_begin, x_dynamic_bytes);
    if (!x_dynamic.contains(at)) x_checker->neighbours(at, consider);
  }
  const auto n = [](std::uintptr_t count) {
    return concat(count, count == 1 ? " byte" : " bytes");
  };
  if (!before.name.empty() && at < before.end)
    return concat("of which the first ", n(before.end - at), " are the end of ", before.name);
  std::string text;
  if (!before.name.empty())
    text = at == before.end ? concat("right behind the end of ", before.name)
                            : concat(n(at - before.end), " past the end of ", before.name);
  // The farther neighbour says nothing.
  const bool after_is_near =
      !after.name.empty() && after.begin - at <= kZone &&
      (before.name.empty() || after.begin - at <= 16 * (at - before.end + 16));
  if (after_is_near && !before.name.empty() && at - before.end > 16 * (after.begin - at + 16))
    text.clear();
  if (after_is_near)
    text += concat(text.empty() ? "" : " and ", n(after.begin - at), " before ", after.name);
  return text.empty() ? concat("outside all arrays (", n(bytes), ")") : text;
}

std::string BlockChecker::passed_since(unsigned reader, unsigned writer) const {
  const auto text = [&](unsigned thread) -> std::string {
    const PassedBarrier& passed = x_thread[thread].passed;
    if (passed.file == nullptr || passed.interval != x_interval) return "";
    const std::string file = passed.file;
    return concat("barrier ", passed.id, " (", file.substr(file.rfind('/') + 1), ':', passed.line,
                  ")");
  };
  const std::string of_reader = text(reader), of_writer = text(writer);
  if (of_reader.empty() && of_writer.empty()) return "";
  return concat(": since the block last met, the thread that reads has passed ",
                of_reader.empty() ? "none" : of_reader, ", the one that writes ",
                of_writer.empty() ? "none" : of_writer);
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
  name_memory(finding, now.at, now.thread);
  const bool same_block = finding.other.block == x_block;
  const bool same_warp = same_block && finding.other.thread / 32 == now.thread / 32;
  const bool one_instruction = same_warp && earlier_writes && write && earlier.pc == now.pc &&
                               ((earlier.how ^ now.how) & kStepMask) == 0;
  const char* const actions = earlier_writes && write
                                  ? "write the same bytes"
                                  : "access the same bytes, one of them writing,";
  const WaitForCopies* const wait = earlier_writes && same_block ? wait_for(earlier) : nullptr;
  if (wait != nullptr) note_wait(finding, finding.other.thread, *wait);
  if (one_instruction) {
    finding.message =
        "lanes of one warp store different values to the same bytes by one instruction: which "
        "stays is undefined";
    finding.advice = "Let one lane store, or give each its own element";
  } else if (wait != nullptr) {
    finding.message =
        concat(verb(write),
               "s what an asynchronous copy of another thread wrote; that thread has waited "
               "for it, but no ",
               same_warp ? "__syncwarp()" : "barrier", " behind its wait tells others");
    if (same_warp) finding.severity = Severity::kLatent;
    finding.advice = concat("Put ", same_warp ? "__syncwarp()" : "__syncthreads()",
                            " between the wait for the copy and the ", verb(write));
  } else if (same_warp) {
    finding.severity = Severity::kLatent;
    if (has_met(earlier.epoch, now.thread)) {
      finding.message = concat(
          "two lanes of one warp ", actions,
          " with a shuffle, vote, match or matrix operation between, which makes lanes meet but "
          "orders no memory: right today, not promised by CUDA");
      finding.advice =
          "Put __syncwarp() between the two: it orders memory among the lanes of its mask";
    } else {
      finding.message = concat("two lanes of one warp ", actions,
                               " with no __syncwarp() between that has both in its mask: only "
                               "convergence orders them");
      if (!(earlier_writes && write && earlier.pc == now.pc))
        finding.advice = "Put __syncwarp() between the two; in a loop, between its steps as well";
    }
  } else if (same_block) {
    finding.message = concat("two threads of one block ", actions, " with no barrier between");
    // For two stores the advice depends on what they stored: settle_later().
    finding.wants_barrier = !earlier_writes || !write;
    if (finding.wants_barrier) {
      finding.message += write ? passed_since(finding.other.thread, now.thread)
                               : passed_since(now.thread, finding.other.thread);
      finding.advice = concat("Put __syncthreads() between the ", verb(earlier_writes), " and the ",
                              verb(write), "; in a loop, between its steps as well");
    }
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
  if (earlier_writes && write && plain) return x_checker->settle_later(finding, now.at, now.bytes);
  if (finding.advice.empty()) finding.advice = advice_for_stores("", "", false);
  report(finding);
}

void BlockChecker::note_wait(SeenFinding& finding, unsigned thread,
                             const WaitForCopies& wait) const {
  SeenAccess& at = finding.wait.emplace();
  at.block = x_block;
  at.thread = thread;
  at.interval = x_interval;
  at.pc = wait.pc;
}

const BlockChecker::WaitForCopies* BlockChecker::wait_for(const Entry& writer) const {
  if (std::find(x_copies_at.begin(), x_copies_at.end(), writer.pc) == x_copies_at.end())
    return nullptr;
  for (const WaitForCopies& wait : x_thread[thread_of(writer.epoch)].waits)
    if (wait.epoch == writer.epoch) return &wait;
  return nullptr;
}

void BlockChecker::report_in_flight(const Entry& copy, const Now& now) {
  SeenFinding finding;
  finding.kind = CheckKind::kAsyncCopy;
  finding.access = seen(now);
  finding.other = seen(copy, true, now.bytes);
  finding.has_other = true;
  name_memory(finding, now.at, now.thread);
  finding.message = concat(verb(now.kind == Access::kWrite),
                           "s what an asynchronous copy that nobody has waited for still writes");
  finding.advice =
      "Wait for the copy's group first (cp.async.wait_group, __pipeline_wait_prior, with as few "
      "left "
      "in flight as this needs), then __syncthreads()";
  // Issued since all have met last: it may have come too early, for who reads what was there before.
  if (thread_of(copy.epoch) != now.thread && segment_of(copy.epoch) == x_segment) {
    finding.message += ", issued by another thread since the last barrier";
    finding.advice =
        "If it should find what was there before, put __syncthreads() before the copy is issued; "
        "if what the copy brings, wait for its group, then __syncthreads()";
  }
  // A thread that copied before the last barrier, as the others did, and waited behind it.
  const std::vector<WaitForCopies>& waits = x_thread[now.thread].waits;
  const auto wait = std::find_if(waits.begin(), waits.end(), [&](const WaitForCopies& one) {
    return segment_of(one.epoch) == x_segment && one.all;
  });
  if (thread_of(copy.epoch) != now.thread && segment_of(copy.epoch) < x_segment &&
      wait != waits.end()) {
    note_wait(finding, now.thread, *wait);
    finding.message = concat(
        verb(now.kind == Access::kWrite),
        "s what an asynchronous copy of another thread still writes; this thread has waited for "
        "its own, but no barrier behind that wait says that the other has, too");
    finding.advice = concat("Put __syncthreads() between the wait for the copies and the ",
                            verb(now.kind == Access::kWrite));
  }
  report(finding);
}

void BlockChecker::report_uninitialised(const Now& now) {
  for (const StaticArray& array : x_static_arrays)
    if (array.is_guard && now.at - array.begin < array.bytes) return;
  SeenFinding finding;
  finding.kind = CheckKind::kUninitialisedRead;
  finding.access = seen(now);
  name_memory(finding, now.at, now.thread);
  finding.message = now.shared && (now.how & kTile) != 0
                        ? "loads a tile with elements that no thread of the block has written"
                    : now.shared ? "reads shared memory that no thread of the block has written"
                                 : "reads global memory that nothing has written";
  finding.advice = now.shared ? "Store to it first, also for rows and columns past the end of the "
                                "problem"
                              : "Write it first, by a kernel or cudaMemset";
  if (now.shared && x_returned.count > 0) {
    finding.returned = x_returned;
    const std::string file = x_returned.file;
    finding.advice += concat(". ", x_returned.count, " of the ", x_threads,
                             " threads of this block had returned before the barrier at ",
                             file.substr(file.rfind('/') + 1), ':', x_returned.line,
                             ": what is theirs to store is missing behind it");
  }
  report(finding);
}

void BlockChecker::report_input_write(const Now& now) {
  SeenFinding finding;
  finding.kind = CheckKind::kInputWrite;
  finding.access = seen(now);
  name_memory(finding, now.at, now.thread);
  finding.message = concat("stores to ", finding.array, ", an input");
  finding.advice =
      "Store to o, lse or the workspace; a caller still needs its inputs, and others may read them";
  report(finding);
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
      finding.shape = array->shape;
      finding.offset = static_cast<std::int64_t>(what.at - array->begin);
      finding.message = "reads an element of a local array that the thread has not written";
      finding.advice = "Set every element first";
      report(finding);
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
  report(finding);
}

void BlockChecker::index_out_of_bounds(unsigned thread, std::int64_t index, const char* type,
                                       const AboutVariable& about, std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = CheckKind::kOutOfBounds;
  finding.access = seen_at(thread, pc, 0);
  finding.message =
      concat("index ", index, index < 0 ? " is before the beginning" : " is past the end",
             " of an array of type ", type);
  if (about.name != nullptr && *about.name != '\0') {
    finding.array = declared_name(about.name);
    finding.shape = read_shape(about.shape);
    if (finding.shape.is_known()) {
      finding.element = concat(finding.array, part_at(finding.shape, about.offset, about.dimension),
                               '[', index, ']');
      finding.message +=
          concat(": ", finding.element, ", declared ", finding.array, finding.shape.declared());
    } else {
      finding.message += concat(" within ", finding.array);
    }
  }
  finding.advice = "Check the index against the size of the array";
  Thread& mine = x_thread[thread];
  constexpr std::size_t kMostHeld = 8;
  if (mine.held.size() == kMostHeld) report_held(thread);
  mine.held.push_back({std::move(finding), mine.epoch, mine.counts});
}

void BlockChecker::report_held(unsigned thread) {
  std::vector<HeldIndex>& all = x_thread[thread].held;
  for (const HeldIndex& held : all) x_checker->add(held.finding);
  all.clear();
}

void BlockChecker::report(const SeenFinding& finding) {
  report_held(finding.access.thread);
  x_checker->add(finding);
}

void BlockChecker::ignores_address(unsigned thread) {
  Thread& mine = x_thread[thread];
  std::erase_if(mine.held, [&](const HeldIndex& held) {
    return held.epoch == mine.epoch && held.counts == mine.counts;
  });
}

void BlockChecker::absent_lane(unsigned thread, unsigned lane, std::uint32_t mask,
                               std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = CheckKind::kUninitialisedRead;
  finding.severity = Severity::kLatent;
  finding.access = seen_at(thread, pc, 0);
  const bool is_named = (mask >> lane & 1u) != 0;
  finding.message =
      concat("a shuffle reads lane ", lane, ", which ",
             is_named ? "has returned" : concat("its mask 0x", std::hex, mask, " does not name"),
             ": CUDA does not define what it reads");
  finding.advice =
      is_named ? "Let all lanes that are read take part, those without work with a neutral value"
      : std::has_single_bit(mask)
          ? "Name all lanes that meet there. A mask of __activemask() promises none but the "
            "calling lane"
          : "Name all lanes that are read in the mask, and let them all take part";
  report(finding);
}

void BlockChecker::outside_local(unsigned thread, const OutsideLocal& what,
                                 const AboutVariable& about, std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = CheckKind::kOutOfBounds;
  finding.access = seen_at(thread, pc, what.bytes);
  finding.access.write = what.writes;
  finding.space = "local";
  finding.array = what.name;
  const std::string access = concat(verb(what.writes), "s ", what.bytes, " bytes ");
  if (what.size == 0) {
    finding.message = access + "outside each of the local variables that the pointer may be of";
  } else {
    finding.offset = what.offset;
    if (!finding.array.empty()) finding.shape = read_shape(about.shape);
    finding.message = concat(access, "at byte ", what.offset, " of ",
                             finding.array.empty() ? "a local variable" : finding.array,
                             ", which has ", what.size);
  }
  finding.advice = "Check the index against the size of the array";
  report(finding);
}

void BlockChecker::misaligned(unsigned thread, std::uintptr_t at, unsigned alignment,
                              std::size_t bytes, std::uintptr_t pc, bool is_local) {
  SeenFinding finding;
  finding.kind = CheckKind::kMisaligned;
  finding.access = seen_at(thread, pc, bytes);
  if (is_local) {
    finding.severity = Severity::kLatent;
    finding.space = "local";
  } else {
    name_memory(finding, at, thread);
  }
  finding.message = concat("accesses ", bytes, " bytes at an address that is ", at % alignment,
                           " bytes past a multiple of ", alignment);
  finding.advice =
      is_local ? "Declare the array with alignas: where a GPU keeps it in registers that is right, "
                 "where it keeps it in memory the access is refused"
               : "Vector loads and stores need addresses that are multiples of their size; the "
                 "rest of this block was not run";
  report(finding);
}

void BlockChecker::fault(unsigned thread, std::uintptr_t at, bool misaligned,
                         const std::string& message, const char* advice, std::uintptr_t pc) {
  SeenFinding finding;
  finding.kind = misaligned ? CheckKind::kMisaligned : CheckKind::kOutOfBounds;
  finding.access = seen_at(thread, pc, 0);
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  name_memory(finding, at, thread);
  if (finding.offset < -kFar || finding.offset > kFar) {
    finding.space = "";
    finding.array.clear();
    finding.shape = {};
    finding.offset = 0;
  }
  finding.message = concat(message, "; the rest of this block was not run");
  finding.advice = advice;
  report(finding);
}

bool BlockChecker::is_outside_shared(std::uintptr_t at, std::size_t bytes) const {
  if (x_dynamic.contains(at))
    return at < x_dynamic_begin || at + bytes > x_dynamic_begin + x_dynamic_bytes;
  for (const StaticArray& array : x_static_arrays)
    if (at >= array.begin && at + bytes <= array.begin + array.bytes) return false;
  return !x_static_arrays.empty();
}

void BlockChecker::report_outside(const Now& now) {
  SeenFinding finding;
  finding.kind = CheckKind::kOutOfBounds;
  finding.access = seen(now);
  name_memory(finding, now.at, now.thread);
  // Behind dynamic shared memory, and nearer to it than to any array of global memory?
  const std::uintptr_t end = x_dynamic_begin + x_dynamic_bytes;
  if (x_dynamic_bytes != 0 && now.at >= end && !x_static.contains(now.at)) {
    const WatchedMemory* const near = x_checker->nearest(now.at);
    if (near == nullptr || now.at - end < distance_to(*near, now.at)) {
      name_memory(finding, end - 1, now.thread);
      finding.offset += static_cast<std::int64_t>(now.at - end + 1);
    }
  }
  finding.message = concat(verb(now.kind == Access::kWrite), "s ", now.bytes,
                           now.bytes == 1 ? " byte " : " bytes ", outside_text(now.at, now.bytes));
  finding.advice = "Check the index against the size of the array";
  report(finding);
}

bool BlockChecker::is_usable_global(ShadowPage& page, const Now& now) {
  const WatchedMemory* const near = x_checker->nearest(now.at);
  if (near != nullptr && now.at >= near->begin && now.at + now.bytes <= near->begin + near->bytes) {
    if (!near->freed) return true;
    SeenFinding finding;
    finding.kind = CheckKind::kUseAfterFree;
    finding.access = seen(now);
    name_memory(finding, now.at, now.thread);
    finding.message = concat(verb(now.kind == Access::kWrite), "s memory after cudaFree");
    finding.advice = "Free it after the last launch that uses it has ended";
    report(finding);
    return false;
  }
  // Memory that the harness or a library holds is not known. Near an array it is taken for that one's.
  const bool foreign =
      near == nullptr || distance_to(*near, now.at) > kZone || x_checker->is_other_memory(now.at);
  if (page.begin == page.end && foreign && !x_checker->is_guard(now.at)) {
    page.ignored = !page.mixed;
    ++x_checker->summary().unknown;
    return false;
  }
  if (x_checker->may_be_unnamed_constant(now.at)) {
    ++x_checker->summary().unknown;
    return false;
  }
  report_outside(now);
  return false;
}

}  // namespace attn_diag::host
