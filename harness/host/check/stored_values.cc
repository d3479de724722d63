#include "harness/host/check/stored_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iomanip>

#include "harness/host/text.h"

namespace attn_diag::host {

std::string stored_value(std::span<const std::byte> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
    return "0";
  std::uint64_t word = 0;
  if (bytes.size() > sizeof word) return "";
  std::memcpy(&word, bytes.data(), bytes.size());
  const std::string hexadecimal = concat("0x", std::hex, std::uppercase, std::setfill('0'),
                                         std::setw(static_cast<int>(2 * bytes.size())), word);
  if (bytes.size() != sizeof(float)) return hexadecimal;
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  // The bits of a small integer are those of a number that nobody computes.
  return std::isnormal(value) ? concat(value, " (", hexadecimal, ')') : hexadecimal;
}

const char* advice_for_stores(const std::string& first, const std::string& second, bool one_line) {
  if (one_line)
    return "Two threads have the same index here: look for what of the thread, lane or warp is "
           "missing in it, or let one thread store";
  if (second == "0" && first != "0")
    return "The second clears what the first has stored: put __syncthreads() between the two, or "
           "leave out of the clearing what others store";
  if (first == "0" && second != "0")
    return "The first only clears it: put __syncthreads() behind the clearing, or let the thread "
           "clear that stores";
  return "Decide which thread owns the element: let it alone store, or look for an index of the "
         "thread, lane or warp that is missing; where the second is meant to replace the first, "
         "put __syncthreads() between them";
}

}  // namespace attn_diag::host
