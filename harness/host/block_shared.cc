// Pointers to shared memory and their 32-bit addresses.
#include "attn_diag_host/shared_address.h"
#include "harness/host/block_runner_switch.h"
#include "harness/host/text.h"

namespace attn_diag::host {

std::uint32_t shared_address(const void* generic, const char* file, int line) {
  return BlockRunner::current()->shared_address(generic, file, line);
}

void* shared_pointer(std::uint32_t address, const char* file, int line) {
  return BlockRunner::current()->shared_pointer(address, file, line);
}

bool is_shared(const void* generic) {
  const BlockRunner* runner = BlockRunner::current();
  return runner != nullptr && runner->is_shared(address(generic));
}

bool is_local(const void* generic) {
  const BlockRunner* runner = BlockRunner::current();
  return runner != nullptr && runner->is_own(address(generic));
}

std::uint32_t BlockRunner::shared_address(const void* generic, const char* file, int line) {
  const auto found = x_window.address_of(address(generic));
  if (!found)
    report_not_shared("takes the shared-memory address of a pointer", generic, file, line);
  return *found;
}

void* BlockRunner::shared_pointer(std::uint32_t shared, const char* file, int line) {
  void* const found = x_window.pointer_to(shared);
  if (found == nullptr) {
    record(
        FindingKind::kSharedMemoryMisuse,
        concat(thread_name(*x_current), " uses shared-memory address ", shared, " at ", file, ':',
               line, ", which is not the block's: its static shared memory is at ",
               x_window.static_begin(), "..", x_window.static_end(), ", its dynamic one at ",
               x_window.dynamic_begin(), "..", x_window.dynamic_end()),
        "Make the address with __cvta_generic_to_shared of a __shared__ array, and stay inside it",
        file, line);
    leave_for_good();
  }
  return found;
}

void BlockRunner::report_not_shared(const char* does, const void* pointer, const char* file,
                                    int line) {
  record(FindingKind::kSharedMemoryMisuse,
         concat(thread_name(*x_current), ' ', does, " that is not shared memory",
                is_own(address(pointer)) ? " but a variable of its own"
                : pointer == nullptr     ? " but null"
                                         : "",
                ", at ", file, ':', line),
         "Pass a pointer into a __shared__ array of the running block", file, line);
  leave_for_good();
}

bool BlockRunner::is_own(std::uintptr_t at) const {
  const FiberStack& stack = x_stack[x_current->index.linear];
  return at - stack.bottom < stack.top - stack.bottom;
}

bool BlockRunner::is_shared(std::uintptr_t at) const { return x_window.contains(at); }

}  // namespace attn_diag::host
