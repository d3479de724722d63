#include "harness/files/array.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "attn_diag/harness/error.h"
#include "harness/base/printable.h"

namespace attn_diag::files {

std::int64_t Array::size() const { return cells_of(shape, where()); }

std::vector<std::byte> Array::load() const {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 26;
  if (bytes <= kPiece) return read(0, bytes);
  std::vector<std::byte> all(bytes);
  for (std::uint64_t at = 0; at < bytes; at += kPiece) {
    const std::vector<std::byte> piece = read(at, std::min(kPiece, bytes - at));
    std::copy(piece.begin(), piece.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return all;
}

std::string Array::where() const {
  if (file.empty()) return name;
  return one_line(file.ends_with(".npy") ? file : fmt::format("{} of {}", name, file));
}

std::string Array::text() const {
  const std::string what = fmt::format("{} {}", one_line(type), shape_text(shape));
  return file.empty() ? what : fmt::format("{}, {}", where(), what);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::int64_t cells_of(const std::vector<std::int64_t>& shape, const std::string& what) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::int64_t cells = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && cells > kMost / extent))
      throw Error(
          fmt::format("{} has the shape {}, which no array can have. The file is damaged: "
                      "write it again.",
                      what, shape_text(shape)));
    cells *= extent;
  }
  return cells;
}

std::uint64_t file_size(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    throw Error(
        fmt::format("{} could not be opened: {}. Check the name.", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw Error(fmt::format(
        "{} is not a regular file. Name an HDF5, .npy, .npz or .safetensors file.", path));
  return static_cast<std::uint64_t>(status.st_size);
}

ReadBytes bytes_of_file(const std::string& path) {
  return [path](std::uint64_t offset, std::uint64_t size) {
    const std::uint64_t whole = file_size(path);
    if (offset > whole || size > whole - offset)
      throw Error(fmt::format(
          "{} is truncated: it has {} bytes, and {} are needed from byte {} on. Copy or "
          "write it again.",
          path, whole, size, offset));
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
      throw Error(fmt::format("{} could not be opened: {}. Check its permissions.", path,
                              std::strerror(errno)));
    std::vector<std::byte> bytes(size);
    std::uint64_t done = 0;
    while (done < size) {
      const ssize_t n =
          pread(descriptor, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const int reason = n < 0 ? errno : EIO;
        close(descriptor);
        throw Error(fmt::format("{} could not be read: {}.", path, std::strerror(reason)));
      }
      done += static_cast<std::uint64_t>(n);
    }
    close(descriptor);
    return bytes;
  };
}

}  // namespace attn_diag::files
