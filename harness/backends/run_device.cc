#include "harness/backends/run_device.h"

#include <fmt/format.h>

#include <array>
#include <exception>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/call_clock.h"
#include "harness/base/user_code.h"

namespace attn_diag {
void call_kernel(const Kernel& kernel, RunRequest request, const std::string& failed) {
  std::array<char, 1024> message{};
  request.error = message.data();
  request.error_capacity = message.size();
  Status status = Status::kOk;
  try {
    const UserCode guard;
    const host::TimedCall timed;
    status = kernel.info().run(request);
  } catch (const std::exception& e) {
    throw Error(fmt::format("{} {}: its host code threw an exception: {}", kernel.spec(), failed,
                            e.what()));
  } catch (...) {
    throw Error(fmt::format("{} {}: its host code threw an exception that is not a std::exception.",
                            kernel.spec(), failed));
  }
  if (status == Status::kOk) return;
  std::string words = message.data();
  if (words.empty()) words = "it does not say why";
  if (words.back() != '.') words += '.';
  if (status == Status::kUnsupported)
    throw RefusedCall(fmt::format("{} does not support this run: {}", kernel.spec(), words));
  throw Error(fmt::format("{} {}: {}", kernel.spec(), failed, words));
}

void throw_wrote_outside(const Kernel& kernel, const std::string& what, std::ptrdiff_t offset,
                         std::size_t bytes) {
  throw KernelFault(
      fmt::format("{} wrote outside {}: first at byte {} of a buffer of {} bytes. Check the index "
                  "arithmetic and "
                  "the tail predicates of its stores.",
                  kernel.spec(), what, offset, bytes));
}

}  // namespace attn_diag
