// One CUDA thread of a block as a fiber, and the stacks fibers run on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn_diag_host/indices.h"
#include "attn_diag_host/warp.h"
#include "harness/host/context_switch.h"

namespace attn_diag::host {

enum class Wait : std::uint8_t {
  kNone,
  kBarrier,
  kWarp,
  kBarrierObject,  // cuda::barrier
  kNamedBarrier,
  // Those that poll: they run when nobody else can.
  kMbarrier,  // for a phase of one
  kSpin,      // at a place that says so
  kGrid,      // in grid.sync(), for other blocks
  kLoop,      // in a loop that always comes back to the same state
  kBusy,      // in a loop that has long not come to a synchronisation point
};
inline constexpr std::size_t kNumWaits = static_cast<std::size_t>(Wait::kBusy) + 1;

// What a switch touches: one cache line a thread.
struct alignas(64) Fiber {
  Context context;             // where it goes on
  const char* file = nullptr;  // its last synchronisation point; null: none yet
  ThreadIndex index{};         // its threadIdx
  std::uint64_t value =
      0;  // what it gave to a warp collective; the cuda::barrier or mbarrier it waits for
  std::uint64_t result = 0;  // and what it gets
  std::uint32_t mask = 0;    // of the warp collective; the number of the named barrier
  WarpCall call = 0;
  std::int32_t line = 0;
  Wait wait = Wait::kNone;
};
static_assert(sizeof(Fiber) == 64 || sizeof(Context) > 8);

// Where it is, for the lockstep schedule: deeper calls go first, then lower addresses.
struct Position {
  std::uint32_t depth = 0;
  std::uintptr_t pc = 0;
  std::uintptr_t seen[2] = {};  // the last memory that it used, in an instrumented build,
  unsigned again = 0;           // and how often it has used nothing else
};

struct FiberStack {
  std::uintptr_t bottom = 0;
  std::uintptr_t top = 0;
  void* sanitizer_stack = nullptr;  // AddressSanitizer's, while the fiber is parked
};

// A growing set of stacks, each with a guard page below it.
class FiberStacks {
 public:
  static constexpr std::size_t kBytes = 256 * 1024;  // kernels keep tens of KiB of locals

  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  FiberStack allocate();  // throws std::bad_alloc

 private:
  struct Slab {
    void* memory;
    std::size_t bytes;
    Slab* next;
  };
  Slab* x_slabs = nullptr;
  std::byte* x_free = nullptr;
  int x_left = 0;
  int x_colour = 0;
};

}  // namespace attn_diag::host
