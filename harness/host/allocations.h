// What the CUDA runtime of the executor has allocated, and lately freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace attn_diag::host {

enum class MemoryKind : std::uint8_t { kDevice, kManaged, kPageLocked, kRegistered };
const char* memory_name(MemoryKind kind);  // "device memory"
const char* free_name(MemoryKind kind);    // the call that ends it: "cudaFree"

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  bool freed = false;
};

// Thread-safe. Freed memory is kept a while, so that its use is found: its addresses are nobody else's
// as long as it is remembered.
class Allocations {
 public:
  static Allocations& instance();

  // Bytes as LaunchOptions::allocated_fill says, 0xFF outside a scope, aligned as cudaMalloc promises; null: no memory.
  void* allocate(std::size_t bytes, MemoryKind kind);
  // Empty: done. Else what is wrong with it, in words.
  std::string free(void* pointer, const char* call);
  // Memory of the caller's, page-locked by cudaHostRegister.
  std::string enter(void* pointer, std::size_t bytes);
  std::string leave(void* pointer);

  // The one that `pointer` lies in, live or freed.
  std::optional<Allocation> find(const void* pointer) const;
  // Empty: [pointer, pointer + bytes) may be used as far as is known.
  std::string problem_with(const void* pointer, std::size_t bytes) const;
  std::size_t device_bytes() const;  // live
  std::vector<Allocation> live() const;

 private:
  using Map = std::map<std::uintptr_t, Allocation>;
  Map::const_iterator containing(std::uintptr_t at) const;  // x_mutex held
  void insert(const Allocation& allocation);                // x_mutex held
  void release_oldest();                                    // x_mutex held; the oldest freed one

  mutable std::mutex x_mutex;
  Map x_allocations;
  std::size_t x_device_bytes = 0;
  std::deque<Allocation> x_freed;  // oldest first
  std::size_t x_freed_bytes = 0;
};

}  // namespace attn_diag::host
