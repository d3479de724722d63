#include "harness/cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/cuda/probe.h"
#include "harness/memory.h"

namespace attn_diag::cuda {
namespace {

std::string& lost() {
  static std::string run;
  return run;
}

std::string words(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

void throw_if_lost() {
  if (lost().empty()) return;
  throw Error(
      fmt::format("Nothing more can run on the GPU in this process: its CUDA context was lost in "
                  "an earlier run, "
                  "{}. Run this case by itself.",
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

Gpu describe(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "asking for the properties of the GPU");
  Gpu gpu;
  gpu.name = properties.name;
  gpu.major = properties.major;
  gpu.minor = properties.minor;
  gpu.memory = properties.totalGlobalMem;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.shared_memory = properties.sharedMemPerBlockOptin;
  return gpu;
}

}  // namespace

Probe probe() {
  Probe out;
  cudaRuntimeGetVersion(&out.runtime_version);
  cudaDriverGetVersion(&out.driver_version);  // 0 where there is no driver
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (result == cudaErrorInsufficientDriver || result == cudaErrorStubLibrary) {
    out.trouble = out.driver_version == 0 ? Trouble::kNoDriver : Trouble::kOldDriver;
  } else if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    out.trouble = Trouble::kNoGpu;
  } else if (result != cudaSuccess) {
    out.trouble = Trouble::kOther;
    out.error = words(result);
  }
  try {
    for (int i = 0; i < count; ++i) out.gpus.push_back(describe(i));
  } catch (const Error& e) {
    out.trouble = Trouble::kOther;
    out.error = e.what();
  }
  return out;
}

DeviceMemory::DeviceMemory(std::size_t bytes) : x_size(bytes) {
  throw_if_lost();
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
  throw_if_lost();
  if (bytes == 0) return;
  check(cudaMemset(x_data + offset, value, bytes), "filling memory of the GPU");
}

void DeviceMemory::upload(const void* from, std::size_t offset, std::size_t bytes) {
  throw_if_lost();
  if (bytes == 0) return;
  check(cudaMemcpy(x_data + offset, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
}

void DeviceMemory::download(void* to, std::size_t offset, std::size_t bytes) const {
  throw_if_lost();
  if (bytes == 0) return;
  check(cudaMemcpy(to, x_data + offset, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
}

std::size_t free_memory() {
  throw_if_lost();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the free memory of the GPU");
  return free;
}

void synchronize(const std::string& run) {
  throw_if_lost();
  check(cudaDeviceSynchronize(), run);
}

const std::string& lost_by() { return lost(); }

Stopwatch::Stopwatch() {
  throw_if_lost();
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "creating an event");
  x_begin = begin;
  check(cudaEventCreate(&end), "creating an event");
  x_end = end;
}

Stopwatch::~Stopwatch() {
  if (x_begin != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(x_begin));
  if (x_end != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(x_end));
}

void Stopwatch::start() {
  throw_if_lost();
  check(cudaEventRecord(static_cast<cudaEvent_t>(x_begin)), "recording an event");
}

double Stopwatch::stop(const std::string& run) {
  check(cudaEventRecord(static_cast<cudaEvent_t>(x_end)), run);
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(x_end)), run);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(x_begin),
                             static_cast<cudaEvent_t>(x_end)),
        run);
  return milliseconds;
}

}  // namespace attn_diag::cuda
