// cuda::memcpy_async of one thread. As in libcu++, what is not aligned to 4 bytes is copied at once.
#pragma once

#include "attn_diag_host/async_copy.h"
#include "attn_diag_host/thread_scope.h"

namespace cuda {

template <std::size_t kAlignment>
struct aligned_size_t {
  static constexpr std::size_t align = kAlignment;
  std::size_t value;
  explicit aligned_size_t(std::size_t size) : value(size) {}
  operator std::size_t() const { return value; }
};

}  // namespace cuda

namespace attn_diag::host {

inline void copy_in_parts(void* to, const void* from, std::size_t bytes, std::size_t alignment,
                          const void* barrier, const char* file, int line) {
  const std::size_t part = alignment >= 16 ? 16 : alignment;
  if (part < 4 || bytes % part != 0) {
    __builtin_memcpy(to, from, bytes);
    return;
  }
  for (std::size_t at = 0; at < bytes; at += part)
    async_copy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, part, 0, barrier,
               file, line);
}

// The part of a copy that thread `rank` of `threads` takes, in pieces as large as both addresses and the
// size allow.
inline void copy_shared_out(void* to, const void* from, std::size_t bytes, unsigned rank,
                            unsigned threads, const void* barrier, const char* file, int line) {
  const std::uintptr_t all =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  const std::size_t part = all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
  for (std::size_t at = rank * part; at < bytes; at += threads * part)
    copy_in_parts(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, part, part,
                  barrier, file, line);
}

template <class T>
constexpr std::size_t kAlignmentOf = alignof(T);
template <>
inline constexpr std::size_t kAlignmentOf<void> = 1;

}  // namespace attn_diag::host
