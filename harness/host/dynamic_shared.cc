#include "harness/host/dynamic_shared.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace attn_diag::host {
namespace {

// Looked at after each block: a store by an index that is off by some rows. The rest only keeps harm away.
constexpr std::size_t kWatchedBefore = 512, kWatchedBehind = 2048;

}  // namespace

std::size_t first_other(const unsigned char* memory, std::size_t bytes, unsigned char value) {
  if (bytes == 0 || (memory[0] == value && std::memcmp(memory, memory + 1, bytes - 1) == 0))
    return bytes;
  std::size_t i = 0;
  while (memory[i] == value) ++i;
  return i;
}

DynamicShared::~DynamicShared() { release(); }

void DynamicShared::release() {
  if (x_mapping != nullptr) munmap(x_mapping, x_mapped);
  x_mapping = x_data = nullptr;
  x_mapped = 0;
}

void DynamicShared::prepare(std::size_t bytes, std::uint8_t fill) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inner = (bytes + 2 * kZone + page - 1) / page * page;
  if (x_mapped < inner + 2 * page) {
    release();
    void* const memory = mmap(nullptr, inner + 2 * page, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    x_mapping = static_cast<std::byte*>(memory);
    x_mapped = inner + 2 * page;
    if (mprotect(x_mapping + page, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    x_data = x_mapping + page + kZone;
  }
  x_bytes = bytes;
  x_fill = fill;
  std::memset(x_data - kZone, fill, kZone);
  std::memset(x_data + bytes, fill, kZone);
}

std::optional<std::int64_t> DynamicShared::changed_outside() const {
  const auto* const data = reinterpret_cast<const unsigned char*>(x_data);
  const std::size_t behind = first_other(data + x_bytes, kWatchedBehind, x_fill);
  if (behind < kWatchedBehind) return static_cast<std::int64_t>(x_bytes + behind);
  const std::size_t before = first_other(data - kWatchedBefore, kWatchedBefore, x_fill);
  if (before < kWatchedBefore)
    return static_cast<std::int64_t>(before) - static_cast<std::int64_t>(kWatchedBefore);
  return std::nullopt;
}

}  // namespace attn_diag::host
