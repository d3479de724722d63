// A worker's dynamic shared memory, between memory that nobody may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace attn_diag::host {

class DynamicShared {
 public:
  static constexpr std::size_t kZone =
      4096;  // bytes before and behind; beyond are pages without access

  DynamicShared() = default;
  ~DynamicShared();
  DynamicShared(const DynamicShared&) = delete;
  DynamicShared& operator=(const DynamicShared&) = delete;

  // Before the blocks of a launch. Throws std::bad_alloc.
  void prepare(std::size_t bytes, std::uint8_t fill);
  std::byte* data() const { return x_data; }
  std::size_t bytes() const { return x_bytes; }
  // The first byte near either end, outside, that is no longer what prepare() left, from data() on.
  std::optional<std::int64_t> changed_outside() const;
  bool is_near(std::uintptr_t at) const {
    return at - (reinterpret_cast<std::uintptr_t>(x_data) - kReach) < x_bytes + 2 * kReach;
  }

 private:
  static constexpr std::size_t kReach = std::size_t{1} << 20;
  void release();

  std::byte* x_mapping = nullptr;
  std::size_t x_mapped = 0;
  std::byte* x_data = nullptr;
  std::size_t x_bytes = 0;
  std::uint8_t x_fill = 0;
};

// The first of `bytes` bytes that is not `value`, or `bytes`.
std::size_t first_other(const unsigned char* memory, std::size_t bytes, unsigned char value);

}  // namespace attn_diag::host
