#include "harness/base/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string>

namespace attn_diag {
namespace {

// The first number of a file; nullopt if there is none, as in "max".
std::optional<double> number_in(const char* path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

}  // namespace

double available_memory() {
  double available = 0;
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  for (double kib = 0; meminfo >> key >> kib; std::getline(meminfo, unit)) {
    if (key == "MemAvailable:") available = kib * 1024;
  }
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) available = std::min(available, std::max(0.0, *limit - *used));
  return available;
}

std::string readable_bytes(double bytes) {
  constexpr std::array<const char*, 6> units = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes)
                   : fmt::format("{:.1f} {}", bytes, units[unit]);
}

}  // namespace attn_diag
