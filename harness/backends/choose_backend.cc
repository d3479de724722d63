#include "harness/backends/choose_backend.h"

#include <fmt/format.h>

#include <optional>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/kernel.h"

namespace attn_diag {
namespace {

std::optional<Kernel> try_load(const std::string& spec, const char* backend) {
  try {
    return Kernel::load(spec, backend);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// "There is no NVIDIA driver here (...)": what to do about it is the doctor's business.
std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

}  // namespace

BackendChoice choose_backend(const std::string& spec) {
  const std::optional<Kernel> on_gpu = try_load(spec, "cuda");
  if (!on_gpu) return {"host", "it has no build for cuda"};
  if (!try_load(spec, "host")) return {"cuda", "it has no build for host"};
  const GpuState& state = gpu_state();
  if (!state.usable()) return {"host", first_sentence(state.why_not)};
  const std::string why = why_not_on(on_gpu->build().architectures, state.gpus.front());
  if (!why.empty()) return {"host", "its cuda build cannot run here. " + first_sentence(why)};
  return {"cuda", text(state.gpus.front()) + " can run it"};
}

}  // namespace attn_diag
