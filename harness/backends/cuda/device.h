// Memory and errors of the GPU that is used, the first one. device.cc calls the CUDA runtime;
// device_absent.cc stands for it where attn-diag is built without the toolkit, and throws.
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

// Waits until everything launched is done. Where that did not end well the context is lost; `failed`
// begins the error, and is what later ones point to: "fa1 did not complete".
void synchronize(const std::string& failed);

// What ended the context: "fa1 did not complete: an illegal memory access was encountered ..."; empty
// while all is well.
const std::string& lost_by();

}  // namespace attn_diag::cuda
