// Runs the threads of one block at a time, on the calling worker thread, each as a fiber.
//
// A fiber runs until it has to wait and then jumps straight into the next one; there is no
// scheduler in between. Fibers are made once and loop over blocks; only after a block was abandoned
// are they made anew, on the same stacks.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "attn_diag_host/block_barrier.h"
#include "attn_diag_host/matrix_calls.h"
#include "attn_diag_host/synchronize.h"
#include "harness/host/alternate_stack.h"
#include "harness/host/async_copies.h"
#include "harness/host/check/block_checker.h"
#include "harness/host/dynamic_shared.h"
#include "harness/host/fiber.h"
#include "harness/host/fingerprints.h"
#include "harness/host/launch_plan.h"
#include "harness/host/named_barriers.h"
#include "harness/host/shared_window.h"
#include "harness/host/warp_regions.h"
#include "harness/host/watchdog.h"

namespace attn_diag::host {

inline constexpr unsigned kMaxThreads = 1024;
inline constexpr unsigned kWarpSize = 32;

// The threads of one warp and the collectives that some of them wait in.
struct Warp {
  struct Group {
    std::uint32_t mask;     // as the lanes named it
    std::uint32_t arrived;  // of those
    WarpCall kind;          // the operation and, of a shuffle, the width
  };
  std::uint32_t live = 0;       // lanes that have not exited
  std::uint32_t pending = 0;    // groups in use
  std::uint32_t displaced = 0;  // those not at the number of their lowest lane
  Group groups[kWarpSize];
};

class ValueRecorder;
struct MatrixRequest;
struct FlightRecord;

// What somebody does to an mbarrier.
struct MbarrierChange {
  unsigned arrivals;
  bool drop;           // from the next phases too
  std::int64_t bytes;  // announced; negative: copied
};

struct BlockOutcome {
  std::optional<Finding> finding;
  std::string note;                 // empty: none
  std::vector<std::string> latent;  // notes that are the same for every block
  std::uint64_t steps = 0;
  bool silent = false;  // it polled or looped without end: perhaps for what another failed to do
};

class __attribute__((visibility("hidden"))) BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // The runner whose block this thread is running, or null.
  static BlockRunner* current() { return s_current; }

  // To be called once before the blocks of a launch. `plan` must outlive them.
  void begin_launch(const LaunchPlan& plan);
  // Runs block `number` of the grid (x fastest) to its end or to the first finding.
  BlockOutcome run_block(std::uint64_t number);

  // What kernel code reaches through the stand-in headers; called on a fiber. `pc` is the address in
  // the kernel from which that happened, `frame` tells the depth of the call.
  void barrier(const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  BarrierVotes barrier_vote(int predicate, const char* file, int line, std::uintptr_t pc,
                            std::uintptr_t frame);
  std::uint64_t collective(WarpCall call, unsigned mask, std::uint64_t value, const char* file,
                           int line, std::uintptr_t pc, std::uintptr_t frame);
  unsigned active_mask(std::uintptr_t pc, std::uintptr_t frame);
  void* dynamic_shared_memory() { return x_dynamic.data(); }
  void matrix_load(const Fragment& to, const void* memory, unsigned stride, bool column_major,
                   const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void matrix_store(void* memory, const ConstFragment& from, unsigned stride, bool column_major,
                    const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void matrix_multiply(const MatrixRequest& request, const char* file, int line, std::uintptr_t pc,
                       std::uintptr_t frame);
  void async_copy(const AsyncCopy& copy, const void* barrier, std::uintptr_t pc,
                  std::uintptr_t frame);
  void async_commit();
  void async_wait(std::size_t prior, std::uintptr_t pc, std::uintptr_t frame);
  void barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file, int line);
  std::uint32_t barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop,
                               const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file, int line,
                    std::uintptr_t pc, std::uintptr_t frame);
  [[noreturn]] void report_fragment_index(long long index, int elements, const char* file,
                                          int line);
  [[noreturn]] void report_launch_bounds(unsigned most_threads, const char* file, int line);
  [[noreturn]] void report_trap(const char* what, const char* advice, const char* file, int line);
  [[noreturn]] void report_failed_assert(const char* condition, const char* file, int line);
  std::uint32_t shared_address(const void* generic, const char* file, int line);
  void* shared_pointer(std::uint32_t shared, const char* file, int line);
  bool is_shared(std::uintptr_t at) const;
  bool is_own(std::uintptr_t at) const;
  // Of a launch that tells where its numbers come from, else null; of blocks that are not watched, too.
  ValueRecorder* values() const { return x_values; }
  bool watches_values() const { return x_watches_values; }
  // As in ValueNode.
  std::uint32_t place_of_values() const { return x_values_block << 10 | x_current->index.linear; }
  // `wait`: until as many threads have arrived as are named; 0: all.
  void named_barrier(unsigned id, unsigned threads, bool wait, const char* file, int line,
                     std::uintptr_t pc, std::uintptr_t frame);
  void mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file, int line);
  void mbarrier_inval(std::uint64_t* barrier, const char* file, int line);
  // Returns the object as it was.
  std::uint64_t mbarrier_change(std::uint64_t* barrier, const MbarrierChange& change,
                                const char* file, int line, std::uintptr_t pc,
                                std::uintptr_t frame);
  // Whether the barrier has left the phase of this parity.
  bool mbarrier_test_wait(std::uint64_t* barrier, bool phase, const char* file, int line,
                          std::uintptr_t pc, std::uintptr_t frame);
  void mbarrier_arrive_after_copies(std::uint64_t* barrier, bool noinc, const char* file, int line);
  void load_matrix(std::uint32_t* out, int count, bool transposed, const void* row,
                   const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void store_matrix(void* row, const std::uint32_t* in, int count, bool transposed,
                    const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  // All 32 lanes in a matrix operation; `request` is the lane's, until it goes on.
  void meet(WarpCall call, const void* request, const char* file, int line, std::uintptr_t pc,
            std::uintptr_t frame);
  // Lets the threads run that neither wait nor poll, then comes back.
  void poll(Wait wait, const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  // An atomic operation has changed nothing; something.
  void count_idle_atomic(std::uintptr_t pc, std::uintptr_t frame);
  void forget_idle_atomics() { x_idle_atomics = 0; }
  // For the flight record: in signal handlers, perhaps of another thread.
  bool is_running() const { return x_running; }
  void describe(FlightRecord& out) const noexcept;
  // In a grid.sync() of this round that some blocks will never reach. False: they may still come.
  bool record_missing_blocks(std::uint64_t round, const char* file, int line);
  [[noreturn]] void leave_after_finding() { leave_for_good(); }
  // For debuggers: which threads run, wait and have ended.
  std::string threads_text() const;
  // A load or store of an instrumented library, which comes next.
  void access(MemoryAccess what, std::uintptr_t pc, std::uintptr_t frame);
  // All that a loop loads and stores, which comes next. False: it is to announce each by itself.
  bool access_loop(const std::uint32_t* shape, const std::int64_t* values,
                   const std::uint64_t* sites, std::uintptr_t frame);
  // Lockstep: before a branch, and where its paths meet again.
  void enter_region(std::uint32_t region, std::uintptr_t pc, std::uintptr_t frame);
  void join_region(std::uint32_t region, std::uintptr_t pc, std::uintptr_t frame);
  bool watches_memory() const { return x_watches_memory; }
  // Whether the checker alone watches, and has noted the load.
  __attribute__((always_inline)) bool note_easy_read(std::uintptr_t at, std::size_t bytes,
                                                     std::uintptr_t pc) {
    return x_easy_check != nullptr &&
           x_easy_check->note_easy_read(x_current->index.linear, at, bytes, pc);
  }
  bool note_first_read(std::uintptr_t at, std::size_t bytes, std::uintptr_t pc) {
    return x_easy_check != nullptr &&
           x_easy_check->note_first_read(x_current->index.linear, at, bytes, pc);
  }
  // For the checker, if there is one.
  void note_landed(const AsyncCopy& copy) {
    if (x_check != nullptr)
      x_check->async_landed(reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes);
  }
  void note_atomic(const void* memory, std::size_t bytes, bool reads, const void* pc) {
    if (is_own(reinterpret_cast<std::uintptr_t>(memory))) [[unlikely]]
      report_local_atomic(reinterpret_cast<std::uintptr_t>(pc));
    if (x_check == nullptr) return;
    x_check->access(x_current->index.linear,
                    {reads ? Access::kUpdate : Access::kWrite,
                     reinterpret_cast<std::uintptr_t>(memory), bytes, kAtomic},
                    reinterpret_cast<std::uintptr_t>(pc));
  }
  void note_overflow(std::int64_t left, const char* sign, std::int64_t right, const char* type,
                     const void* pc) {
    if (x_check != nullptr)
      x_check->overflow(x_current->index.linear, left, sign, right, type,
                        reinterpret_cast<std::uintptr_t>(pc));
  }
  // What the one of the next three that is called next is about.
  void note_about(const AboutVariable& what) { x_about = what; }
  void note_index(std::int64_t index, const char* type, const void* pc) {
    const AboutVariable about = std::exchange(x_about, {});
    if (x_check != nullptr)
      x_check->index_out_of_bounds(x_current->index.linear, index, type, about,
                                   reinterpret_cast<std::uintptr_t>(pc));
  }
  static constexpr std::size_t kMostElsewhere = std::size_t{1} << 20;
  // An access past the end of a local variable; the caller makes it elsewhere.
  void note_local_outside(const OutsideLocal& what, const void* pc) {
    const AboutVariable about = std::exchange(x_about, {});
    if (x_check != nullptr)
      x_check->outside_local(x_current->index.linear, what, about,
                             reinterpret_cast<std::uintptr_t>(pc));
    if (what.bytes > kMostElsewhere) leave_for_good();
  }
  void note_misaligned(std::uintptr_t at, unsigned alignment, std::size_t bytes, const void* pc) {
    if (x_check == nullptr) return;
    x_check->misaligned(x_current->index.linear, at, alignment, bytes,
                        reinterpret_cast<std::uintptr_t>(pc));
    leave_for_good();  // the access itself would end the program
  }
  void note_local_array(const void* array, std::size_t bytes, const char* name) {
    const AboutVariable about = std::exchange(x_about, {});
    if (x_check != nullptr)
      x_check->local_array(x_current->index.linear, reinterpret_cast<std::uintptr_t>(array), bytes,
                           name, about);
  }
  // Kernel code makes a call that touches memory unseen.
  void note_unseen(const char* what, const void* pc) {
    if (x_check != nullptr) x_plan->checker->unseen(what, reinterpret_cast<std::uintptr_t>(pc));
  }
  void note_fence(bool device) {
    if (x_check != nullptr) x_check->fence(x_current->index.linear, device);
  }
  void note_shared_pointer(const char* name, const volatile void* pointer) {
    if (x_check != nullptr)
      x_check->shared_pointer(x_current->index.linear, name,
                              reinterpret_cast<std::uintptr_t>(pointer));
  }
  // In a signal handler. Comes back if that was not the kernel's doing.
  void leave_after_fault(int signal, const siginfo_t& info, const void* context);
  bool is_lockstep() const { return x_kind == ScheduleKind::kLockstep; }

 private:
  void begin_values(std::uint64_t number);
  static void fiber_main();
  // Runs now and then in a signal handler, while a kernel runs.
  static void tick(void* runner, const Interrupted& at);
  void renew(unsigned thread);

  // block_guards.cc
  void place_shared_memory();
  void poison_shared_memory();
  std::uintptr_t device_address(std::uintptr_t at) const;
  // Whether nvcc may have put the variable so that the address is a multiple, as far as this run shows.
  bool may_be_aligned(std::uintptr_t at, std::size_t alignment) const;
  static constexpr const char* kPlaceNotKnown =
      "its alignment depends on the shared variables before it, of which nvcc leaves out what it "
      "finds unused: align the array itself";
  void check_guards();
  void record_outside_shared(const std::string& name, std::size_t bytes, std::int64_t offset);
  // Once a place: what is right on some devices or for a reason that is not CUDA's.
  void note_latent(const std::string& what, const std::string& why, const char* file, int line);

  // block_faults.cc
  struct Fault {
    int signal = 0;
    std::uintptr_t pc = 0;  // behind the instruction, in the kernel; 0: none
    std::uintptr_t address = 0;
    bool is_misaligned = false, is_unknown = false, local_atomic = false;
  };
  void prepare_for_faults();
  std::string place_text(const Fault& fault) const;
  void record_fault();
  void record_at(FindingKind kind, const std::string& what, const char* advice, std::uintptr_t pc);
  [[noreturn]] void report_local_atomic(std::uintptr_t pc);
  void record_what_ended_block();

  void run_thread();
  void exit_thread();

  // block_schedule.cc
  Fiber& first_thread();
  Fiber* next_thread();  // null: nobody can run
  Fiber* next_lockstep();
  Fiber& first_lane(unsigned warp, std::uint32_t lanes);
  bool choose_step(unsigned warp);
  void let_go_on(unsigned warp, std::uint32_t lanes);
  bool release_joins();
  std::uint64_t random();
  void switch_to(Fiber& to);
  void switch_between(Fiber& from, Fiber& to);
  void switch_to_next_or_report();

  // block_spin.cc
  void stand_back(Wait wait);
  Fiber* next_poller();  // null: nobody polls
  void pass_turn();
  void look_soon();
  void look_again();
  void look_at_running_thread(const Interrupted& at);
  void leave_block(bool for_good);
  void arrived_on_fiber();

  void clear_runnable(unsigned thread) { x_runnable[thread / 64] &= ~(1ull << (thread % 64)); }
  std::uint32_t runnable_lanes(unsigned warp) const {
    return static_cast<std::uint32_t>(x_runnable[warp / 2] >> (warp % 2 * 32));
  }
  void step_together(std::uintptr_t pc, std::uintptr_t frame);
  // Tells the checker of memory that the executor reads or writes for the current thread.
  void note_access(Access kind, const void* memory, std::size_t bytes, std::uintptr_t pc,
                   std::uint32_t flags = 0) {
    if (x_check != nullptr) [[unlikely]]
      x_check->access(x_current->index.linear,
                      {kind, reinterpret_cast<std::uintptr_t>(memory), bytes, flags}, pc);
  }
  Fiber& arrive(Wait wait, const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void wait_for_others(Fiber& fiber);
  void note_position(const Fiber& fiber, std::uintptr_t pc, std::uintptr_t frame);
  void release_barrier();
  void pass_barrier();
  Warp::Group& find_group(Warp& warp, WarpCall call, unsigned mask);
  void pass_group(Warp& warp, unsigned warp_number, Warp::Group& group);
  // Gives every lane of the group its result and makes it runnable.
  void complete_group(Warp& warp, unsigned warp_number, Warp::Group& group);

  // block_matrix.cc
  void complete_matrix(unsigned warp_number, const Warp::Group& group);
  void check_matrix_memory(WarpOp op, MatrixType type, const void* memory, unsigned stride,
                           const char* file, int line);
  void check_fragment_set(const ConstFragment& fragment, WarpOp op, const char* file, int line);
  void record_matrix_misuse(const std::string& what, const char* advice, const char* file,
                            int line);
  [[noreturn]] void report_matrix_mismatch(WarpOp op, const Fiber& one, const Fiber& other,
                                           const char* what);
  [[noreturn]] void report_matrix_lanes_missing(unsigned warp_number, const Warp::Group& group);

  // block_warp_matrix.cc
  void complete_warp_matrix(unsigned warp_number, WarpOp op);
  void check_matrix_row(WarpOp op, const void* row, const char* file, int line);

  // block_shared.cc
  [[noreturn]] void report_not_shared(const char* does, const void* pointer, const char* file,
                                      int line);

  // block_named_barriers.cc
  void release_named_barrier(unsigned id);
  void release_named_barriers_of_all();
  void check_named_barrier(unsigned id, unsigned threads, bool wait, const char* file, int line);
  void record_named_barrier(unsigned id, const std::string& what);
  void note_open_named_barriers();

  // block_mbarrier.cc
  std::uint64_t apply_to_mbarrier(std::uint64_t* barrier, const MbarrierChange& change,
                                  const char* file, int line);
  void land_copies_for(std::uint64_t* barrier, const char* file, int line);
  std::string mbarrier_state(const Fiber& fiber) const;
  void check_mbarrier_memory(const std::uint64_t* barrier, const char* file, int line);
  void check_mbarrier(const std::uint64_t* barrier, const char* file, int line);
  void record_mbarrier(const std::string& does, const std::string& what, const char* advice,
                       const char* file, int line);

  // block_async.cc
  void check_copy(const AsyncCopy& copy, std::uintptr_t pc);
  void check_barrier(const BlockBarrier* barrier, const char* file, int line);
  void note_dropped_copies();

  // block_findings.cc: record the finding; then leave_for_good() abandons the block.
  void record(FindingKind kind, const std::string& what, const std::string& advice,
              const char* file, int line);
  void record_silence();
  void record_exception(const std::string& what);
  [[noreturn]] void leave_for_good();
  [[noreturn]] void report_barrier_divergence();
  [[noreturn]] void report_barrier_zero();
  [[noreturn]] void report_stuck();
  std::string waits_at(const Fiber& fiber) const;
  [[noreturn]] void report_step_limit();
  [[noreturn]] void report_warp_misuse(const char* what, const char* advice);
  std::string where() const;
  std::string thread_name(const Fiber& fiber) const;
  std::string waiting_list() const;
  void note_exited_threads();

  static thread_local constinit BlockRunner* s_current __attribute__((tls_model("initial-exec")));

  const LaunchPlan* x_plan = nullptr;
  bool x_watches_memory = false;  // the schedule or the checker wants to know of loads and stores
  BlockChecker* x_easy_check = nullptr;  // x_check, except in lockstep
  AnnouncedLoop x_loop;
  BlockChecker* x_check = nullptr;  // null: this launch is not checked
  ValueRecorder* x_values = nullptr;
  bool x_watches_values = false;
  std::uint32_t x_values_block = 0;
  std::unique_ptr<BlockChecker> x_made_check;
  Fiber* x_current = nullptr;
  ScheduleKind x_kind = ScheduleKind::kForward;
  WarpOrder x_warp_order = WarpOrder::kForward;  // of lockstep
  unsigned x_threads = 0;                        // of the block
  unsigned x_live = 0;                           // threads that have not exited
  unsigned x_words = 0;                          // of the bit sets
  std::uint64_t x_steps = 0;
  std::uint64_t x_step_limit = 0;

  unsigned x_arrived = 0;  // at the barrier
  const char* x_barrier_file = nullptr;
  int x_barrier_line = 0;
  bool x_barrier_differs = false;
  int x_ayes = 0;          // of the barrier being waited for
  BarrierVotes x_votes{};  // of the one last released

  NamedBarriers x_named;

  bool x_copies_in_flight = false;  // some thread of the block has issued an asynchronous copy
  CopiesInFlight x_copies{kMaxThreads};

  std::uint64_t x_random = 0;
  unsigned x_step_warp = 0;        // lockstep: the warp that runs,
  std::uint32_t x_step_lanes = 0;  // the lanes that have yet to take the current step,
  std::uint32_t x_step_group = 0;  // and all that take it;
  std::uint64_t x_step_number = 0;
  std::array<WarpRegions, kMaxThreads / kWarpSize> x_regions;

  std::array<std::uint64_t, kMaxThreads / 64> x_runnable{};
  std::array<std::uint64_t, kMaxThreads / 64> x_alive{};
  std::array<std::uint64_t, kMaxThreads / 64> x_polling{};  // run when no other thread can
  unsigned x_idle_rounds = 0;                               // of these, in which nothing happened
  std::uint64_t x_round_steps = 0;                          // steps before the last round
  unsigned x_idle_atomics = 0;                              // in a row

  Context x_worker;  // run_block's own context
  void* x_worker_sanitizer_stack = nullptr;
  bool x_from_worker = false;  // whether the fiber that arrives was reached from there
  const void* x_worker_stack_bottom = nullptr;
  std::size_t x_worker_stack_bytes = 0;

  DynamicShared x_dynamic;
  std::uintptr_t x_static_storage = 0;   // the library's thread-local storage; 0: none
  std::byte* x_static_shared = nullptr;  // the part of it that is shared memory; null: none
  SharedWindow x_window;
  std::vector<std::pair<const char*, int>> x_latent_places;  // noted in this launch
  std::unique_ptr<Fiber[]> x_fibers = std::make_unique<Fiber[]>(kMaxThreads);
  std::unique_ptr<FiberStack[]> x_stack = std::make_unique<FiberStack[]>(kMaxThreads);
  std::unique_ptr<Position[]> x_position = std::make_unique<Position[]>(kMaxThreads);
  unsigned x_made = 0;  // fibers that have a stack
  std::unique_ptr<Warp[]> x_warps = std::make_unique<Warp[]>(kMaxThreads / kWarpSize);
  FiberStacks x_stacks;
  dim3 x_indexed_for{0, 0, 0};  // the block shape the fibers' indices are for
  std::uint64_t x_number = 0;
  std::atomic<bool> x_running{false};  // a block
  AlternateStack x_alternate_stack;
  bool x_abandoned = false;

  std::uint64_t x_blocks_run = 0;
  std::uint64_t x_seen_blocks = 0, x_seen_steps = 0;  // when last looked at
  double x_silent_since = 0;                          // CPU time when they changed,
  Fingerprints x_fingerprints;                        // and states of threads since then
  double x_slice = 0;                                 // until the next look,
  unsigned x_looks = 0;                               // after so many
  bool x_interrupted = false;                         // a thread of the block was, as it polls
  double x_turn_begin = 0;  // CPU time; 0: the block has not passed its turn
  std::uint64_t x_seen_progress = 0;
  volatile bool x_passing = false;
  volatile bool x_silent = false;  // for too long: abandon the block
  AboutVariable x_about;           // of the report that comes next
  Watchdog x_watchdog;
  BlockOutcome x_outcome;
  bool x_keeps_faults = false;
  Fault x_fault;
};

}  // namespace attn_diag::host
