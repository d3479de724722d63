#include "harness/host/allocations.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>

#include "harness/host/check/notes.h"
#include "harness/host/launch_scope.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 46;  // no device has as much
constexpr std::size_t kMostFreedBytes = std::size_t{64} << 20;
constexpr std::size_t kMostFreed = 4096;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// On either side of an allocation: what a kernel may touch by mistake without harm, and then what it cannot touch.
constexpr std::size_t kZone = std::size_t{64} << 10, kUntouchable = std::size_t{64} << 20;
constexpr std::size_t kPage = 4096;

std::size_t accessible_bytes(std::size_t bytes) {
  return 2 * kZone + (bytes + kPage - 1) / kPage * kPage;
}

void* map(std::size_t bytes, std::uint8_t fill) {
  const std::size_t accessible = accessible_bytes(bytes);
  void* const all = ::mmap(nullptr, accessible + 2 * kUntouchable, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(all) + kUntouchable;
  if (::mprotect(begin, accessible, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(all, accessible + 2 * kUntouchable);
    return nullptr;
  }
  std::memset(begin, fill, accessible);
  return begin + kZone;
}

void unmap(void* memory, std::size_t bytes) {
  ::munmap(static_cast<std::byte*>(memory) - kZone - kUntouchable,
           accessible_bytes(bytes) + 2 * kUntouchable);
}

std::string described(const Allocation& allocation) {
  return concat(allocation.bytes, " bytes of ", memory_name(allocation.kind));
}

}  // namespace

const char* memory_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return "device memory";
    case MemoryKind::kManaged:
      return "managed memory";
    case MemoryKind::kPageLocked:
      return "page-locked host memory";
    case MemoryKind::kRegistered:
      break;
  }
  return "registered host memory";
}

const char* free_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
    case MemoryKind::kManaged:
      return "cudaFree";
    case MemoryKind::kPageLocked:
      return "cudaFreeHost";
    case MemoryKind::kRegistered:
      break;
  }
  return "cudaHostUnregister";
}

Allocations& Allocations::instance() {
  static auto* const allocations = new Allocations;  // outlives static objects that free memory
  return *allocations;
}

void* Allocations::allocate(std::size_t bytes, MemoryKind kind) {
  if (bytes > kMostBytes) return nullptr;
  const ScopeState* const scope = current_scope();
  void* const memory = map(bytes, scope == nullptr ? 0xFF : scope->options.allocated_fill);
  if (memory == nullptr) return nullptr;
  // The host may write to what is not the device's alone.
  note_allocated(memory, bytes, memory_name(kind), kind != MemoryKind::kDevice);
  const std::lock_guard lock(x_mutex);
  insert({address_of(memory), bytes, kind, false});
  if (kind != MemoryKind::kPageLocked) x_device_bytes += bytes;
  return memory;
}

std::vector<Allocation> Allocations::live() const {
  const std::lock_guard lock(x_mutex);
  std::vector<Allocation> all;
  for (const auto& [begin, allocation] : x_allocations)
    if (!allocation.freed) all.push_back(allocation);
  return all;
}

std::string Allocations::free(void* pointer, const char* call) {
  const std::lock_guard lock(x_mutex);
  const auto found = containing(address_of(pointer));
  if (found == x_allocations.end())
    return concat(pointer, " was not allocated by the CUDA runtime");
  const Allocation& allocation = found->second;
  if (allocation.freed) return concat(pointer, " was freed before (", described(allocation), ")");
  if (allocation.begin != address_of(pointer))
    return concat(pointer, " lies ", address_of(pointer) - allocation.begin, " bytes into ",
                  described(allocation), ": free its start");
  if (std::strcmp(call, free_name(allocation.kind)) != 0)
    return concat(pointer, " is ", memory_name(allocation.kind), ": end it with ",
                  free_name(allocation.kind));
  if (allocation.kind != MemoryKind::kPageLocked) x_device_bytes -= allocation.bytes;
  x_allocations[allocation.begin].freed = true;
  note_freed(pointer);
  x_freed.push_back(allocation);
  x_freed_bytes += accessible_bytes(allocation.bytes);
  while (x_freed_bytes > kMostFreedBytes || x_freed.size() > kMostFreed) release_oldest();
  return "";
}

void Allocations::release_oldest() {
  const Allocation oldest = x_freed.front();
  x_freed.pop_front();
  x_freed_bytes -= accessible_bytes(oldest.bytes);
  x_allocations.erase(oldest.begin);
  unmap(reinterpret_cast<void*>(oldest.begin), oldest.bytes);
}

std::string Allocations::enter(void* pointer, std::size_t bytes) {
  const std::lock_guard lock(x_mutex);
  const auto found = containing(address_of(pointer));
  if (found != x_allocations.end())
    return concat(pointer, " is part of ", described(found->second),
                  found->second.freed ? " that were freed" : " already");
  insert({address_of(pointer), bytes, MemoryKind::kRegistered, false});
  note_allocated(pointer, bytes, memory_name(MemoryKind::kRegistered), true);
  return "";
}

std::string Allocations::leave(void* pointer) {
  const std::lock_guard lock(x_mutex);
  const auto found = x_allocations.find(address_of(pointer));
  if (found == x_allocations.end() || found->second.kind != MemoryKind::kRegistered)
    return concat(pointer, " was not given to cudaHostRegister");
  x_allocations.erase(found);
  return "";
}

std::optional<Allocation> Allocations::find(const void* pointer) const {
  const std::lock_guard lock(x_mutex);
  const auto found = containing(address_of(pointer));
  if (found == x_allocations.end()) return std::nullopt;
  return found->second;
}

std::string Allocations::problem_with(const void* pointer, std::size_t bytes) const {
  if (bytes == 0) return "";
  if (pointer == nullptr) return "it is null";
  const std::optional<Allocation> allocation = find(pointer);
  if (!allocation) return "";
  const std::size_t offset = address_of(pointer) - allocation->begin;
  if (allocation->freed) return concat("it lies in ", described(*allocation), " that were freed");
  if (bytes <= allocation->bytes - offset) return "";
  return concat(bytes, " bytes from byte ", offset, " on leave its ", described(*allocation));
}

std::size_t Allocations::device_bytes() const {
  const std::lock_guard lock(x_mutex);
  return x_device_bytes;
}

Allocations::Map::const_iterator Allocations::containing(std::uintptr_t at) const {
  auto after = x_allocations.upper_bound(at);
  if (after == x_allocations.begin()) return x_allocations.end();
  const auto candidate = std::prev(after);
  const Allocation& allocation = candidate->second;
  return at == allocation.begin || at - allocation.begin < allocation.bytes ? candidate
                                                                            : x_allocations.end();
}

void Allocations::insert(const Allocation& allocation) {
  const std::uintptr_t end = allocation.begin + allocation.bytes;
  auto first = x_allocations.lower_bound(allocation.begin);
  if (first != x_allocations.begin()) {
    const auto before = std::prev(first);
    if (before->second.begin + before->second.bytes > allocation.begin) first = before;
  }
  auto last = first;
  while (last != x_allocations.end() && last->first < end) ++last;
  x_allocations.erase(first, last);
  x_allocations[allocation.begin] = allocation;
}

}  // namespace attn_diag::host
