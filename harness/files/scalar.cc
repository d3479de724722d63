#include "harness/files/scalar.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "attn_diag/harness/capture.h"

namespace attn_diag::files {
namespace {

template <class T>
std::string spelled(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return fmt::format("{}", value);
}

}  // namespace

std::optional<std::string> number_text(char kind, std::size_t size, const void* from) {
  if (kind == 'b' && size == 1)
    return *static_cast<const unsigned char*>(from) != 0 ? "true" : "false";
  if (kind == 'f' && size == 2) return fmt::format("{}", load_element(from, DType::kFp16, 0));
  if (kind == 'f' && size == 4) return spelled<float>(from);
  if (kind == 'f' && size == 8) return spelled<double>(from);
  if (kind == 'i' && size == 1) return fmt::format("{}", *static_cast<const signed char*>(from));
  if (kind == 'i' && size == 2) return spelled<std::int16_t>(from);
  if (kind == 'i' && size == 4) return spelled<std::int32_t>(from);
  if (kind == 'i' && size == 8) return spelled<std::int64_t>(from);
  if (kind == 'u' && size == 1) return fmt::format("{}", *static_cast<const unsigned char*>(from));
  if (kind == 'u' && size == 2) return spelled<std::uint16_t>(from);
  if (kind == 'u' && size == 4) return spelled<std::uint32_t>(from);
  if (kind == 'u' && size == 8) return spelled<std::uint64_t>(from);
  return std::nullopt;
}

}  // namespace attn_diag::files
