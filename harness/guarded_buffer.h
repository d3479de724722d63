// A buffer for a kernel with zones before and after it that must stay untouched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace attn_diag {

class GuardedBuffer {
 public:
  // `bytes` usable bytes, 256-byte aligned, with `guard` bytes (rounded up to 256) on either side.
  // Everything is filled with 0xFF, which is NaN in every floating point type, so that a read outside the
  // buffer shows in the results; or the zones with `around` and the buffer with `inside`.
  GuardedBuffer(std::size_t bytes, std::size_t guard, std::uint8_t around = 0xFF,
                std::uint8_t inside = 0xFF);

  std::byte* data() { return x_storage.get() + x_guard; }
  const std::byte* data() const { return x_storage.get() + x_guard; }
  std::size_t size() const { return x_size; }
  std::uint8_t around() const { return x_around; }

  // Offset, relative to data(), of the first byte outside the buffer that was changed.
  std::optional<std::int64_t> first_write_outside() const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::size_t x_size, x_guard, x_total;
  std::uint8_t x_around;
  std::unique_ptr<std::byte, Free> x_storage;
};

}  // namespace attn_diag
