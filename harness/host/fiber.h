// One CUDA thread of a block as a fiber, and the stacks fibers run on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn_diag_host/vector_types.h"
#include "attn_diag_host/warp.h"
#include "harness/host/context_switch.h"

namespace attn_diag::host {

enum class Wait : std::uint8_t { kNone, kBarrier, kWarp };

// What a switch touches: one cache line a thread.
struct alignas(64) Fiber {
  Context context;           // where it goes on
  uint3 index{};             // its threadIdx
  std::uint32_t thread = 0;  // index.x + blockDim.x * (index.y + blockDim.y * index.z)

  // Its last synchronisation point.
  const char* file = nullptr;
  std::int32_t line = 0;
  std::uint32_t mask = 0;  // of a warp collective
  WarpOp op = WarpOp::kSync;
  Wait wait = Wait::kNone;

  // Where it is, for the lockstep schedule: deeper calls go first, then lower addresses.
  std::uint32_t depth = 0;
  std::uintptr_t pc = 0;
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
