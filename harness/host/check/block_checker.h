// Checks the loads and stores of one block as they happen.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/host/check/announced_loop.h"
#include "harness/host/check/checker.h"
#include "harness/host/check/clock.h"
#include "harness/host/check/local_arrays.h"
#include "harness/host/check/shadow.h"
#include "harness/host/check/static_arrays.h"

namespace attn_diag::host {

enum class Access : std::uint8_t { kRead, kWrite, kUpdate };  // the last: both, in this order

struct MemoryAccess {
  Access kind;
  std::uintptr_t at;
  std::size_t bytes;
  std::uint32_t flags;  // AccessFlags
};

// An access past the end of a local variable of the thread.
struct OutsideLocal {
  const char* name;     // may be empty
  std::int64_t offset;  // of the access from the variable's begin
  std::uint64_t bytes;
  std::uint64_t size;  // of the variable; 0: one of several
  bool writes;
};

class BlockChecker {
 public:
  // `statics`: the library's thread-local storage, or 0; `dynamic`: of the size given in the plan.
  void begin_launch(const LaunchPlan& plan, std::uintptr_t statics, void* dynamic);
  void begin_block(std::uint64_t block, unsigned threads);
  void end_block();

  // The access happens when this returns.
  void access(unsigned thread, const MemoryAccess& what, std::uintptr_t pc);
  // The same of an atomic operation which says by hand_over() whether it changed anything. One that left the value
  // as it was hands nothing over: whoever sees that value may have seen it before.
  void begin_atomic(unsigned thread, const MemoryAccess& what, std::uintptr_t pc);
  void hand_over(unsigned thread, std::uintptr_t at);
  // Arrives or waits at a barrier object, which it reads here, so that only its initialisation may race with that: whom
  // it orders, arrive(), complete() and leave() say.
  void use_barrier(unsigned thread, std::uintptr_t at, std::size_t bytes, std::uintptr_t pc);
  // All accesses of a loop, about to happen. False: not all are known to be right, and each is to be announced by
  // itself; only right ones have been noted.
  bool access_loop(unsigned thread, const AnnouncedLoop& loop, std::uintptr_t frame);
  // Most loads: of shared memory that other lanes of the warp have just read by the same instruction. Notes
  // it and returns true; otherwise access() is to be called. `bytes` is a power of two.
  __attribute__((always_inline)) bool note_easy_read(unsigned thread, std::uintptr_t at,
                                                     std::size_t bytes, std::uintptr_t pc) {
    WarpReaders* const readers = easy_readers(at, bytes);
    if (readers == nullptr) return false;
    Thread& mine = x_thread[thread];
    const std::uint32_t lane = 1u << (thread % 32);
    if (readers->warp != warp_of(mine.epoch) || readers->pc != from_base(pc) ||
        (readers->lanes & lane) != 0)
      return false;
    readers->lanes |= lane;
    mine.counts += kEasyRead;
    return true;
  }
  // As the function above, for the first lane of a warp.
  bool note_first_read(unsigned thread, std::uintptr_t at, std::size_t bytes, std::uintptr_t pc) {
    WarpReaders* const readers = easy_readers(at, bytes);
    if (readers == nullptr) return false;
    Thread& mine = x_thread[thread];
    if (!add_readers(*readers, warp_of(mine.epoch), 1u << (thread % 32), from_base(pc),
                     size_code(bytes)))
      return false;
    mine.counts += kEasyRead;
    return true;
  }
  // Whether the thread has noted such reads since it was last asked.
  bool take_easy_reads(unsigned thread) {
    Thread& mine = x_thread[thread];
    const std::uint64_t reads = mine.counts >> 32;
    mine.counts &= 0xFFFFFFFFu;
    x_checker->summary().loads += reads;
    return reads != 0;
  }
  // An access to the thread's own stack. `frame`: that of the call-out, below those of the accessing code.
  void local_access(unsigned thread, const MemoryAccess& what, std::uintptr_t pc,
                    std::uintptr_t frame) {
    ++x_checker->summary().local;
    if (x_thread[thread].locals.any()) look_at_local(thread, what, pc, frame);
  }
  void local_array(unsigned thread, std::uintptr_t begin, std::size_t bytes, const char* name,
                   const AboutVariable& about) {
    x_thread[thread].locals.declare(begin, bytes, name, read_shape(about.shape));
  }
  // The kernel has given a place in dynamic shared memory a name.
  void shared_pointer(unsigned thread, const char* name, std::uintptr_t at);
  // An operation on signed integers whose result does not fit.
  void overflow(unsigned thread, std::int64_t left, const char* sign, std::int64_t right,
                const char* type, std::uintptr_t pc);
  // The index of an array whose type, as the compiler names it, says how many elements it has.
  // It is reported with the thread's next finding or as the block ends, unless ignores_address() is called before
  // the thread accesses memory.
  void index_out_of_bounds(unsigned thread, std::int64_t index, const char* type,
                           const AboutVariable& about, std::uintptr_t pc);
  // The thread has passed an instruction an address that the instruction does not look at, as lanes 16 to
  // 31 do with ldmatrix.x2. An index that was computed for it since the last access is no error.
  void ignores_address(unsigned thread);
  // A shuffle by `mask` has read the register of a lane that took no part in it.
  void absent_lane(unsigned thread, unsigned lane, std::uint32_t mask, std::uintptr_t pc);
  void outside_local(unsigned thread, const OutsideLocal& what, const AboutVariable& about,
                     std::uintptr_t pc);
  // A pointer that is no multiple of its type's alignment is used.
  // `is_local`: of the thread's own variables, which a GPU may keep in registers.
  void misaligned(unsigned thread, std::uintptr_t at, unsigned alignment, std::size_t bytes,
                  std::uintptr_t pc, bool is_local);
  // The block is ended because of what the thread asks for at `pc`.
  void ended_at(const std::vector<StackWord>& returns) { x_checker->note_end(returns); }
  void other_waits_at(const std::string& file, int line, const std::vector<StackWord>& returns) {
    x_checker->note_end_of_other(file, line, returns);
  }
  // An access that ended the block.
  void fault(unsigned thread, std::uintptr_t at, bool misaligned, const std::string& message,
             const char* advice, std::uintptr_t pc);
  // All threads of the block have met.
  void block_barrier();
  // All but these, which had returned, are about to meet there.
  void threads_returned(unsigned count, const char* file, int line) {
    if (x_returned.count == 0) x_returned = {count, file, line};
  }
  // The lanes of a warp have met. `orders`: what they did before is seen by what they do afterwards.
  void warp_sync(unsigned warp, std::uint32_t lanes, std::uint32_t live, bool orders);
  void fence(unsigned thread, bool device);
  // At a barrier of some threads, or a flag that the executor keeps: a thread arrives, the phase ends, a
  // thread that has waited for that goes on.
  void arrive(unsigned thread, std::uintptr_t object);
  void complete(std::uintptr_t object);
  void leave(unsigned thread, std::uintptr_t object);
  // As leave(), of a named barrier.
  void leave_named(unsigned thread, unsigned id, const char* file, int line) {
    leave(thread, id);
    x_thread[thread].passed = {file, line, id, x_interval};
  }
  // An asynchronous copy into shared memory is issued, and has been waited for.
  void async_copy(unsigned thread, std::uintptr_t to, std::uintptr_t from, std::size_t bytes,
                  std::size_t zeros, std::uintptr_t pc);
  // `waited`: the thread that issued it waits for it; what others know of it is none of that.
  void async_landed(std::uintptr_t to, std::size_t bytes, bool waited);
  // A thread has waited for copies of its own, and `all` have landed.
  void waited_for_copies(unsigned thread, bool all, std::uintptr_t pc);

 private:
  struct SharedPointer {
    const char* name;
    std::uintptr_t at;
  };
  struct WaitForCopies {
    Epoch epoch = 0;
    std::uint32_t pc = 0;
    bool all = false;
  };
  struct HeldIndex {
    SeenFinding finding;
    Epoch epoch = 0;
    std::uint64_t counts = 0;  // as the thread's
  };
  // The last named barrier that a thread has passed.
  struct PassedBarrier {
    const char* file = nullptr;
    int line = 0;
    unsigned id = 0;
    std::uint32_t interval = 0;
  };
  struct Thread {
    Epoch epoch = 0;
    std::vector<WaitForCopies> waits;  // the last ones, of its last interval that had any
    std::uint64_t counts = 0;     // accesses since the last synchronisation; above, see kEasyRead
    SharedClock clock, unfenced;  // what it has learned by flags and barrier objects
    BlockView fenced;             // of its own block, when it last fenced
    std::uint32_t fenced_tick =
        0;  // its accesses of this interval before a fence, of the block too
    std::vector<SharedPointer> pointers;  // into dynamic shared memory, that it has declared
    LocalArrays locals;
    std::vector<HeldIndex> held;
    PassedBarrier passed;
  };
  static constexpr std::uint64_t kEasyRead = std::uint64_t{1} << 32 | 1;
  // Which accesses of its warp a lane comes after.
  struct LaneOrder {
    std::uint32_t full = 0;  // all at earlier ticks
    bool partial = false;    // also: lane a comes after lane b's at ticks before known[a][b]
    std::array<std::array<std::uint32_t, 32>, 32> known{};

    std::uint32_t before(unsigned lane, unsigned other) const {
      return partial ? std::max(full, known[lane % 32][other % 32]) : full;
    }
    void begin_partial() {
      if (!partial)
        for (auto& row : known) row.fill(full);
      partial = true;
    }
    // `lanes` come after one another, and after what any of them came after.
    void join(std::uint32_t lanes, std::uint32_t tick);
  };
  struct WarpClock {
    std::uint32_t tick = 0;
    LaneOrder met;        // by any collective,
    LaneOrder ordered;    // and by those that order memory
    bool fenced = false;  // some lane has fenced in this interval
  };
  // Loads of shared memory by whole loops, of many elements at the very same places. They are put into the records
  // once something else touches these places in the interval. What was written there is older, so nothing needs them
  // before.
  struct WideRead {
    Stretches places;
    std::uint32_t pc = 0, bytes = 0;
    std::vector<Epoch> readers;  // in order
  };
  // Where the array is that has all of what an access of a loop touches; kNone: no one array has all of it.
  enum class MemorySpace { kNone, kOwn, kShared, kGlobal };
  // The access being looked at.
  struct Now {
    unsigned thread;
    Epoch epoch;
    std::uintptr_t at;
    std::uint32_t bytes, pc, how;
    bool shared;
    Access kind;
  };

  template <bool kShared>
  void touch(Record& record, WarpReaders* readers, const Now& now);
  std::uint32_t from_base(std::uintptr_t pc) const {
    return static_cast<std::uint32_t>(pc - x_base);
  }
  // Null: not shared memory, or not a whole granule.
  __attribute__((always_inline)) WarpReaders* easy_readers(std::uintptr_t at, std::size_t bytes) {
    FlatShadow* const flat = x_dynamic.contains(at)  ? &x_dynamic
                             : x_static.contains(at) ? &x_static
                                                     : nullptr;
    if (flat == nullptr) return nullptr;
    ShadowPage& page = flat->page(at);
    if (page.wide || page.shift() != static_cast<unsigned>(std::countr_zero(bytes)) ||
        (at & (bytes - 1)) != 0)
      return nullptr;
    return page.readers_at(static_cast<std::uint32_t>(at & (kPageBytes - 1)));
  }
  // The first lane of a warp reads. False: this is not enough to note it.
  bool add_readers(WarpReaders& readers, Epoch warp, std::uint32_t lane, std::uint32_t pc,
                   std::uint32_t how) const;
  void note_readers(Record& record, WarpReaders& readers) const;
  template <bool kShared>
  void look_at(ShadowPage& page, std::uint32_t offset, std::uint32_t bytes, const Now& now);
  template <bool kShared>
  bool is_ordered(Epoch earlier, const Now& now) const;
  // block_loop.cc
  MemorySpace space_of(const AccessOfLoop& access);
  Now now_of(unsigned thread, const AccessOfLoop& access, bool shared) const;
  template <bool kShared>
  bool is_right(const Record& record, const Now& now) const;  // would be reported otherwise
  void fetch_records(const Stretches& places);
  bool write_first(Record& record, WarpReaders& readers, const Now& now) const;
  bool read_given(Record& record, const Now& now) const;
  template <bool kShared>
  bool read_all(const AccessOfLoop& access, const Now& now);
  template <bool kShared>
  bool write_all(const AccessOfLoop& access, const Now& now);
  bool note_wide_read(const AccessOfLoop& access, const Now& now);
  bool is_of_earlier_intervals(const Stretches& places, std::uint32_t bytes);
  // Puts the loads that overlap with these bytes into the records.
  void settle_wide(std::uintptr_t at, std::size_t bytes);
  void settle(const WideRead& read);
  void remove_wide(std::size_t number);
  void mark_wide(const Stretches& places, bool wide);
  bool is_ordered_in_segment(Epoch earlier, unsigned thread) const;
  bool is_ordered_in_warp(Epoch earlier, unsigned thread) const;
  bool has_met(Epoch earlier, unsigned thread) const;  // two lanes of a warp, by any collective
  bool is_done(const Entry& reader, const Now& now) const;
  void note_read(Record& record, const Now& now, bool shared) const;
  void look_at_local(unsigned thread, const MemoryAccess& what, std::uintptr_t pc,
                     std::uintptr_t frame);
  SeenAccess seen_at(unsigned thread, std::uintptr_t pc, std::size_t bytes) const;
  void report_held(unsigned thread);
  void report(const SeenFinding& finding);  // behind what is held of its thread
  void new_segment();
  void restart(unsigned thread, std::uint32_t tick);  // after a synchronisation
  void order_fenced(unsigned warp, std::uint32_t lanes);
  BlockView own_view(unsigned thread) const;
  BlockView fenced_view(unsigned thread) const;
  void advance(unsigned thread);
  void learn(unsigned thread, const SharedClock& clock);
  void take_over(unsigned thread, std::uintptr_t at);
  void share_clocks();
  void share_clocks_of_warp(unsigned number, std::uint32_t lanes);

  void report_race(const Entry& earlier, bool earlier_writes, const Now& now);
  // Which named barriers two threads have passed since the last one of the block; empty: neither has passed any.
  std::string passed_since(unsigned reader, unsigned writer) const;
  void report_uninitialised(const Now& now);
  void report_input_write(const Now& now);
  void report_in_flight(const Entry& copy, const Now& now);
  // Notes the wait for an asynchronous copy behind which a barrier is missing.
  void note_wait(SeenFinding& finding, unsigned thread, const WaitForCopies& wait) const;
  // The wait by which its own thread knows what an asynchronous copy wrote; null: there is none.
  const WaitForCopies* wait_for(const Entry& writer) const;
  void report_outside(const Now& now);
  bool is_outside_shared(std::uintptr_t at, std::size_t bytes) const;
  // Whether the access is to memory that is watched; reports it if it may not be accessed.
  bool is_usable_global(ShadowPage& page, const Now& now);
  SeenAccess seen(const Now& now) const;
  SeenAccess seen(const Entry& entry, bool write, unsigned bytes) const;
  void name_memory(SeenFinding& finding, std::uintptr_t at, unsigned thread) const;
  std::string outside_text(std::uintptr_t at, std::size_t bytes) const;

  Checker* x_checker = nullptr;
  const LaunchPlan* x_plan = nullptr;
  std::uintptr_t x_base = 0;       // of the library
  FlatShadow x_static, x_dynamic;  // the latter with the zones around it
  std::uintptr_t x_static_storage = 0, x_dynamic_begin = 0, x_dynamic_bytes = 0;
  std::vector<StaticArray> x_static_arrays;  // at their addresses
  std::vector<WideRead> x_wide;              // the first x_num_wide
  std::size_t x_num_wide = 0;
  std::uint64_t x_block = 0;
  std::uint32_t x_interval = 0, x_segment = 0, x_first_segment = 0;
  unsigned x_threads = 0;
  EarlyReturn x_returned;                  // the first of the block
  std::vector<std::uint32_t> x_copies_at;  // that issue asynchronous copies
  std::vector<Thread> x_thread;
  std::vector<WarpClock> x_warps;
  bool x_synchronising = false;  // within an atomic or volatile access
  bool x_any_clock = false;      // some thread has one
  SharedClock x_block_clock;
  Handovers x_handovers;  // at addresses of shared memory
  Handovers x_objects;    // at barrier objects
};

}  // namespace attn_diag::host
