#include "harness/run/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>

namespace attn_diag {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kBeyond = std::size_t{1} << 30;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// What a signal handler may look at: an entry is valid while `name` is set.
struct BufferSlot {
  std::atomic<const char*> name{nullptr};
  std::atomic<bool> taken{false};
  std::uintptr_t mapping = 0, data = 0;
  std::size_t mapped = 0, bytes = 0;
};
std::array<BufferSlot, 64> g_slots;  // a run has six; buffers beyond these are not named

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::size_t guard, std::uint8_t around,
                             std::uint8_t inside, const char* name)
    : x_size(bytes), x_guard(round_up(guard, kAlignment)), x_around(around) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  x_total = round_up(bytes + 2 * x_guard, page);
  // Where address space is limited there is no room for more than the zones.
  void* mapping = MAP_FAILED;
  std::size_t beyond = 0;
  for (const std::size_t wanted : {kBeyond, page}) {
    beyond = wanted;
    x_mapped = x_total + 2 * beyond;
    mapping =
        mmap(nullptr, x_mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping != MAP_FAILED) break;
  }
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  x_mapping = static_cast<std::byte*>(mapping);
  x_zones = x_mapping + beyond;
  if (mprotect(x_zones, x_total, PROT_READ | PROT_WRITE) != 0) {
    munmap(x_mapping, x_mapped);
    throw std::bad_alloc();
  }
  std::memset(x_zones, around, x_total);
  std::memset(data(), inside, bytes);
  if (name == nullptr) return;
  for (std::size_t i = 0; i < g_slots.size() && x_slot < 0; ++i)
    if (!g_slots[i].taken.exchange(true)) x_slot = static_cast<int>(i);
  if (x_slot < 0) return;
  BufferSlot& slot = g_slots[static_cast<std::size_t>(x_slot)];
  slot.mapping = reinterpret_cast<std::uintptr_t>(x_mapping);
  slot.mapped = x_mapped;
  slot.data = reinterpret_cast<std::uintptr_t>(data());
  slot.bytes = bytes;
  slot.name = name;
}

GuardedBuffer::~GuardedBuffer() {
  if (x_slot >= 0) {
    BufferSlot& slot = g_slots[static_cast<std::size_t>(x_slot)];
    slot.name = nullptr;
    slot.taken = false;
  }
  munmap(x_mapping, x_mapped);
}

std::optional<std::int64_t> GuardedBuffer::first_write_outside() const {
  for (std::size_t i = 0; i < x_total; ++i) {
    if (i == x_guard) i += x_size;
    if (i < x_total && x_zones[i] != std::byte{x_around})
      return static_cast<std::int64_t>(i) - static_cast<std::int64_t>(x_guard);
  }
  return std::nullopt;
}

bool find_guarded_buffer(std::uintptr_t address, NearBuffer& out) noexcept {
  for (const BufferSlot& slot : g_slots) {
    const char* const name = slot.name;
    if (name == nullptr || address < slot.mapping || address - slot.mapping >= slot.mapped)
      continue;
    out = {name, static_cast<std::int64_t>(address - slot.data), slot.bytes};
    return true;
  }
  return false;
}

}  // namespace attn_diag
