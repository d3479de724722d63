// Loads, stores and atomics of inline PTX.
#pragma once

#include "attn_diag_host/async_copy.h"
#include "attn_diag_host/atomics.h"
#include "attn_diag_host/give_way.h"
#include "attn_diag_host/mbarrier.h"
#include "attn_diag_host/ptx_arithmetic.h"
#include "attn_diag_host/shared_address.h"

namespace attn_diag::host::ptx {

// A generic address.
template <class R>
void* memory(R base, std::int64_t offset, const char*, int) {
  static_assert(sizeof(R) == 8,
                "asm: a generic address, and one of global memory, has 64 bits (constraint l); one "
                "of shared memory has "
                "32 where the instruction says .shared");
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(base) +
                                 static_cast<std::uintptr_t>(offset));
}
// One of shared memory, as __cvta_generic_to_shared gives it.
template <class R>
void* shared_memory(R base, std::int64_t offset, const char* file, int line) {
  return shared_pointer(static_cast<std::uint32_t>(static_cast<std::int64_t>(base) + offset), file,
                        line);
}
// Of an instruction that knows shared memory alone: ptxas takes both.
template <class R>
void* matrix_memory(R base, std::int64_t offset, const char* file, int line) {
  if constexpr (sizeof(R) == 4)
    return shared_memory(base, offset, file, line);
  else
    return memory(base, offset, file, line);
}
inline std::uint64_t to_shared(std::uint64_t generic, const char* file, int line) {
  return shared_address(reinterpret_cast<const void*>(generic), file, line);
}
inline std::uint64_t from_shared(std::uint32_t address, const char* file, int line) {
  return reinterpret_cast<std::uint64_t>(shared_pointer(address, file, line));
}
inline bool is_shared(std::uint64_t generic) {
  return host::is_shared(reinterpret_cast<const void*>(generic));
}
inline bool is_global(std::uint64_t generic) {
  const void* pointer = reinterpret_cast<const void*>(generic);
  return !host::is_shared(pointer) && !host::is_local(pointer);
}

// One access of all parts, aligned as on a device, to memory of any type.
template <class T, int kWidth>
struct [[gnu::may_alias]] alignas(sizeof(T) * kWidth) Parts {
  T value[kWidth];
};

template <class T, int kWidth>
Parts<T, kWidth> load(const void* from) {
  return *static_cast<const Parts<T, kWidth>*>(from);
}
template <class T, int kWidth>
void store(void* to, Parts<T, kWidth> value) {
  *static_cast<Parts<T, kWidth>*>(to) = value;
}

// Volatile, relaxed, acquire, release: atomic for the parts. A thread that polls gives way.
template <class T, int kWidth>
Parts<T, kWidth> load_ordered(const void* from, const char* file, int line) {
  give_way(file, line);
  Parts<T, kWidth> result;
  for (int i = 0; i < kWidth; ++i) {
    const auto bits = __atomic_load_n(static_cast<const Bits<T>*>(from) + i, __ATOMIC_ACQUIRE);
    result.value[i] = __builtin_bit_cast(T, bits);
  }
  return result;
}
template <class T, int kWidth>
void store_ordered(void* to, Parts<T, kWidth> value) {
  for (int i = 0; i < kWidth; ++i)
    __atomic_store_n(static_cast<Bits<T>*>(to) + i, __builtin_bit_cast(Bits<T>, value.value[i]),
                     __ATOMIC_RELEASE);
}

inline void cp_async(void* to, const void* from, std::uint64_t bytes, std::uint64_t source_bytes,
                     bool around_l1, const char* file, int line) {
  const std::uint64_t zeros = source_bytes > bytes ? bytes + 1 : bytes - source_bytes;
  async_copy(to, from, bytes, zeros, nullptr, file, line, around_l1);
}

inline std::uint16_t compare_and_swap(std::uint16_t* at, std::uint16_t old, std::uint16_t value) {
  return ::atomicCAS(at, old, value);
}
inline std::uint32_t compare_and_swap(std::uint32_t* at, std::uint32_t old, std::uint32_t value) {
  return ::atomicCAS(at, old, value);
}
inline std::uint64_t compare_and_swap(std::uint64_t* at, std::uint64_t old, std::uint64_t value) {
  return ::atomicCAS(reinterpret_cast<unsigned long long*>(at),
                     static_cast<unsigned long long>(old), static_cast<unsigned long long>(value));
}

// Replaces x by f(x) in one step; returns x.
template <class T, class F>
T atomic_update(void* at, F&& f) {
  using Word = Bits<T>;
  auto* const word = static_cast<Word*>(at);
  Word old = compare_and_swap(word, Word{0}, Word{0});
  while (true) {
    const T before = __builtin_bit_cast(T, old);
    const auto after = __builtin_bit_cast(Word, static_cast<T>(f(before)));
    const Word found = compare_and_swap(word, old, after);
    if (found == old) return before;
    old = found;
  }
}
template <class T>
T atomic_add(void* at, T value) {
  return atomic_update<T>(at, [&](T old) {
    if constexpr (std::is_integral_v<T>)
      return add(old, value);
    else
      return add<Rounding::kNearest>(old, value);
  });
}
template <class T>
T atomic_min(void* at, T value) {
  return atomic_update<T>(at, [&](T old) { return min(old, value); });
}
template <class T>
T atomic_max(void* at, T value) {
  return atomic_update<T>(at, [&](T old) { return max(old, value); });
}
template <class T>
T atomic_exch(void* at, T value) {
  return atomic_update<T>(at, [&](T) { return value; });
}
template <class T>
T atomic_and(void* at, T value) {
  return atomic_update<T>(at, [&](T old) { return old & value; });
}
template <class T>
T atomic_or(void* at, T value) {
  return atomic_update<T>(at, [&](T old) { return old | value; });
}
template <class T>
T atomic_xor(void* at, T value) {
  return atomic_update<T>(at, [&](T old) { return old ^ value; });
}
template <class T>
T atomic_inc(void* at, T limit) {
  return atomic_update<T>(at, [&](T old) { return old >= limit ? T{0} : old + 1; });
}
template <class T>
T atomic_dec(void* at, T limit) {
  return atomic_update<T>(at, [&](T old) { return old == 0 || old > limit ? limit : old - 1; });
}
template <class T>
T atomic_cas(void* at, T compare, T value) {
  using Word = Bits<T>;
  return __builtin_bit_cast(
      T, compare_and_swap(static_cast<Word*>(at), __builtin_bit_cast(Word, compare),
                          __builtin_bit_cast(Word, value)));
}

}  // namespace attn_diag::host::ptx
