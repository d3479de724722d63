// Where a kernel runs: the memory it is given, the launch, and what that says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/kernel.h"

namespace attn_diag {

// What a device has to say of a run that ended.
struct DeviceReport {
  std::vector<std::string> remarks;
  // Kernels that were launched; not known of a GPU.
  std::optional<std::uint64_t> launches;
};

class RunDevice {
 public:
  virtual ~RunDevice() = default;

  // Where the kernel finds `bytes` bytes that are at `host` before the run, and, if `written`, after
  // it. Bytes around them, at least `guard` on either side, hold `around` and must stay so; `host` is 256-byte
  // aligned unless the kernel needs less. Null for no bytes.
  virtual void* place(const std::string& what, void* host, std::size_t bytes, std::size_t guard,
                      bool written, std::uint8_t around = 0xFF) = 0;

  // Runs the request, whose pointers are those that place() gave, and brings back what was written.
  // Throws Error if the kernel does not support the request or
  // did not complete, and where it wrote outside what it was given.
  virtual DeviceReport run(const Kernel& kernel, RunRequest request) = 0;
};

// Runs the kernel's function; a status that is not kOk becomes an Error: "fa1 <failed>: ...", with the
// kernel's own words.
void call_kernel(const Kernel& kernel, RunRequest request, const std::string& failed);

[[noreturn]] void throw_wrote_outside(const Kernel& kernel, const std::string& what,
                                      std::ptrdiff_t offset, std::size_t bytes);

}  // namespace attn_diag
