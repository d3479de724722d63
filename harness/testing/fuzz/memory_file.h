// Bytes as a file that has a name but lies in memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace attn_diag::testing {

class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size)
      : x_descriptor(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (x_descriptor < 0 || write(x_descriptor, data, size) != static_cast<ssize_t>(size))
      throw std::runtime_error("no file in memory can be made");
  }
  ~MemoryFile() { close(x_descriptor); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(x_descriptor); }

 private:
  int x_descriptor;
};

}  // namespace attn_diag::testing
