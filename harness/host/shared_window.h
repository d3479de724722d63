// The 32-bit addresses of a block's shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace attn_diag::host {

class SharedWindow {
 public:
  static constexpr std::size_t kAlignment = 1024;  // of dynamic shared memory, and of its address
  static constexpr std::uint32_t kFirst = 1024;    // below lies what the system keeps on a device

  // `static_alignment`: addresses are as pointers modulo this.
  SharedWindow() = default;
  SharedWindow(const void* static_begin, std::size_t static_bytes, std::size_t static_alignment,
               const void* dynamic_begin, std::size_t dynamic_bytes);

  bool contains(std::uintptr_t at) const {
    return at - x_static.begin < x_static.bytes || at - x_dynamic.begin < x_dynamic.bytes;
  }
  // Also of the end of either part; none: not shared memory.
  std::optional<std::uint32_t> address_of(std::uintptr_t at) const;
  void* pointer_to(std::uint32_t address) const;  // null: not shared memory

  std::uint32_t static_begin() const { return x_static.address; }
  std::uint32_t static_end() const { return x_static.end(); }
  std::uint32_t dynamic_begin() const { return x_dynamic.address; }
  std::uint32_t dynamic_end() const { return x_dynamic.end(); }

 private:
  struct Part {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::uint32_t address = 0;
    std::uint32_t end() const { return address + static_cast<std::uint32_t>(bytes); }
  };
  Part x_static, x_dynamic;
};

}  // namespace attn_diag::host
