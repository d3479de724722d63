// Shared memory: pointers to it and their 32-bit addresses; where variables lie on a GPU; stores beside them.
#include "harness/host/block_memory.h"

#include <cstring>

#include "attn_diag_host/static_shared.h"
#include "harness/host/text.h"

namespace attn_diag::host {

std::uint32_t BlockMemory::shared_address(const void* generic, const char* file, int line) {
  const auto found = x_window.address_of(address(generic));
  if (!found)
    report_not_shared("takes the shared-memory address of a pointer", generic, file, line);
  return *found;
}

void* BlockMemory::shared_pointer(std::uint32_t shared, const char* file, int line) {
  void* const found = x_window.pointer_to(shared);
  if (found == nullptr) {
    x_block.record(
        LaunchFindingKind::kSharedMemoryMisuse,
        concat(x_block.thread_name(x_block.current()), " uses shared-memory address ", shared,
               " at ", file, ':', line,
               ", which is not the block's: its static shared memory is at ",
               x_window.static_begin(), "..", x_window.static_end(), ", its dynamic one at ",
               x_window.dynamic_begin(), "..", x_window.dynamic_end()),
        "Make the address with __cvta_generic_to_shared of a __shared__ array, and stay inside it",
        file, line);
    x_block.leave_for_good();
  }
  return found;
}

void BlockMemory::report_not_shared(const char* does, const void* pointer, const char* file,
                                    int line) {
  x_block.record(
      LaunchFindingKind::kSharedMemoryMisuse,
      concat(x_block.thread_name(x_block.current()), ' ', does, " that is not shared memory",
             x_block.is_own(address(pointer)) ? " but a variable of its own"
             : pointer == nullptr             ? " but null"
                                              : "",
             ", at ", file, ':', line),
      "Pass a pointer into a __shared__ array of the running block", file, line);
  x_block.leave_for_good();
}

void BlockMemory::begin_launch(const LaunchPlan& plan) {
  x_dynamic.prepare(plan.config.dynamicSmemBytes, plan.shared_fill);
  x_static_storage = plan.library.tls_module != 0 ? address(thread_storage(plan.library)) : 0;
  x_static_shared = plan.library.tls_module != 0
                        ? reinterpret_cast<std::byte*>(x_static_storage + plan.statics.begin)
                        : nullptr;
  x_window = SharedWindow(x_static_shared, plan.statics.bytes(), plan.library.tls_alignment,
                          x_dynamic.data(), plan.config.dynamicSmemBytes);
}

void BlockMemory::poison() {
  std::memset(x_dynamic.data(), x_block.plan().shared_fill, x_block.plan().config.dynamicSmemBytes);
  // The main program's thread-local storage is not only its kernels'.
  if (x_static_shared != nullptr && !x_block.plan().library.is_main_program)
    std::memset(x_static_shared, x_block.plan().shared_fill, x_block.plan().statics.bytes());
}

std::uintptr_t BlockMemory::device_address(std::uintptr_t at) const {
  if (at - x_static_storage >= x_block.plan().statics.end) return at;
  const StaticVariable* const variable = x_block.plan().statics.find(at - x_static_storage);
  if (variable == nullptr) return at;
  return SharedWindow::kFirst + variable->device_offset + (at - x_static_storage - variable->begin);
}

bool BlockMemory::may_be_aligned(std::uintptr_t at, std::size_t alignment) const {
  if (device_address(at) % alignment == 0) [[likely]]
    return true;
  if (at - x_static_storage >= x_block.plan().statics.end) return false;
  const StaticVariable* const variable = x_block.plan().statics.find(at - x_static_storage);
  if (variable == nullptr) return false;
  // Variables that were not stored to may belong to branches that this kernel does not have.
  const StaticPlaces places =
      x_block.plan().statics.device_places(*variable, [&](const StaticVariable& v) {
        const auto* const memory =
            reinterpret_cast<const unsigned char*>(x_static_storage + v.begin);
        return first_other(memory, v.bytes, x_block.plan().shared_fill) != v.bytes;
      });
  const std::size_t offset = at - x_static_storage - variable->begin;
  for (std::size_t place = 0; place < places.size(); ++place)
    if (places[place] && (place + offset) % alignment == 0) return true;
  return false;
}

void BlockMemory::check_guards() {
  const StaticLayout& statics = x_block.plan().statics;
  if (!x_block.plan().library.is_main_program)
    for (const StaticLayout::Guard& guard : statics.guards) {
      const auto* const memory =
          reinterpret_cast<const unsigned char*>(x_static_storage + guard.begin);
      const std::size_t first = first_other(memory, guard.bytes, x_block.plan().shared_fill);
      if (first == guard.bytes) continue;
      const auto outside = statics.nearest(guard.begin + first);
      return record_outside(outside.variable->name, outside.variable->bytes, outside.offset);
    }
  if (const auto offset = x_dynamic.changed_outside())
    record_outside("dynamic shared memory", x_dynamic.bytes(), *offset);
}

void BlockMemory::record_outside(const std::string& name, std::size_t bytes, std::int64_t offset) {
  const std::string where_it_went =
      offset < 0
          ? concat(-offset, " bytes before the start of ", name, ", which has ", bytes, " bytes")
          : concat("outside ", name, ": to byte ", offset, " of ", bytes);
  x_block.record(
      LaunchFindingKind::kOutOfBounds, concat("a thread stored to shared memory ", where_it_went),
      "Check the index against the size of the array; attn-diag check names the line", nullptr, 0);
}

}  // namespace attn_diag::host
