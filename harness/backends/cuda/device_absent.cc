// Stands for device.cc where attn-diag is built without the CUDA toolkit.
#include "attn_diag/harness/error.h"
#include "harness/backends/cuda/device.h"
#include "harness/backends/cuda/probe.h"

namespace attn_diag::cuda {
namespace {

[[noreturn]] void refuse() { throw Error(gpu_state().why_not); }

}  // namespace

Probe probe() {
  Probe out;
  out.trouble = Trouble::kNotBuilt;
  return out;
}

DeviceMemory::DeviceMemory(std::size_t bytes) : x_size(bytes) { refuse(); }
DeviceMemory::~DeviceMemory() = default;
DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept : x_size(other.x_size) {}
void DeviceMemory::fill(std::uint8_t, std::size_t, std::size_t) { refuse(); }
void DeviceMemory::upload(const void*, std::size_t, std::size_t) { refuse(); }
void DeviceMemory::download(void*, std::size_t, std::size_t) const { refuse(); }

std::size_t free_memory() { refuse(); }
void synchronize(const std::string&) { refuse(); }
const std::string& lost_by() {
  static const std::string nothing;
  return nothing;
}

}  // namespace attn_diag::cuda
