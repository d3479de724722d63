// The SIMT host executor, as the harness drives it. Kernels do not include this: they see the
// stand-in headers cuda_runtime.h, cuda_fp16.h, cuda_bf16.h, whose launches run under the
// LaunchScope in force.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"

namespace attn_diag::host {

enum class ScheduleKind : std::uint8_t { kForward, kReverse, kSeeded, kLockstep };
enum class WarpOrder : std::uint8_t { kForward, kReverse, kTurns };
struct Schedule {
  ScheduleKind kind = ScheduleKind::kForward;
  std::uint64_t seed = 0;
  // In lockstep. kForward, kReverse: a warp runs until it waits, then the next (or previous) one does; blocks start
  // from the first (or last). kTurns: warps take turns, a step each.
  WarpOrder warps = WarpOrder::kForward;
};
// "forward", "reverse", "seed:N", "lockstep", "lockstep:reverse", "lockstep:turns"; throws std::invalid_argument naming these.
Schedule parse_schedule(const std::string& text);
std::string to_string(const Schedule& schedule);
// Whether the text names a schedule in which the lanes of a warp go together: it needs an instrumented library.
inline bool is_lockstep(const std::string& schedule) { return schedule.starts_with("lockstep"); }

// When asynchronous copies read their source and write their destination: at the wait that must complete
// them, the last legal moment; or when they are issued, the first.
enum class AsyncCopies : std::uint8_t { kLate, kEarly };
// "late", "early"; throws std::invalid_argument naming these.
AsyncCopies parse_async_copies(const std::string& text);

class ValueRecorder;  // values.h

struct LaunchOptions {
  Schedule schedule;
  std::uint64_t mma_order =
      0;  // 0: tensor-core products are summed as on sm_90; others: a seed for
          // another order, block size and precision that hardware might have
  AsyncCopies async_copies = AsyncCopies::kLate;
  int workers = 0;               // 0: all cores
  std::uint64_t step_limit = 0;  // synchronisation steps per block; 0: default
  double silent_seconds = 0;     // CPU time a thread may run without reaching a synchronisation
                                 // point; 0: default (10 s)
  // Every byte of shared memory when a block starts, and of what a shuffle reads of a lane that takes no part; 0xFF is
  // NaN in every type.
  std::uint8_t shared_fill = 0xFF;
  std::uint8_t allocated_fill = 0xFF;  // likewise of what is allocated in the scope
  // Watch loads and stores (check.h): instrumented libraries, one worker, asynchronous copies late.
  std::optional<CheckOptions> check;
  // Watch where numbers come from (values.h): watch builds, one worker.
  std::shared_ptr<ValueRecorder> values;
};

enum class LaunchFindingKind : std::uint8_t {
  kBarrierDivergence,   // __syncthreads at different lines, or some threads can never arrive; a
                        // cuda::barrier, mbarrier or named barrier that is misused, or whose phase
                        // never ends
  kWarpDivergence,      // a warp collective whose mask names lanes that cannot arrive, or differing
                        // masks
  kStepLimit,           // the kernel does not end
  kLaunchConfig,        // impossible grid, block or shared memory size
  kNotInstrumented,     // lockstep asked of a library built without it
  kKernelException,     // a C++ exception left the kernel
  kMatrixMisuse,        // a fragment, or a load, store or product of one, that CUDA does not define
  kAsyncCopyMisuse,     // an asynchronous copy that CUDA does not define
  kSharedMemoryMisuse,  // a pointer or 32-bit address that should be the block's shared memory
  kTrap,                // the kernel ended itself: __trap, a failed assert
  kOutOfBounds,         // a store beside shared memory
  kAtomicMisuse,        // an atomic operation on a thread's own memory
  kIllegalAddress,      // an access that ends a kernel: null, not mapped, misaligned
  kLeftOut,             // a kernel that the library was not built for: a build of a few kernels
};

// What went wrong in a launch. `message` is complete: kernel, block, threads, file:line, what to
// do.
struct LaunchFinding {
  LaunchFindingKind kind;
  std::string message;
  std::string file;
  int line = 0;
};

struct LaunchReport {
  std::vector<LaunchFinding> findings;  // empty: the launch completed
  std::vector<std::string> notes;  // legal but worth knowing (threads that exited before a barrier,
                                   // asynchronous copies that nobody waited for)
  std::uint64_t launches = 0, blocks = 0, steps = 0;
  CheckReport check;  // of launches under options.check
};

// The kernels of a library that this process has launched, by the names of its symbols (mangled), sorted. The library is
// loaded.
std::vector<std::string> launched_kernels(const std::string& library);

// While it lives, launches made by this thread run with these options and report here. Nested
// scopes are not allowed. Without a scope, launches run with default options and findings become
// the error returned by cudaGetLastError.
class LaunchScope {
 public:
  explicit LaunchScope(const LaunchOptions& options);
  ~LaunchScope();
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;
  const LaunchReport& report() const;

 private:
  struct State;
  State* x_state;
};

// What the host executor cannot see; one line for every report.
const char* limits_in_one_line();

}  // namespace attn_diag::host
