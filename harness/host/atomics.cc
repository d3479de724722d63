#include "attn_diag_host/atomics.h"

#include <atomic>

#include "attn_diag_host/bfloat16.h"
#include "attn_diag_host/half.h"

namespace {

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

#define ATTN_DIAG_HOST_ATOMIC(T)                                                             \
  T atomicAdd(T* address, T value) { return std::atomic_ref<T>(*address).fetch_add(value); } \
  T atomicMin(T* address, T value) {                                                         \
    return update(address, [=](T old) { return value < old ? value : old; });                \
  }                                                                                          \
  T atomicMax(T* address, T value) {                                                         \
    return update(address, [=](T old) { return value > old ? value : old; });                \
  }                                                                                          \
  T atomicExch(T* address, T value) { return std::atomic_ref<T>(*address).exchange(value); } \
  T atomicAnd(T* address, T value) { return std::atomic_ref<T>(*address).fetch_and(value); } \
  T atomicOr(T* address, T value) { return std::atomic_ref<T>(*address).fetch_or(value); }   \
  T atomicXor(T* address, T value) { return std::atomic_ref<T>(*address).fetch_xor(value); } \
  T atomicCAS(T* address, T compare, T value) {                                              \
    std::atomic_ref<T>(*address).compare_exchange_strong(compare, value);                    \
    return compare;                                                                          \
  }
ATTN_DIAG_HOST_ATOMIC(int)
ATTN_DIAG_HOST_ATOMIC(unsigned int)
ATTN_DIAG_HOST_ATOMIC(unsigned long long)
#undef ATTN_DIAG_HOST_ATOMIC

int atomicSub(int* address, int value) { return std::atomic_ref<int>(*address).fetch_sub(value); }
unsigned int atomicSub(unsigned int* address, unsigned int value) {
  return std::atomic_ref<unsigned int>(*address).fetch_sub(value);
}
unsigned int atomicInc(unsigned int* address, unsigned int value) {
  return update(address, [=](unsigned int old) { return old >= value ? 0 : old + 1; });
}
unsigned int atomicDec(unsigned int* address, unsigned int value) {
  return update(address,
                [=](unsigned int old) { return old == 0 || old > value ? value : old - 1; });
}
long long atomicMin(long long* address, long long value) {
  return update(address, [=](long long old) { return value < old ? value : old; });
}
long long atomicMax(long long* address, long long value) {
  return update(address, [=](long long old) { return value > old ? value : old; });
}
float atomicAdd(float* address, float value) {
  return update(address, [=](float old) { return old + value; });
}
double atomicAdd(double* address, double value) {
  return update(address, [=](double old) { return old + value; });
}
float atomicExch(float* address, float value) {
  return std::atomic_ref<float>(*address).exchange(value);
}
unsigned short atomicCAS(unsigned short* address, unsigned short compare, unsigned short value) {
  std::atomic_ref<unsigned short>(*address).compare_exchange_strong(compare, value);
  return compare;
}
__half atomicAdd(__half* address, __half value) {
  return update(address, [=](__half old) { return __hadd(old, value); });
}
__nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return update(address, [=](__nv_bfloat16 old) { return __hadd(old, value); });
}
// As on the device, each half is added atomically, the pair need not be.
__half2 atomicAdd(__half2* address, __half2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
__nv_bfloat162 atomicAdd(__nv_bfloat162* address, __nv_bfloat162 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
