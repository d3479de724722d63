// The loads and stores of a block: what is looked at for each.
#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/host/check/block_checker.h"

namespace attn_diag::host {

bool BlockChecker::is_ordered_in_segment(Epoch earlier, unsigned thread) const {
  const unsigned other = thread_of(earlier);
  if (other == thread) return true;
  if (other / 32 == thread / 32 && is_ordered_in_warp(earlier, thread)) return true;
  const SharedClock& clock = x_thread[thread].clock;
  return clock != nullptr && clock->covers(x_block, earlier);
}

bool BlockChecker::is_ordered_in_warp(Epoch earlier, unsigned thread) const {
  return tick_of(earlier) < x_warps[thread / 32].ordered.before(thread, thread_of(earlier));
}

bool BlockChecker::has_met(Epoch earlier, unsigned thread) const {
  return segment_of(earlier) == x_segment && thread_of(earlier) / 32 == thread / 32 &&
         tick_of(earlier) < x_warps[thread / 32].met.before(thread, thread_of(earlier));
}

// A load that a warp makes as one has been made when its lanes have met at it.
bool BlockChecker::is_done(const Entry& reader, const Now& now) const {
  return (reader.how & kTile) != 0 && has_met(reader.epoch, now.thread);
}

template <bool kShared>
bool BlockChecker::is_ordered(Epoch earlier, const Now& now) const {
  const std::uint32_t segment = segment_of(earlier);
  if (segment == x_segment) return is_ordered_in_segment(earlier, now.thread);
  if (kShared) return true;  // an earlier interval of this block, or an earlier block
  if (segment < x_checker->first_segment()) return true;
  const std::uint64_t block = x_checker->block_of(segment);
  if (block == x_block) return true;
  const SharedClock& clock = x_thread[now.thread].clock;
  return clock != nullptr && clock->covers(block, earlier);
}

// Which readers to keep: the last; another lane of its warp; and one of another warp, or rather of
// another block, since that stays unordered when this block meets.
void BlockChecker::note_read(Record& record, const Now& now, bool shared) const {
  const Entry entry{now.epoch, now.pc, now.how};
  Entry& last = record.reader;
  if (last.epoch == 0 || thread_of(last.epoch) == now.thread) {
    if (last.epoch != 0 && segment_of(last.epoch) != x_segment && !shared) {
      // The thread of that number of another block, perhaps.
      if (!is_ordered<false>(last.epoch, now)) record.far = last;
    }
    last = entry;
    return;
  }
  const auto same_block_now = [&](const Entry& e) { return segment_of(e.epoch) == x_segment; };
  if (!same_block_now(last)) {
    if (!shared && !is_ordered<false>(last.epoch, now)) record.far = last;
    record.mate = {};
    last = entry;
    return;
  }
  if (thread_of(last.epoch) / 32 == now.thread / 32) {
    record.mate = last;
  } else {
    const bool far_was_mate =
        same_block_now(record.far) && thread_of(record.far.epoch) / 32 == now.thread / 32;
    record.mate = far_was_mate ? record.far : Entry{};
    const bool keep_far = !shared && record.far.epoch != 0 && !same_block_now(record.far) &&
                          !is_ordered<false>(record.far.epoch, now);
    if (!keep_far) record.far = last;
  }
  last = entry;
}

// Any two warps will do: whoever writes in this interval is of another warp than one of them.
bool BlockChecker::add_readers(WarpReaders& readers, Epoch warp, std::uint32_t lane,
                               std::uint32_t pc, std::uint32_t how) const {
  const std::uint32_t segment = segment_of(readers.warp);
  if (segment != x_segment) {
    if (segment < x_first_segment) return false;
    readers = {warp, pc, lane, 0, 0, how};
    return true;
  }
  // A lane that reads again and again is for access(). With barrier objects some warps may know of some.
  if (readers.lanes == 0 || readers.pc != pc || readers.warp == warp || x_any_clock) return false;
  if (readers.before == 0 || thread_of(readers.before) == thread_of(warp)) {
    readers.before = readers.warp;
    readers.before_lanes = readers.lanes;
  }
  readers.warp = warp;
  readers.lanes = lane;
  return true;
}

// Two lanes of a warp are enough: any other is unordered with one of them.
void BlockChecker::note_readers(Record& record, WarpReaders& readers) const {
  const auto note_lane = [&](Epoch warp, int lane) {
    const unsigned thread = thread_of(warp) + static_cast<unsigned>(lane);
    const Epoch epoch = make_epoch(x_segment, thread, tick_of(warp));
    note_read(record, {thread, epoch, 0, 0, readers.pc, readers.how, true, Access::kRead}, true);
  };
  const auto note = [&](Epoch warp, std::uint32_t lanes) {
    if (lanes == 0) return;
    const int first = std::countr_zero(lanes), last = 31 - std::countl_zero(lanes);
    if (last != first) note_lane(warp, first);
    note_lane(warp, last);
  };
  if (segment_of(readers.warp) == x_segment) {
    note(readers.before, readers.before_lanes);
    note(readers.warp, readers.lanes);
  }
  readers = {};
}

template <bool kShared>
void BlockChecker::touch(Record& record, WarpReaders* readers, const Now& now) {
  const bool plain = (now.how & (kAtomic | kVolatile | kAsync)) == 0;
  if (kShared && readers->warp != 0) {
    const std::uint32_t lane = 1u << (now.thread % 32);
    if (plain && now.kind == Access::kRead) {
      if (readers->warp == warp_of(now.epoch) && (readers->lanes & lane) != 0) return;
      if (add_readers(*readers, warp_of(now.epoch), lane, now.pc, now.how & ~kStepMask)) return;
    }
    note_readers(record, *readers);
  }
  if (now.kind == Access::kRead) {
    if (record.reader.epoch == now.epoch) return;
    const Epoch writer = record.writer.epoch;
    const bool initialised = kShared ? segment_of(writer) >= x_first_segment : writer != 0;
    if (!initialised) [[unlikely]]
      report_uninitialised(now);
    else if (kShared && (record.writer.how & kAsync) != 0) [[unlikely]]
      report_in_flight(record.writer, now);
    else if (!is_ordered<kShared>(writer, now)) [[unlikely]]
      report_race(record.writer, true, now);
    else if (kShared && segment_of(writer) < x_segment && plain) {
      *readers = {warp_of(now.epoch), now.pc, 1u << (now.thread % 32), 0, 0, now.how & ~kStepMask};
      return;
    }
    note_read(record, now, kShared);
    return;
  }
  if (kShared && plain) readers->warp = warp_of(now.epoch);
  // What a copy in flight writes is in no order even with what its own thread stores.
  if (record.writer.epoch == now.epoch && record.reader.epoch == 0 &&
      (record.writer.how & kAsync) == 0) {
    record.writer.pc = now.pc;
    record.writer.how = now.how;
    return;
  }
  // A plain store that an atomic races with is what the next atomics are compared with, too.
  const bool stays = (now.how & kAtomic) != 0 && record.writer.epoch != 0 &&
                     segment_of(record.writer.epoch) == x_segment &&
                     (record.writer.how & (kAtomic | kVolatile | kAsync)) == 0 &&
                     !is_ordered<kShared>(record.writer.epoch, now);
  if (record.writer.epoch != 0) {
    if (kShared && (record.writer.how & kAsync) != 0 &&
        segment_of(record.writer.epoch) >= x_first_segment) [[unlikely]]
      report_in_flight(record.writer, now);
    else if (!is_ordered<kShared>(record.writer.epoch, now)) [[unlikely]]
      report_race(record.writer, true, now);
  }
  // Atomics of several warps do not race, but a plain store races with them: one of another warp is kept.
  Entry other_atomic;
  if ((now.how & kAtomic) != 0)
    for (const Entry* entry : {&record.far, &record.writer})
      if ((entry->how & kAtomic) != 0 && thread_of(entry->epoch) / 32 != now.thread / 32 &&
          segment_of(entry->epoch) == x_segment)
        other_atomic = *entry;
  for (Entry* reader : {&record.reader, &record.mate, &record.far}) {
    if (reader->epoch == 0) continue;
    if (!is_ordered<kShared>(reader->epoch, now) && !is_done(*reader, now)) [[unlikely]]
      report_race(*reader, false, now);
    *reader = {};
  }
  record.far = other_atomic;
  if (!stays) record.writer = {now.epoch, now.pc, now.how};
}

// For block_loop.cc; hidden, so that calls are direct.
template __attribute__((visibility("hidden"))) void BlockChecker::touch<true>(Record&, WarpReaders*,
                                                                              const Now&);
template __attribute__((visibility("hidden"))) void BlockChecker::touch<false>(Record&,
                                                                               WarpReaders*,
                                                                               const Now&);
template __attribute__((visibility("hidden"))) bool BlockChecker::is_ordered<true>(
    Epoch, const Now&) const;
template __attribute__((visibility("hidden"))) bool BlockChecker::is_ordered<false>(
    Epoch, const Now&) const;

template <bool kShared>
void BlockChecker::look_at(ShadowPage& page, std::uint32_t offset, std::uint32_t bytes,
                           const Now& now) {
  if (kShared && page.wide) settle_wide(now.at, now.bytes);
  page.fit(offset, bytes);
  Record* record = page.at(offset);
  WarpReaders* readers = kShared ? page.readers_at(offset) : nullptr;
  for (Record* const end = record + (bytes >> page.shift()); record != end; ++record)
    touch<kShared>(*record, kShared ? readers++ : nullptr, now);
}

void BlockChecker::begin_atomic(unsigned thread, const MemoryAccess& what, std::uintptr_t pc) {
  // What a flag hands over must be known before the access is looked at.
  if (what.kind != Access::kWrite) take_over(thread, what.at);
  x_synchronising = true;
  access(thread, what, pc);
  x_synchronising = false;
  if ((what.flags & kAtomic) != 0) ++x_checker->summary().atomics;
}

void BlockChecker::use_barrier(unsigned thread, std::uintptr_t at, std::size_t bytes,
                               std::uintptr_t pc) {
  x_synchronising = true;
  access(thread, {Access::kRead, at, bytes, kAtomic}, pc);
  x_synchronising = false;
}

void BlockChecker::access(unsigned thread, const MemoryAccess& what, std::uintptr_t pc) {
  const auto [kind, at, bytes, flags] = what;
  if ((flags & (kAtomic | kVolatile)) != 0 && !x_synchronising) [[unlikely]] {
    begin_atomic(thread, what, pc);
    if (kind != Access::kRead) hand_over(thread, at);
    return;
  }
  if (kind == Access::kUpdate) {
    access(thread, {Access::kRead, at, bytes, flags}, pc);
    access(thread, {Access::kWrite, at, bytes, flags}, pc);
    return;
  }
  x_checker->settle();
  Thread& mine = x_thread[thread];
  Now now{thread,
          mine.epoch,
          at,
          static_cast<std::uint32_t>(bytes),
          from_base(pc),
          (static_cast<std::uint32_t>(++mine.counts) & kStepMask) | flags | size_code(bytes),
          true,
          kind};
  CheckSummary& summary = x_checker->summary();
  ++(kind == Access::kRead ? summary.loads : summary.stores);
  const auto in_array = [](const ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
    return offset >= page.begin && offset + n <= page.end && !page.mixed;
  };
  bool unusable = false;  // said once of an access, in however many pages it lies
  FlatShadow* const flat = x_dynamic.contains(at)  ? &x_dynamic
                           : x_static.contains(at) ? &x_static
                                                   : nullptr;
  if (flat != nullptr) {
    if (at + bytes > flat->begin() + flat->bytes()) return report_outside(now);
    for_each_page(
        *flat, at, bytes,
        [&, at = at, bytes = bytes](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
          if (unusable) return;
          if (!in_array(page, offset, n) && is_outside_shared(at, bytes)) [[unlikely]] {
            unusable = true;
            return report_outside(now);
          }
          look_at<true>(page, offset, n, now);
        });
    return;
  }
  now.shared = false;
  for_each_page(x_checker->global(), at, bytes,
                [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
                  if (unusable) return;
                  if (page.ignored) {
                    unusable = true;
                    ++summary.unknown;
                    return;
                  }
                  if (page.begin == page.end || !in_array(page, offset, n)) [[unlikely]] {
                    unusable = !is_usable_global(page, now);
                    if (unusable) return;
                  }
                  if (page.input && now.kind != Access::kRead) [[unlikely]]
                    report_input_write(now);
                  look_at<false>(page, offset, n, now);
                });
}

void BlockChecker::async_copy(unsigned thread, std::uintptr_t to, std::uintptr_t from,
                              std::size_t bytes, std::size_t zeros, std::uintptr_t pc) {
  ++x_checker->summary().async_copies;
  if (std::find(x_copies_at.begin(), x_copies_at.end(), from_base(pc)) == x_copies_at.end())
    x_copies_at.push_back(from_base(pc));
  if (bytes > zeros) access(thread, {Access::kRead, from, bytes - zeros, 0}, pc);
  access(thread, {Access::kWrite, to, bytes, kAsync}, pc);
}

void BlockChecker::waited_for_copies(unsigned thread, bool all, std::uintptr_t pc) {
  constexpr std::size_t kKept = 16;
  Thread& mine = x_thread[thread];
  if (!mine.waits.empty() && segment_of(mine.waits.back().epoch) != segment_of(mine.epoch))
    mine.waits.clear();
  if (mine.waits.size() == kKept) mine.waits.erase(mine.waits.begin());
  mine.waits.push_back({mine.epoch, from_base(pc), all});
}

void BlockChecker::async_landed(std::uintptr_t to, std::size_t bytes, bool waited) {
  x_checker->settle();
  FlatShadow& shadow = x_dynamic.contains(to) ? x_dynamic : x_static;
  if (!shadow.contains(to)) return;
  for_each_page(shadow, to, bytes, [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
    page.fit(offset, n);
    Record* record = page.at(offset);
    for (Record* const end = record + (n >> page.shift()); record != end; ++record) {
      Entry& writer = record->writer;
      if (waited && (writer.how & kAsync) != 0)
        writer.epoch = x_thread[thread_of(writer.epoch)].epoch;
      writer.how &= ~kAsync;
    }
  });
}

}  // namespace attn_diag::host
