#include "attn_diag_host/atomics.h"

#include <atomic>

#include "attn_diag_host/bfloat16.h"
#include "attn_diag_host/half.h"
#include "attn_diag_host/synchronize.h"
#include "harness/host/block_runner.h"
#include "harness/host/check/notes.h"

namespace {

using attn_diag::host::address;
using attn_diag::host::BlockRunner;

// The value that was at `to`. While a thread waits for another, its atomic operations change nothing.
template <class T>
__attribute__((always_inline)) inline T noted(const T* to, T old, bool changed) {
  if (BlockRunner* runner = BlockRunner::current()) {
    if (changed) {
      runner->forget_idle_atomics();
      runner->note_changed(to);
    } else {
      runner->count_idle_atomic(address(__builtin_return_address(0)),
                                address(__builtin_frame_address(0)));
    }
  }
  return old;
}

// For operations nobody waits by.
template <class T>
T counted(const T* to, T old) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_changed(to);
  return old;
}

// Replaces the value at `address` by change(value) and returns the old one.
template <class T, class Change>
T update(T* address, Change change) {
  std::atomic_ref<T> target(*address);
  T old = target.load();
  while (!target.compare_exchange_weak(old, change(old))) {
  }
  return old;
}

}  // namespace

#define ATTN_DIAG_HOST_NOTE(reads) \
  attn_diag::host::note_atomic(to, sizeof *to, reads, __builtin_return_address(0))

#define ATTN_DIAG_HOST_ATOMIC(T)                                                     \
  T atomicAdd(T* to, T value) {                                                      \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    return noted(to, std::atomic_ref<T>(*to).fetch_add(value), value != 0);          \
  }                                                                                  \
  T atomicMin(T* to, T value) {                                                      \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    const T old = update(to, [=](T now) { return value < now ? value : now; });      \
    return noted(to, old, value < old);                                              \
  }                                                                                  \
  T atomicMax(T* to, T value) {                                                      \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    const T old = update(to, [=](T now) { return value > now ? value : now; });      \
    return noted(to, old, value > old);                                              \
  }                                                                                  \
  T atomicExch(T* to, T value) {                                                     \
    ATTN_DIAG_HOST_NOTE(false);                                                      \
    const T old = std::atomic_ref<T>(*to).exchange(value);                           \
    return noted(to, old, old != value);                                             \
  }                                                                                  \
  T atomicAnd(T* to, T value) {                                                      \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    const T old = std::atomic_ref<T>(*to).fetch_and(value);                          \
    return noted(to, old, (old & value) != old);                                     \
  }                                                                                  \
  T atomicOr(T* to, T value) {                                                       \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    const T old = std::atomic_ref<T>(*to).fetch_or(value);                           \
    return noted(to, old, (old | value) != old);                                     \
  }                                                                                  \
  T atomicXor(T* to, T value) {                                                      \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    return noted(to, std::atomic_ref<T>(*to).fetch_xor(value), value != 0);          \
  }                                                                                  \
  T atomicCAS(T* to, T compare, T value) {                                           \
    ATTN_DIAG_HOST_NOTE(true);                                                       \
    T old = compare;                                                                 \
    const bool changed =                                                             \
        std::atomic_ref<T>(*to).compare_exchange_strong(old, value) && value != old; \
    return noted(to, old, changed);                                                  \
  }
ATTN_DIAG_HOST_ATOMIC(int)
ATTN_DIAG_HOST_ATOMIC(unsigned int)
ATTN_DIAG_HOST_ATOMIC(unsigned long long)
#undef ATTN_DIAG_HOST_ATOMIC

int atomicSub(int* to, int value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, std::atomic_ref<int>(*to).fetch_sub(value));
}
unsigned int atomicSub(unsigned int* to, unsigned int value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, std::atomic_ref<unsigned int>(*to).fetch_sub(value));
}
unsigned int atomicInc(unsigned int* to, unsigned int value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](unsigned int old) { return old >= value ? 0 : old + 1; }));
}
unsigned int atomicDec(unsigned int* to, unsigned int value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(
      to, update(to, [=](unsigned int old) { return old == 0 || old > value ? value : old - 1; }));
}
long long atomicMin(long long* to, long long value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](long long old) { return value < old ? value : old; }));
}
long long atomicMax(long long* to, long long value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](long long old) { return value > old ? value : old; }));
}
float atomicAdd(float* to, float value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](float old) { return old + value; }));
}
double atomicAdd(double* to, double value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](double old) { return old + value; }));
}
float atomicExch(float* to, float value) {
  ATTN_DIAG_HOST_NOTE(false);
  return counted(to, std::atomic_ref<float>(*to).exchange(value));
}
unsigned short atomicCAS(unsigned short* to, unsigned short compare, unsigned short value) {
  ATTN_DIAG_HOST_NOTE(true);
  unsigned short old = compare;
  const bool changed =
      std::atomic_ref<unsigned short>(*to).compare_exchange_strong(old, value) && value != old;
  return noted(to, old, changed);
}
__half atomicAdd(__half* to, __half value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](__half old) { return __hadd(old, value); }));
}
__nv_bfloat16 atomicAdd(__nv_bfloat16* to, __nv_bfloat16 value) {
  ATTN_DIAG_HOST_NOTE(true);
  return counted(to, update(to, [=](__nv_bfloat16 old) { return __hadd(old, value); }));
}
// As on the device, each half is added atomically, the pair need not be.
__half2 atomicAdd(__half2* to, __half2 value) {
  return {atomicAdd(&to->x, value.x), atomicAdd(&to->y, value.y)};
}
__nv_bfloat162 atomicAdd(__nv_bfloat162* to, __nv_bfloat162 value) {
  return {atomicAdd(&to->x, value.x), atomicAdd(&to->y, value.y)};
}

void attn_diag::host::block_memory_fence() {
  note_fence(false);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void attn_diag::host::memory_fence() {
  note_fence();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
