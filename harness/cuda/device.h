// Memory, time and errors of the GPU that is used, the first one. Every call of the CUDA runtime is
// made behind this header, in device.cc; where attn-diag is built without the toolkit, device_absent.cc
// stands for it and everything here throws.
//
// All throw Error: what was done, what CUDA said. After an error that ends the context of a process
// (an illegal address, a failed assertion, a trap), nothing can be run any more, and every call says
// which run it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace attn_diag::cuda {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  std::byte* data() const { return x_data; }  // device address, 256-byte aligned
  std::size_t size() const { return x_size; }
  void fill(std::uint8_t value, std::size_t offset, std::size_t bytes);
  void upload(const void* from, std::size_t offset, std::size_t bytes);
  void download(void* to, std::size_t offset, std::size_t bytes) const;

 private:
  std::byte* x_data = nullptr;
  std::size_t x_size;
};

// Bytes that can be allocated now.
std::size_t free_memory();

// Waits until everything launched is done. `run` says what that was, for the error and for later ones.
void synchronize(const std::string& run);

// What ended the context: "fa1@x, gate reduce: an illegal memory access was encountered ..."; empty
// while all is well.
const std::string& lost_by();

// Time on the device between two points of the default stream.
class Stopwatch {
 public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start();
  // Milliseconds since start(), when everything launched in between is done.
  double stop(const std::string& run);

 private:
  void *x_begin = nullptr, *x_end = nullptr;  // cudaEvent_t
};

}  // namespace attn_diag::cuda
