// Shared memory and what guards it: where variables lie on a GPU, and stores beside them.
#include <cstring>

#include "attn_diag_host/static_shared.h"
#include "harness/host/block_runner_switch.h"
#include "harness/host/text.h"

namespace attn_diag::host {

void BlockRunner::place_shared_memory() {
  const LaunchPlan& plan = *x_plan;
  x_dynamic.prepare(plan.config.dynamicSmemBytes, plan.shared_fill);
  x_static_storage = plan.library.tls_module != 0 ? address(thread_storage(plan.library)) : 0;
  x_static_shared = plan.library.tls_module != 0
                        ? reinterpret_cast<std::byte*>(x_static_storage + plan.statics.begin)
                        : nullptr;
  x_window = SharedWindow(x_static_shared, plan.statics.bytes(), plan.library.tls_alignment,
                          x_dynamic.data(), plan.config.dynamicSmemBytes);
}

void BlockRunner::poison_shared_memory() {
  std::memset(x_dynamic.data(), x_plan->shared_fill, x_plan->config.dynamicSmemBytes);
  // The main program's thread-local storage is not only its kernels'.
  if (x_static_shared != nullptr && !x_plan->library.is_main_program)
    std::memset(x_static_shared, x_plan->shared_fill, x_plan->statics.bytes());
}

// As a GPU has it, modulo any alignment: of a static variable, its place among those of its function.
std::uintptr_t BlockRunner::device_address(std::uintptr_t at) const {
  if (at - x_static_storage >= x_plan->statics.end) return at;
  const StaticVariable* const variable = x_plan->statics.find(at - x_static_storage);
  if (variable == nullptr) return at;
  return SharedWindow::kFirst + variable->device_offset + (at - x_static_storage - variable->begin);
}

bool BlockRunner::may_be_aligned(std::uintptr_t at, std::size_t alignment) const {
  if (device_address(at) % alignment == 0) [[likely]]
    return true;
  if (at - x_static_storage >= x_plan->statics.end) return false;
  const StaticVariable* const variable = x_plan->statics.find(at - x_static_storage);
  if (variable == nullptr) return false;
  // What has not been stored to may be of branches that this kernel does not have.
  const StaticPlaces places =
      x_plan->statics.device_places(*variable, [&](const StaticVariable& v) {
        const auto* const memory =
            reinterpret_cast<const unsigned char*>(x_static_storage + v.begin);
        return first_other(memory, v.bytes, x_plan->shared_fill) != v.bytes;
      });
  const std::size_t offset = at - x_static_storage - variable->begin;
  for (std::size_t place = 0; place < places.size(); ++place)
    if (places[place] && (place + offset) % alignment == 0) return true;
  return false;
}

void BlockRunner::check_guards() {
  const StaticLayout& statics = x_plan->statics;
  if (!x_plan->library.is_main_program)
    for (const StaticLayout::Guard& guard : statics.guards) {
      const auto* const memory =
          reinterpret_cast<const unsigned char*>(x_static_storage + guard.begin);
      const std::size_t first = first_other(memory, guard.bytes, x_plan->shared_fill);
      if (first == guard.bytes) continue;
      const auto outside = statics.nearest(guard.begin + first);
      return record_outside_shared(outside.variable->name, outside.variable->bytes, outside.offset);
    }
  if (const auto offset = x_dynamic.changed_outside())
    record_outside_shared("dynamic shared memory", x_dynamic.bytes(), *offset);
}

void BlockRunner::record_outside_shared(const std::string& name, std::size_t bytes,
                                        std::int64_t offset) {
  const std::string where_it_went =
      offset < 0
          ? concat(-offset, " bytes before the start of ", name, ", which has ", bytes, " bytes")
          : concat("outside ", name, ": to byte ", offset, " of ", bytes);
  record(FindingKind::kOutOfBounds, concat("a thread stored to shared memory ", where_it_went),
         "Check the index against the size of the array; attn-diag check names the line", nullptr,
         0);
}

void BlockRunner::note_latent(const std::string& what, const std::string& why, const char* file,
                              int line) {
  for (const auto& [known_file, known_line] : x_latent_places)
    if (known_line == line && known_file == file) return;
  x_latent_places.emplace_back(file, line);
  x_outcome.latent.push_back(concat("latent: kernel ", kernel_name(x_plan->call), ' ', what, " at ",
                                    file, ':', line, ": ", why, '.'));
}

}  // namespace attn_diag::host
