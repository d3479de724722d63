// The call-outs a compiler plants with -fsanitize=thread: switch points of the lockstep schedule, and what
// the checker looks at.
//
// An instrumented library is compiled with that option and linked without its runtime, so that its loads
// and stores call the functions below. In other launches they return at once.
#include <cstdint>
#include <cstring>
#include <utility>

#include "harness/host/block_runner_switch.h"
#include "harness/host/check/notes.h"

namespace {

using attn_diag::host::Access;
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

// Apart from access(), which then needs few registers and saves none.
void look_closer(BlockRunner* runner, Access kind, std::uintptr_t at, std::size_t bytes,
                 std::uint32_t flags, std::uintptr_t pc, std::uintptr_t frame);

__attribute__((always_inline)) inline void access(Access kind, const void* address,
                                                  std::size_t bytes, std::uint32_t flags,
                                                  const void* pc, const void* frame) {
  BlockRunner* runner = BlockRunner::current();
  if (runner == nullptr) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto from = reinterpret_cast<std::uintptr_t>(pc);
  if (kind == Access::kRead && flags == 0 && is_power_of_two(bytes) &&
      runner->note_easy_read(at, bytes, from))
    return;
  if (runner->watches_memory())
    look_closer(runner, kind, at, bytes, flags, from, reinterpret_cast<std::uintptr_t>(frame));
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
  if (x_silent) [[unlikely]]
    leave_for_good();
  // A loop that uses the same memory again and again waits for another thread.
  constexpr unsigned kOftenAgain = 64;
  Position& position = x_position[fiber.index.linear];
  if (x_check != nullptr && x_check->take_easy_reads(fiber.index.linear)) position.again = 0;
  const bool again = what.at == position.seen[0] || what.at == position.seen[1];
  if (!again) position.seen[1] = std::exchange(position.seen[0], what.at);
  position.again = again ? position.again + 1 : 0;
  if (is_lockstep()) note_position(fiber, pc, frame);
  if (position.again > kOftenAgain) {
    position.again = 0;
    stand_back(Wait::kLoop);
  } else if (is_lockstep()) {
    switch_to(*next_lockstep());
  }
  if (x_check != nullptr) x_check->access(fiber.index.linear, what, pc);
}

}  // namespace attn_diag::host

namespace {

__attribute__((noinline)) void look_closer(BlockRunner* runner, Access kind, std::uintptr_t at,
                                           std::size_t bytes, std::uint32_t flags,
                                           std::uintptr_t pc, std::uintptr_t frame) {
  clear_wide_registers();
  if (kind == Access::kRead && flags == 0 && is_power_of_two(bytes) &&
      runner->note_first_read(at, bytes, pc))
    return;
  runner->access({kind, at, bytes, flags}, pc, frame);
}

}  // namespace

#define ATTN_DIAG_HOST_ACCESS(name, kind, bytes, flags)                      \
  extern "C" void name(const void* address);                                 \
  void name(const void* address) {                                           \
    access(Access::kind, address, bytes, flags, __builtin_return_address(0), \
           __builtin_frame_address(0));                                      \
  }
#define ATTN_DIAG_HOST_ACCESSES(bytes)                                        \
  ATTN_DIAG_HOST_ACCESS(__tsan_read##bytes, kRead, bytes, 0)                  \
  ATTN_DIAG_HOST_ACCESS(__tsan_write##bytes, kWrite, bytes, 0)                \
  ATTN_DIAG_HOST_ACCESS(__tsan_read_write##bytes, kUpdate, bytes, 0)          \
  ATTN_DIAG_HOST_ACCESS(__tsan_volatile_read##bytes, kRead, bytes, kVolatile) \
  ATTN_DIAG_HOST_ACCESS(__tsan_volatile_write##bytes, kWrite, bytes, kVolatile)
#define ATTN_DIAG_HOST_UNALIGNED(bytes)                                                 \
  ATTN_DIAG_HOST_ACCESS(__tsan_unaligned_read##bytes, kRead, bytes, 0)                  \
  ATTN_DIAG_HOST_ACCESS(__tsan_unaligned_write##bytes, kWrite, bytes, 0)                \
  ATTN_DIAG_HOST_ACCESS(__tsan_unaligned_read_write##bytes, kUpdate, bytes, 0)          \
  ATTN_DIAG_HOST_ACCESS(__tsan_unaligned_volatile_read##bytes, kRead, bytes, kVolatile) \
  ATTN_DIAG_HOST_ACCESS(__tsan_unaligned_volatile_write##bytes, kWrite, bytes, kVolatile)
ATTN_DIAG_HOST_ACCESSES(1)
ATTN_DIAG_HOST_ACCESSES(2)
ATTN_DIAG_HOST_ACCESSES(4)
ATTN_DIAG_HOST_ACCESSES(8)
ATTN_DIAG_HOST_ACCESSES(16)
ATTN_DIAG_HOST_UNALIGNED(2)
ATTN_DIAG_HOST_UNALIGNED(4)
ATTN_DIAG_HOST_UNALIGNED(8)
ATTN_DIAG_HOST_UNALIGNED(16)

extern "C" {

void __tsan_init();
void __tsan_func_entry(void*);
void __tsan_func_exit();
void __tsan_vptr_update(void** address, void* value);
void __tsan_vptr_read(void** address);
void __tsan_read_range(const void* address, std::size_t bytes);
void __tsan_write_range(const void* address, std::size_t bytes);

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** address, void*) {
  access(Access::kWrite, address, sizeof *address, 0, __builtin_return_address(0),
         __builtin_frame_address(0));
}
void __tsan_vptr_read(void** address) {
  access(Access::kRead, address, sizeof *address, 0, __builtin_return_address(0),
         __builtin_frame_address(0));
}
void __tsan_read_range(const void* address, std::size_t bytes) {
  access(Access::kRead, address, bytes, 0, __builtin_return_address(0), __builtin_frame_address(0));
}
void __tsan_write_range(const void* address, std::size_t bytes) {
  access(Access::kWrite, address, bytes, 0, __builtin_return_address(0),
         __builtin_frame_address(0));
}

}  // extern "C"

// Compilers since clang 16 replace these.
extern "C" {

void* __tsan_memcpy(void* to, const void* from, std::size_t bytes);
void* __tsan_memmove(void* to, const void* from, std::size_t bytes);
void* __tsan_memset(void* to, int value, std::size_t bytes);

void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  access(Access::kRead, from, bytes, 0, __builtin_return_address(0), __builtin_frame_address(0));
  access(Access::kWrite, to, bytes, 0, __builtin_return_address(0), __builtin_frame_address(0));
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  access(Access::kRead, from, bytes, 0, __builtin_return_address(0), __builtin_frame_address(0));
  access(Access::kWrite, to, bytes, 0, __builtin_return_address(0), __builtin_frame_address(0));
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  access(Access::kWrite, to, bytes, 0, __builtin_return_address(0), __builtin_frame_address(0));
  return std::memset(to, value, bytes);
}

}  // extern "C"

// Atomic operations are replaced, not announced. The order asked for is never stronger than this. One that
// releases is a fence to the checker.
namespace {
inline void note_order(int order) {
  if (order >= __ATOMIC_RELEASE) attn_diag::host::note_fence();
}
}  // namespace
#define ATTN_DIAG_HOST_FETCH(bits, T, name)                                               \
  extern "C" T __tsan_atomic##bits##_fetch_##name(T* target, T value, int);               \
  T __tsan_atomic##bits##_fetch_##name(T* target, T value, int order) {                   \
    note_order(order);                                                                    \
    access(Access::kUpdate, target, sizeof *target, kAtomic, __builtin_return_address(0), \
           __builtin_frame_address(0));                                                   \
    return __atomic_fetch_##name(target, value, __ATOMIC_SEQ_CST);                        \
  }
#define ATTN_DIAG_HOST_COMPARE(bits, T, name)                                                    \
  extern "C" int __tsan_atomic##bits##_compare_exchange_##name(T* target, T* expected, T value,  \
                                                               int, int);                        \
  int __tsan_atomic##bits##_compare_exchange_##name(T* target, T* expected, T value, int, int) { \
    access(Access::kUpdate, target, sizeof *target, kAtomic, __builtin_return_address(0),        \
           __builtin_frame_address(0));                                                          \
    return __atomic_compare_exchange_n(target, expected, value, false, __ATOMIC_SEQ_CST,         \
                                       __ATOMIC_SEQ_CST);                                        \
  }
#define ATTN_DIAG_HOST_ATOMICS(bits, T)                                                        \
  extern "C" T __tsan_atomic##bits##_load(const T* target, int);                               \
  T __tsan_atomic##bits##_load(const T* target, int) {                                         \
    access(Access::kRead, target, sizeof *target, kAtomic, __builtin_return_address(0),        \
           __builtin_frame_address(0));                                                        \
    return __atomic_load_n(target, __ATOMIC_SEQ_CST);                                          \
  }                                                                                            \
  extern "C" void __tsan_atomic##bits##_store(T* target, T value, int);                        \
  void __tsan_atomic##bits##_store(T* target, T value, int order) {                            \
    note_order(order);                                                                         \
    access(Access::kWrite, target, sizeof *target, kAtomic, __builtin_return_address(0),       \
           __builtin_frame_address(0));                                                        \
    __atomic_store_n(target, value, __ATOMIC_SEQ_CST);                                         \
  }                                                                                            \
  extern "C" T __tsan_atomic##bits##_exchange(T* target, T value, int);                        \
  T __tsan_atomic##bits##_exchange(T* target, T value, int order) {                            \
    note_order(order);                                                                         \
    access(Access::kWrite, target, sizeof *target, kAtomic, __builtin_return_address(0),       \
           __builtin_frame_address(0));                                                        \
    return __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);                               \
  }                                                                                            \
  extern "C" T __tsan_atomic##bits##_compare_exchange_val(T* target, T expected, T value, int, \
                                                          int);                                \
  T __tsan_atomic##bits##_compare_exchange_val(T* target, T expected, T value, int, int) {     \
    access(Access::kUpdate, target, sizeof *target, kAtomic, __builtin_return_address(0),      \
           __builtin_frame_address(0));                                                        \
    __atomic_compare_exchange_n(target, &expected, value, false, __ATOMIC_SEQ_CST,             \
                                __ATOMIC_SEQ_CST);                                             \
    return expected;                                                                           \
  }                                                                                            \
  ATTN_DIAG_HOST_COMPARE(bits, T, strong)                                                      \
  ATTN_DIAG_HOST_COMPARE(bits, T, weak)                                                        \
  ATTN_DIAG_HOST_FETCH(bits, T, add)                                                           \
  ATTN_DIAG_HOST_FETCH(bits, T, sub)                                                           \
  ATTN_DIAG_HOST_FETCH(bits, T, and)                                                           \
  ATTN_DIAG_HOST_FETCH(bits, T, or)                                                            \
  ATTN_DIAG_HOST_FETCH(bits, T, xor)                                                           \
  ATTN_DIAG_HOST_FETCH(bits, T, nand)
ATTN_DIAG_HOST_ATOMICS(8, std::uint8_t)
ATTN_DIAG_HOST_ATOMICS(16, std::uint16_t)
ATTN_DIAG_HOST_ATOMICS(32, std::uint32_t)
ATTN_DIAG_HOST_ATOMICS(64, std::uint64_t)

extern "C" {

void __tsan_atomic_thread_fence(int);
void __tsan_atomic_signal_fence(int);
void __tsan_atomic_thread_fence(int) {
  attn_diag::host::note_fence();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"
