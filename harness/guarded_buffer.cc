#include "harness/guarded_buffer.h"

#include <cstring>
#include <new>

namespace attn_diag {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::size_t guard, std::uint8_t around,
                             std::uint8_t inside)
    : x_size(bytes),
      x_guard(round_up(guard)),
      x_total(bytes + 2 * x_guard),
      x_around(around),
      x_storage(static_cast<std::byte*>(::operator new (x_total, std::align_val_t{kAlignment}))) {
  std::memset(x_storage.get(), around, x_total);
  std::memset(data(), inside, bytes);
}

void GuardedBuffer::Free::operator()(std::byte* p) const {
  ::operator delete (p, std::align_val_t{kAlignment});
}

std::optional<std::int64_t> GuardedBuffer::first_write_outside() const {
  const std::byte* const begin = x_storage.get();
  for (std::size_t i = 0; i < x_total; ++i) {
    if (i == x_guard) i += x_size;
    if (i < x_total && begin[i] != std::byte{x_around})
      return static_cast<std::int64_t>(i) - static_cast<std::int64_t>(x_guard);
  }
  return std::nullopt;
}

}  // namespace attn_diag
