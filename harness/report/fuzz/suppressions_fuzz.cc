// Any text as a file of suppressions.
#include <cstddef>
#include <cstdint>
#include <string>

#include "attn_diag/harness/error.h"
#include "harness/report/check_suppressions.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    attn_diag::report::parse_suppressions(std::string(reinterpret_cast<const char*>(data), size),
                                          "fuzz");
  } catch (const attn_diag::Error&) {
  }
  return 0;
}
