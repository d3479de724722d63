#include "harness/backends/cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/backends/cuda/probe.h"
#include "harness/base/memory.h"

namespace attn_diag::cuda {
namespace {

std::string& lost() {
  static std::string run;
  return run;
}

std::string words(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

// There is a GPU, and its context is whole.
void require_gpu() {
  if (!gpu_state().usable()) throw Error(gpu_state().why_not);
  if (lost().empty()) return;
  throw Error(fmt::format(
      "Nothing more can run on the GPU in this process, whose CUDA context was lost in an earlier "
      "run: {}. Run this case by itself.",
      lost()));
}

// Errors that every later call repeats: the context is gone.
bool ends_the_context() { return cudaDeviceSynchronize() != cudaSuccess; }

void check(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // what does not end the context must not show up in a later call
  const std::string text = fmt::format("{}: {}", what, words(result));
  if (ends_the_context()) lost() = text;
  throw Error("CUDA failed, " + text + ".");
}

cudaError_t describe(int index, Gpu& gpu) {
  cudaDeviceProp properties{};
  const cudaError_t result = cudaGetDeviceProperties(&properties, index);
  gpu.name = properties.name;
  gpu.major = properties.major;
  gpu.minor = properties.minor;
  gpu.memory = properties.totalGlobalMem;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.shared_memory = properties.sharedMemPerBlockOptin;
  return result;
}

}  // namespace

Probe probe() {
  Probe out;
  cudaRuntimeGetVersion(&out.runtime_version);
  cudaDriverGetVersion(&out.driver_version);  // 0 where there is no driver
  int count = 0;
  cudaError_t result = cudaGetDeviceCount(&count);
  for (int i = 0; i < count && result == cudaSuccess; ++i)
    result = describe(i, out.gpus.emplace_back());
  cudaGetLastError();
  if (result == cudaErrorInsufficientDriver || result == cudaErrorStubLibrary) {
    out.trouble = out.driver_version == 0 ? Trouble::kNoDriver : Trouble::kOldDriver;
  } else if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    out.trouble = Trouble::kNoGpu;
  } else if (result != cudaSuccess) {
    out.trouble = Trouble::kOther;
    out.error = words(result);
  }
  return out;
}

DeviceMemory::DeviceMemory(std::size_t bytes) : x_size(bytes) {
  require_gpu();
  if (bytes == 0) return;
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes),
        fmt::format("allocating {} on the GPU", readable_bytes(static_cast<double>(bytes))));
  x_data = static_cast<std::byte*>(memory);
}

DeviceMemory::~DeviceMemory() { cudaFree(x_data); }

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : x_data(other.x_data), x_size(other.x_size) {
  other.x_data = nullptr;
  other.x_size = 0;
}

void DeviceMemory::fill(std::uint8_t value, std::size_t offset, std::size_t bytes) {
  require_gpu();
  if (bytes == 0) return;
  check(cudaMemset(x_data + offset, value, bytes), "filling memory of the GPU");
}

void DeviceMemory::upload(const void* from, std::size_t offset, std::size_t bytes) {
  require_gpu();
  if (bytes == 0) return;
  check(cudaMemcpy(x_data + offset, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
}

void DeviceMemory::download(void* to, std::size_t offset, std::size_t bytes) const {
  require_gpu();
  if (bytes == 0) return;
  check(cudaMemcpy(to, x_data + offset, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
}

std::size_t free_memory() {
  require_gpu();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the free memory of the GPU");
  return free;
}

void synchronize(const std::string& failed) {
  require_gpu();
  const cudaError_t result = cudaDeviceSynchronize();
  if (result == cudaSuccess) return;
  lost() = fmt::format("{}: {}", failed, words(result));
  throw Error(lost() + ".");
}

const std::string& lost_by() { return lost(); }

}  // namespace attn_diag::cuda
