// The loads and stores of a loop at once: all of them are right and noted, or the loop is told to announce each.
#include <algorithm>
#include <bit>

#include "harness/host/check/block_checker.h"

namespace attn_diag::host {
namespace {

// Whether a record is of a whole element.
bool is_element(const ShadowPage& page, std::uint32_t bytes) {
  return std::has_single_bit(bytes) &&
         page.shift() == static_cast<unsigned>(std::countr_zero(bytes));
}

}  // namespace
BlockChecker::Now BlockChecker::now_of(unsigned thread, const AccessOfLoop& access,
                                       bool shared) const {
  return {thread,
          x_thread[thread].epoch,
          access.first,
          static_cast<std::uint32_t>(access.bytes),
          from_base(access.pc),
          size_code(access.bytes),
          shared,
          access.write ? Access::kWrite : Access::kRead};
}

BlockChecker::MemorySpace BlockChecker::space_of(const AccessOfLoop& access) {
  if (access.own) return MemorySpace::kOwn;
  const auto is_in = [&](std::uintptr_t begin, std::size_t bytes) {
    return access.begin >= begin && access.end <= begin + bytes;
  };
  if (x_dynamic.contains(access.begin))
    return is_in(x_dynamic_begin, x_dynamic_bytes) ? MemorySpace::kShared : MemorySpace::kNone;
  if (x_static.contains(access.begin)) {
    for (const StaticArray& array : x_static_arrays)
      if (is_in(array.begin, array.bytes))
        return array.is_guard ? MemorySpace::kNone : MemorySpace::kShared;
    return MemorySpace::kNone;
  }
  const WatchedMemory* const array = x_checker->nearest(access.begin);
  return array != nullptr && !array->freed && is_in(array->begin, array->bytes)
             ? MemorySpace::kGlobal
             : MemorySpace::kNone;
}

// False wherever touch() would report something.
template <bool kShared>
bool BlockChecker::is_right(const Record& record, const Now& now) const {
  const Epoch writer = record.writer.epoch;
  const bool written = kShared ? segment_of(writer) >= x_first_segment : writer != 0;
  if (now.kind == Access::kRead && !written) return false;
  if (kShared && written && (record.writer.how & kAsync) != 0) return false;
  if (writer != 0 && !is_ordered<kShared>(writer, now)) return false;
  if (now.kind == Access::kRead) return true;
  for (const Entry* reader : {&record.reader, &record.mate, &record.far})
    if (reader->epoch != 0 && !is_ordered<kShared>(reader->epoch, now)) return false;
  return true;
}

void BlockChecker::mark_wide(const Stretches& places, bool wide) {
  for_each_page(x_dynamic.contains(places.begin) ? x_dynamic : x_static, places.begin,
                places.end - places.begin,
                [&](ShadowPage& page, std::uint32_t, std::uint32_t) { page.wide = wide; });
}

// Pages may have others'.
void BlockChecker::remove_wide(std::size_t number) {
  mark_wide(x_wide[number].places, false);
  std::swap(x_wide[number], x_wide[--x_num_wide]);
  for (std::size_t i = 0; i < x_num_wide; ++i) mark_wide(x_wide[i].places, true);
}

void BlockChecker::settle_wide(std::uintptr_t at, std::size_t bytes) {
  for (std::size_t i = x_num_wide; i-- > 0;)
    if (x_wide[i].places.may_overlap(at, bytes)) {
      settle(x_wide[i]);
      remove_wide(i);
    }
}

// As if each had just been noted.
void BlockChecker::settle(const WideRead& read) {
  Now now{0, 0, read.places.begin, read.bytes, read.pc, size_code(read.bytes), true, Access::kRead};
  FlatShadow& flat = x_dynamic.contains(read.places.begin) ? x_dynamic : x_static;
  read.places.each([&](std::uintptr_t at, std::size_t bytes) {
    for_each_page(flat, at, bytes, [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
      Record* record = page.at(offset);
      WarpReaders* readers = page.readers_at(offset);
      for (Record* const end = record + (n >> page.shift()); record != end; ++record, ++readers)
        for (const Epoch reader : read.readers) {
          now.thread = thread_of(reader);
          now.epoch = reader;
          if (readers->warp == warp_of(reader) && readers->pc == read.pc)
            readers->lanes |= 1u << (now.thread % 32);
          else
            touch<true>(*record, readers, now);
        }
    });
    return true;
  });
}

bool BlockChecker::is_of_earlier_intervals(const Stretches& places, std::uint32_t bytes) {
  FlatShadow& flat = x_dynamic.contains(places.begin) ? x_dynamic : x_static;
  return places.each([&](std::uintptr_t at, std::size_t stretch) {
    bool is = true;
    for_each_page(flat, at, stretch, [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
      page.fit(static_cast<std::uint32_t>(places.begin & (kPageBytes - 1)), bytes);
      is = is && is_element(page, bytes);
      Record* record = page.at(offset);
      for (Record* const end = record + (n >> page.shift()); record != end; ++record) {
        const std::uint32_t segment = segment_of(record->writer.epoch);
        is = is && segment >= x_first_segment && segment < x_segment &&
             (record->writer.how & kAsync) == 0;
      }
    });
    return is;
  });
}

bool BlockChecker::note_wide_read(const AccessOfLoop& access, const Now& now) {
  // For fewer elements, or by the records' own ways, it is not worth it.
  constexpr std::uint64_t kFewest = 256;
  constexpr std::size_t kMost = 8, kMostReaders = 1 << 12;
  if (access.count < kFewest) return false;
  const Stretches places = access.stretches();
  if (places.num_rows > 1) return false;
  for (std::size_t i = 0; i < x_num_wide; ++i) {
    WideRead& known = x_wide[i];
    if (known.pc != now.pc || known.bytes != now.bytes || !(known.places == places)) continue;
    if (known.readers.size() == kMostReaders) return false;
    known.readers.push_back(now.epoch);
    return true;
  }
  const auto settle_others = [&](std::uintptr_t at, std::size_t bytes) {
    settle_wide(at, bytes);
    return true;
  };
  places.each(settle_others);
  if (x_num_wide == kMost || !is_of_earlier_intervals(places, now.bytes)) return false;
  if (x_num_wide == x_wide.size()) x_wide.emplace_back();
  WideRead& read = x_wide[x_num_wide++];
  read.places = places;
  read.pc = now.pc;
  read.bytes = now.bytes;
  read.readers.assign(1, now.epoch);
  mark_wide(places, true);
  return true;
}

// An element of global memory has 64 bytes of records: a tensor's are seldom in the cache.
void BlockChecker::fetch_records(const Stretches& places) {
  unsigned left = 64;
  places.each([&](std::uintptr_t at, std::size_t) {
    ShadowPage& page = x_checker->global_page(at);
    if (!page.touched()) return false;
    __builtin_prefetch(page.at(static_cast<std::uint32_t>(at & (kPageBytes - 1))), 1);
    return --left > 0;
  });
}

// What touch() does to the first access of this interval if it is a store: there is nothing to compare it with.
bool BlockChecker::write_first(Record& record, WarpReaders& readers, const Now& now) const {
  const auto is_now = [this](Epoch epoch) { return segment_of(epoch) == x_segment; };
  if (is_now(record.writer.epoch) || is_now(record.reader.epoch) || is_now(record.mate.epoch) ||
      is_now(record.far.epoch) || is_now(readers.warp) || (record.writer.how & kAsync) != 0)
    return false;
  record = {{now.epoch, now.pc, now.how}, {}, {}, {}};
  readers = {};
  readers.warp = warp_of(now.epoch);
  return true;
}

// What touch() does to a load of what was there before the launch.
bool BlockChecker::read_given(Record& record, const Now& now) const {
  const Epoch writer = record.writer.epoch;
  if (writer == 0 || segment_of(writer) >= x_checker->first_segment()) return false;
  if (record.reader.epoch != now.epoch) note_read(record, now, false);
  return true;
}

template <bool kShared>
bool BlockChecker::read_all(const AccessOfLoop& access, const Now& now) {
  if (kShared && note_wide_read(access, now)) return true;
  const Epoch warp = warp_of(now.epoch);
  const std::uint32_t lane = 1u << (now.thread % 32);
  const auto each_page = [&](ShadowPage& page, std::uint32_t offset, std::uint32_t bytes) {
    if (page.ignored) return false;
    if (kShared && page.wide) settle_wide(access.begin, access.end - access.begin);
    page.fit(static_cast<std::uint32_t>(access.first & (kPageBytes - 1)), now.bytes);
    const bool is_easy = is_element(page, now.bytes);
    Record* record = page.at(offset);
    WarpReaders* readers = kShared ? page.readers_at(offset) : nullptr;
    for (Record* const end = record + (bytes >> page.shift()); record != end; ++record) {
      if (kShared) {
        WarpReaders& of_warp = *readers++;
        if (is_easy && of_warp.warp == warp && of_warp.pc == now.pc) {  // as note_easy_read()
          of_warp.lanes |= lane;
          continue;
        }
        if (!is_right<true>(*record, now)) return false;
        touch<true>(*record, &of_warp, now);
      } else {
        if (read_given(*record, now)) continue;
        if (!is_right<false>(*record, now)) return false;
        touch<false>(*record, nullptr, now);
      }
    }
    return true;
  };
  const Stretches places = access.stretches();
  if (!kShared) fetch_records(places);
  return places.each([&](std::uintptr_t at, std::size_t bytes) {
    bool right = true;
    const auto act = [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
      right = right && each_page(page, offset, n);
    };
    if constexpr (kShared)
      for_each_page(x_dynamic.contains(at) ? x_dynamic : x_static, at, bytes, act);
    else
      for_each_page(x_checker->global(), at, bytes, act);
    return right;
  });
}

template <bool kShared>
bool BlockChecker::write_all(const AccessOfLoop& access, const Now& now) {
  const auto counted = static_cast<std::uint32_t>(x_thread[now.thread].counts);
  Now one = now;
  return access.each([&](std::uintptr_t at, std::uint64_t step) {
    one.at = at;
    one.how = ((counted + static_cast<std::uint32_t>(step)) & kStepMask) | now.how;
    bool right = true;
    const auto act = [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
      right = right && !page.ignored && !page.input;
      if (!right) return;
      if (kShared && page.wide) settle_wide(at, now.bytes);
      page.fit(offset, n);
      Record* record = page.at(offset);
      WarpReaders* readers = kShared ? page.readers_at(offset) : nullptr;
      for (Record* const end = record + (n >> page.shift()); record != end && right; ++record) {
        if (kShared && write_first(*record, *readers, one)) {
          ++readers;
          continue;
        }
        if (kShared && segment_of(readers->warp) == x_segment) note_readers(*record, *readers);
        right = is_right<kShared>(*record, one);
        if (right) touch<kShared>(*record, kShared ? readers++ : nullptr, one);
      }
    };
    if constexpr (kShared)
      for_each_page(x_dynamic.contains(at) ? x_dynamic : x_static, at, now.bytes, act);
    else
      for_each_page(x_checker->global(), at, now.bytes, act);
    return right;
  });
}

bool BlockChecker::access_loop(unsigned thread, const AnnouncedLoop& loop, std::uintptr_t frame) {
  x_checker->settle();
  Thread& mine = x_thread[thread];
  const std::uint64_t counted = mine.counts & 0xFFFFFFFFu;
  if (counted + loop.steps > 0xFFFFFFFFu) return false;
  std::array<MemorySpace, callouts::kMostAccesses> spaces;
  for (unsigned i = 0; i < loop.num_accesses; ++i) {
    spaces[i] = space_of(loop.access[i]);
    if (spaces[i] == MemorySpace::kNone) return false;
  }
  // Where stores overlap with other accesses, only this is allowed: an element is loaded, then stored.
  for (unsigned i = 0; i < loop.num_accesses; ++i)
    for (unsigned j = i + 1; j < loop.num_accesses; ++j) {
      const AccessOfLoop &a = loop.access[i], &b = loop.access[j];
      if ((!a.write && !b.write) || a.own || b.own || !a.may_overlap(b)) continue;
      if (a.write || !a.has_same_places(b)) return false;
    }
  const auto all = [&](bool write, const auto& act) {
    for (unsigned i = 0; i < loop.num_accesses; ++i)
      if (loop.access[i].write == write && !act(loop.access[i], spaces[i])) return false;
    return true;
  };
  const auto now = [&](const AccessOfLoop& access, MemorySpace space) {
    return now_of(thread, access, space == MemorySpace::kShared);
  };
  if (!all(false, [&](const AccessOfLoop& access, MemorySpace space) {
        if (space == MemorySpace::kOwn)
          return !mine.locals.any() ||
                 access.stretches().each([&](std::uintptr_t at, std::size_t bytes) {
                   return mine.locals.is_written(at, bytes, frame);
                 });
        return space == MemorySpace::kShared ? read_all<true>(access, now(access, space))
                                             : read_all<false>(access, now(access, space));
      }))
    return false;
  if (!all(true, [&](const AccessOfLoop& access, MemorySpace space) {
        if (space == MemorySpace::kOwn)
          return !mine.locals.any() ||
                 access.stretches().each([&](std::uintptr_t at, std::size_t bytes) {
                   mine.locals.write(at, bytes, frame);
                   return true;
                 });
        return space == MemorySpace::kShared ? write_all<true>(access, now(access, space))
                                             : write_all<false>(access, now(access, space));
      }))
    return false;
  CheckSummary& summary = x_checker->summary();
  for (const AccessOfLoop& access : loop) {
    (access.own ? summary.local : access.write ? summary.stores : summary.loads) += access.count;
    whole_loops().accesses += access.count;
  }
  mine.counts += loop.steps;
  return true;
}

}  // namespace attn_diag::host
