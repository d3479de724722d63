// A stack for the signal handlers of a thread whose own has overflowed.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>

namespace attn_diag::host {

// For the thread that makes it, while it lives; nothing if the thread has one already.
class AlternateStack {
 public:
  AlternateStack() {
    stack_t there{};
    if (sigaltstack(nullptr, &there) != 0 || (there.ss_flags & SS_DISABLE) == 0) return;
    x_memory = std::make_unique<std::byte[]>(kBytes);
    stack_t mine{};
    mine.ss_sp = x_memory.get();
    mine.ss_size = kBytes;
    sigaltstack(&mine, nullptr);
  }
  ~AlternateStack() {
    if (x_memory == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 * 1024;
  std::unique_ptr<std::byte[]> x_memory;
};

}  // namespace attn_diag::host
