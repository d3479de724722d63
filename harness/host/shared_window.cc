#include "harness/host/shared_window.h"

#include <algorithm>

namespace attn_diag::host {

SharedWindow::SharedWindow(const void* static_begin, std::size_t static_bytes,
                           std::size_t static_alignment, const void* dynamic_begin,
                           std::size_t dynamic_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(static_begin);
  const std::size_t alignment = std::clamp<std::size_t>(static_alignment, 1, kAlignment);
  x_static = {begin, static_bytes, kFirst + static_cast<std::uint32_t>(begin % alignment)};
  // One byte lies between the two at least, so that the end of one is not the other's begin.
  const std::size_t after = x_static.end() + std::size_t{1};
  const std::size_t dynamic = (after + kAlignment - 1) / kAlignment * kAlignment;
  x_dynamic = {reinterpret_cast<std::uintptr_t>(dynamic_begin), dynamic_bytes,
               static_cast<std::uint32_t>(dynamic)};
}

std::optional<std::uint32_t> SharedWindow::address_of(std::uintptr_t at) const {
  for (const Part* part : {&x_static, &x_dynamic})
    if (part->bytes > 0 && at - part->begin <= part->bytes)
      return part->address + static_cast<std::uint32_t>(at - part->begin);
  return std::nullopt;
}

void* SharedWindow::pointer_to(std::uint32_t address) const {
  for (const Part* part : {&x_static, &x_dynamic})
    if (address >= part->address && address - part->address < part->bytes)
      return reinterpret_cast<void*>(part->begin + (address - part->address));
  return nullptr;
}

}  // namespace attn_diag::host
