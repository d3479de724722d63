// What instrumented kernel libraries call before they touch memory (harness/instrument): switch points of
// the lockstep schedule, and what the checker looks at. In other launches these functions return at once.
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "attn_diag_host/callouts.h"
#include "harness/host/block_runner.h"
#include "harness/host/check/notes.h"

namespace {

namespace callouts = attn_diag::callouts;
using attn_diag::host::Access;
using attn_diag::host::address;
using attn_diag::host::BlockRunner;
using attn_diag::host::kAtomic;
using attn_diag::host::kVolatile;
using attn_diag::host::MemoryAccess;

#if defined(__x86_64__)
const bool g_has_wide_registers = __builtin_cpu_supports("avx") != 0;
#endif

// Kernels leave values in the upper halves of vector registers, which nobody needs across a call. The
// instructions of this file are of the older encoding, which waits for those halves: 80 ns a call.
__attribute__((always_inline)) inline void clear_wide_registers() {
#if defined(__x86_64__)
  if (g_has_wide_registers) __asm__ volatile("vzeroupper");
#endif
}

// Without an instruction for it std::has_single_bit() is a call.
constexpr bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Memory that belongs to nobody, for an access that is not made where the kernel says. Too large an access, which
// only unwatched host code makes, goes to address 0.
void* zeros_for(std::size_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (bytes > BlockRunner::kMostElsewhere) return nullptr;
  memory.assign(bytes, std::byte{0});
  return memory.data();
}

// Apart from access(), which then needs few registers and saves none.
void look_closer(BlockRunner* runner, const void* at, std::size_t bytes, std::uint32_t word,
                 const void* pc, const void* frame);

__attribute__((always_inline)) inline void access(const void* at, std::size_t bytes,
                                                  std::uint32_t word, const void* pc,
                                                  const void* frame) {
  BlockRunner* runner = BlockRunner::current();
  if (runner == nullptr) return;
  if ((word & callouts::kNotPlainRead) == 0 && is_power_of_two(bytes) &&
      runner->note_easy_read(address(at), bytes, address(pc)))
    return;
  if (runner->watches_memory()) look_closer(runner, at, bytes, word, pc, frame);
}

}  // namespace

namespace attn_diag::host {

inline void BlockRunner::access(MemoryAccess what, std::uintptr_t pc, std::uintptr_t frame) {
  Fiber& fiber = *x_current;
  const FiberStack& stack = x_stack[fiber.index.linear];
  if (what.at - stack.bottom < stack.top - stack.bottom) {  // its own locals
    if (x_check != nullptr) x_check->local_access(fiber.index.linear, what, pc, frame);
    return;
  }
  if (is_silent()) [[unlikely]]
    leave_for_good();
  // A loop that uses the same memory again and again waits for another thread.
  const bool used_other = x_check != nullptr && x_check->take_easy_reads(fiber.index.linear);
  note_use(what.at, used_other, pc, frame);
  if (x_check != nullptr) x_check->access(fiber.index.linear, what, pc);
}

bool BlockRunner::access_loop(const std::uint32_t* shape, const std::int64_t* values,
                              const std::uint64_t* sites, std::uintptr_t frame) {
  if (is_lockstep() || is_silent() || !whole_loops().allowed || !tests_hold(shape, values))
    return false;
  if (x_check == nullptr) return true;
  const unsigned thread = x_current->index.linear;
  const FiberStack& stack = x_stack[thread];
  if (!read_loop(shape, values, sites, stack.bottom, stack.top, x_loop) ||
      !x_check->access_loop(thread, x_loop, frame))
    return false;
  note_other_use(thread);
  return true;
}

}  // namespace attn_diag::host

namespace {

__attribute__((noinline)) void look_closer(BlockRunner* runner, const void* at, std::size_t bytes,
                                           std::uint32_t word, const void* pc, const void* frame) {
  clear_wide_registers();
  const std::uintptr_t alignment = std::uintptr_t{1} << (word >> callouts::kAlignmentShift);
  if ((address(at) & (alignment - 1)) != 0) [[unlikely]]
    runner->note_misaligned(address(at), static_cast<unsigned>(alignment), bytes, pc);
  if ((word & callouts::kNotPlainRead) == 0 && is_power_of_two(bytes) &&
      runner->note_first_read(address(at), bytes, address(pc)))
    return;
  if ((word & callouts::kReleases) != 0) runner->note_fence(true);
  const Access kind = (word & callouts::kUpdates) != 0  ? Access::kUpdate
                      : (word & callouts::kWrites) != 0 ? Access::kWrite
                                                        : Access::kRead;
  std::uint32_t flags = 0;
  if ((word & callouts::kIsAtomic) != 0) flags |= kAtomic;
  if ((word & callouts::kIsVolatile) != 0) flags |= kVolatile;
  runner->access({kind, address(at), bytes, flags}, address(pc), address(frame));
}

}  // namespace

extern "C" {

void attn_diag_access(const void* at, std::uint32_t word);
void attn_diag_access_at_site(const void* at, std::uint32_t word, std::uint64_t* site);
void attn_diag_access_range(const void* at, std::uint64_t bytes, std::uint32_t word);
std::uint32_t attn_diag_loop(const std::uint32_t* shape, const std::int64_t* values,
                             const std::uint64_t* sites);
void attn_diag_access_lanes(const void* at, std::uint64_t lanes, std::uint32_t word);
void attn_diag_fence();
void attn_diag_unseen(const char* what);
void* attn_diag_local_outside(const char* name, std::int64_t offset, std::uint64_t bytes,
                              std::uint64_t size, std::uint32_t word);
void attn_diag_about(const char* name, const std::uint64_t* shape, std::int64_t offset,
                     std::uint32_t dimension);
void attn_diag_argument(const char* name, const void* memory);
void attn_diag_enter(std::uint32_t region);
void attn_diag_join(std::uint32_t region);

void attn_diag_access(const void* at, std::uint32_t word) {
  access(at, word & callouts::kSizeMask, word, __builtin_return_address(0),
         __builtin_frame_address(0));
}

void attn_diag_access_at_site(const void* at, std::uint32_t word, std::uint64_t* site) {
  const void* const pc = __builtin_return_address(0);
  __atomic_store_n(site, address(pc), __ATOMIC_RELAXED);  // another worker stores the same
  access(at, word & callouts::kSizeMask, word, pc, __builtin_frame_address(0));
}

std::uint32_t attn_diag_loop(const std::uint32_t* shape, const std::int64_t* values,
                             const std::uint64_t* sites) {
  BlockRunner* const runner = BlockRunner::current();
  if (runner == nullptr) return attn_diag::host::tests_hold(shape, values) ? 1 : 0;
  clear_wide_registers();
  return runner->access_loop(shape, values, sites, address(__builtin_frame_address(0))) ? 1 : 0;
}

void attn_diag_access_range(const void* at, std::uint64_t bytes, std::uint32_t word) {
  if (bytes != 0) access(at, bytes, word, __builtin_return_address(0), __builtin_frame_address(0));
}

// Lane i of a vector in memory is touched where bit i is set: neighbours at once.
void attn_diag_access_lanes(const void* at, std::uint64_t lanes, std::uint32_t word) {
  const std::size_t bytes = word & callouts::kSizeMask;
  while (lanes != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(lanes));
    const auto count = static_cast<unsigned>(std::countr_one(lanes >> first));
    access(static_cast<const std::byte*>(at) + first * bytes, count * bytes, word,
           __builtin_return_address(0), __builtin_frame_address(0));
    if (first + count >= 64) return;
    lanes &= ~std::uint64_t{0} << (first + count);
  }
}

void attn_diag_fence() { attn_diag::host::note_fence(); }

void attn_diag_unseen(const char* what) {
  if (BlockRunner* runner = BlockRunner::current())
    runner->note_unseen(what, __builtin_return_address(0));
}

void attn_diag_argument(const char* name, const void* memory) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_argument(name, address(memory));
}

void* attn_diag_local_outside(const char* name, std::int64_t offset, std::uint64_t bytes,
                              std::uint64_t size, std::uint32_t word) {
  clear_wide_registers();
  if (BlockRunner* runner = BlockRunner::current())
    runner->note_local_outside({name, offset, bytes, size, (word & callouts::kWrites) != 0},
                               __builtin_return_address(0));
  return zeros_for(bytes);
}

void attn_diag_about(const char* name, const std::uint64_t* shape, std::int64_t offset,
                     std::uint32_t dimension) {
  if (BlockRunner* runner = BlockRunner::current())
    runner->note_about({name, shape, offset, dimension});
}

void attn_diag_enter(std::uint32_t region) {
  BlockRunner* const runner = BlockRunner::current();
  if (runner == nullptr || !runner->is_lockstep()) return;
  clear_wide_registers();
  runner->enter_region(region, address(__builtin_return_address(0)),
                       address(__builtin_frame_address(0)));
}

void attn_diag_join(std::uint32_t region) {
  BlockRunner* const runner = BlockRunner::current();
  if (runner == nullptr || !runner->is_lockstep()) return;
  clear_wide_registers();
  runner->join_region(region, address(__builtin_return_address(0)),
                      address(__builtin_frame_address(0)));
}

}  // extern "C"
