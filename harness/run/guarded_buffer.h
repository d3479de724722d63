// A buffer for a kernel with zones before and after it that must stay untouched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace attn_diag {

class GuardedBuffer {
 public:
  // `bytes` usable bytes, 256-byte aligned, with at least `guard` bytes on either side. Everything is
  // filled with 0xFF, which is NaN in every floating point type, so that a read outside the buffer shows in
  // the results; or the zones with `around` and the buffer with `inside`. Beyond the zones, a gigabyte on
  // either side cannot be accessed: what goes that far ends in a signal, not in other memory.
  // `name`, a literal, is what find_guarded_buffer() calls it.
  GuardedBuffer(std::size_t bytes, std::size_t guard, std::uint8_t around = 0xFF,
                std::uint8_t inside = 0xFF, const char* name = nullptr);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() { return x_zones + x_guard; }
  const std::byte* data() const { return x_zones + x_guard; }
  std::size_t size() const { return x_size; }
  std::uint8_t around() const { return x_around; }

  // Offset, relative to data(), of the first byte outside the buffer that was changed.
  std::optional<std::int64_t> first_write_outside() const;

 private:
  std::size_t x_size, x_guard, x_total;  // x_total: buffer and zones
  std::uint8_t x_around;
  std::byte* x_mapping = nullptr;  // with what cannot be accessed
  std::size_t x_mapped = 0;
  std::byte* x_zones = nullptr;
  int x_slot = -1;  // of the table of named buffers; -1: none
};

// Where an address lies, seen from the buffer in whose zones or beyond it is.
struct NearBuffer {
  const char* name = nullptr;
  std::int64_t offset = 0;  // from its first byte
  std::size_t bytes = 0;    // of the buffer
};
// Looks among the named buffers that live. Safe in a signal handler.
bool find_guarded_buffer(std::uintptr_t address, NearBuffer& out) noexcept;

}  // namespace attn_diag
