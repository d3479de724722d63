// Runs the threads of one block at a time, on the calling worker thread, each as a fiber.
//
// A fiber runs until it has to wait and then jumps straight into the next one; there is no
// scheduler in between. Fibers are made once and loop over blocks; only after a block was abandoned
// are they made anew, on the same stacks.
#pragma once

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "harness/host/alternate_stack.h"
#include "harness/host/block_barriers.h"
#include "harness/host/block_collectives.h"
#include "harness/host/block_context.h"
#include "harness/host/block_copies.h"
#include "harness/host/block_matrix.h"
#include "harness/host/block_mbarriers.h"

namespace attn_diag::host {

class ValueRecorder;
struct FlightRecord;

// The parts of a block, and what only it as a whole can do: begin, end, and what instrumented code tells of
// its loads and stores. What kernels call reaches the parts in block_calls.cc.
class __attribute__((visibility("hidden"))) BlockRunner final : public BlockContext {
 public:
  BlockRunner();
  ~BlockRunner();

  // The runner whose block this thread is running, or null.
  static BlockRunner* current() { return static_cast<BlockRunner*>(running()); }

  // To be called once before the blocks of a launch. `plan` must outlive them.
  void begin_launch(const LaunchPlan& plan);
  // Runs block `number` of the grid (x fastest) to its end or to the first finding.
  BlockOutcome run_block(std::uint64_t number);

  BlockBarriers& barriers() { return x_barriers; }
  WarpCollectives& collectives() { return x_collectives; }
  WarpMatrices& matrices() { return x_matrices; }
  BlockCopies& copies() { return x_copies; }
  Mbarriers& mbarriers() { return x_mbarriers; }

  [[noreturn]] void report_launch_bounds(unsigned most_threads, const char* file, int line);
  [[noreturn]] void report_left_out();
  [[noreturn]] void report_trap(const char* what, const char* advice, const char* file, int line);
  [[noreturn]] void report_failed_assert(const char* condition, const char* file, int line);
  // Records a grid.sync() of this round if some blocks will never reach it. False: they may still come.
  bool record_missing_blocks(std::uint64_t round, const char* file, int line);

  // Null unless the launch records where its numbers come from; set also for blocks that are not watched.
  ValueRecorder* values() const { return x_values; }
  bool watches_values() const { return x_watches_values; }
  // As in ValueNode.
  std::uint32_t place_of_values() const { return x_values_block << 10 | x_current->index.linear; }
  // For the flight record: in signal handlers, perhaps of another thread.
  bool is_running() const { return x_running; }
  void describe(FlightRecord& out) const noexcept;

  // A load or store of an instrumented library, which comes next.
  void access(MemoryAccess what, std::uintptr_t pc, std::uintptr_t frame);
  // All that a loop loads and stores, which comes next. False: it is to announce each by itself.
  bool access_loop(const std::uint32_t* shape, const std::int64_t* values,
                   const std::uint64_t* sites, std::uintptr_t frame);
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
  void note_landed(const AsyncCopy& copy, bool waited) {
    if (x_check != nullptr)
      x_check->async_landed(reinterpret_cast<std::uintptr_t>(copy.to), copy.bytes, waited);
  }
  void note_atomic(const void* memory, std::size_t bytes, bool reads, const void* pc) {
    if (is_own(reinterpret_cast<std::uintptr_t>(memory))) [[unlikely]]
      report_local_atomic(reinterpret_cast<std::uintptr_t>(pc));
    if (x_check == nullptr) return;
    x_check->begin_atomic(x_current->index.linear,
                          {reads ? Access::kUpdate : Access::kWrite,
                           reinterpret_cast<std::uintptr_t>(memory), bytes, kAtomic},
                          reinterpret_cast<std::uintptr_t>(pc));
  }
  // The atomic operation noted last has changed what is there.
  void note_changed(const void* memory) {
    if (x_check != nullptr)
      x_check->hand_over(x_current->index.linear, reinterpret_cast<std::uintptr_t>(memory));
  }
  void note_overflow(std::int64_t left, const char* sign, std::int64_t right, const char* type,
                     const void* pc) {
    if (x_check != nullptr)
      x_check->overflow(x_current->index.linear, left, sign, right, type,
                        reinterpret_cast<std::uintptr_t>(pc));
  }
  // What the next call of note_index(), note_local_outside() or note_local_array() is about.
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
    const bool is_local = is_own(at);
    x_check->misaligned(x_current->index.linear, at, alignment, bytes,
                        reinterpret_cast<std::uintptr_t>(pc), is_local);
    // The access itself would end the program, but for what processors load anywhere.
    constexpr std::size_t kAnywhere = 8;
    if (!is_local || bytes > kAnywhere) leave_for_good();
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
  // What the kernel calls memory that it was given.
  void note_argument(const char* name, std::uintptr_t at) {
    if (x_check != nullptr) x_plan->checker->name_memory(name, at);
  }
  void note_shared_pointer(const char* name, const volatile void* pointer) {
    if (x_check != nullptr)
      x_check->shared_pointer(x_current->index.linear, name,
                              reinterpret_cast<std::uintptr_t>(pointer));
  }
  // In a signal handler. Comes back if that was not the kernel's doing.
  void leave_after_fault(int signal, const siginfo_t& info, const void* context);

 private:
  static void fiber_main();
  void run_thread();
  void exit_thread();
  void begin_values(std::uint64_t number);

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
  void record_at(LaunchFindingKind kind, const std::string& what, const char* advice,
                 std::uintptr_t pc);
  [[noreturn]] void report_local_atomic(std::uintptr_t pc);
  void record_what_ended_block();

  BlockBarriers x_barriers{*this};
  WarpCollectives x_collectives{*this};
  WarpMatrices x_matrices{*this, x_collectives};
  BlockCopies x_copies{*this};
  Mbarriers x_mbarriers{*this, x_copies.in_flight()};

  bool x_watches_memory = false;  // the schedule or the checker wants to know of loads and stores
  BlockChecker* x_easy_check = nullptr;  // x_check, except in lockstep
  AnnouncedLoop x_loop;
  AboutVariable x_about;  // of the report that comes next
  std::unique_ptr<BlockChecker> x_made_check;
  ValueRecorder* x_values = nullptr;
  bool x_watches_values = false;
  std::uint32_t x_values_block = 0;
  std::uint64_t x_number = 0;
  std::atomic<bool> x_running{false};  // a block
  AlternateStack x_alternate_stack;
  bool x_keeps_faults = false;
  Fault x_fault;
};

}  // namespace attn_diag::host
