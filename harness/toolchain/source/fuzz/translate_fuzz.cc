// Any text through the whole source pass: it is translated, or refused in words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "harness/toolchain/source/translate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto translation = attn_diag::source::translate(text, "fuzz.cu");
  if (!translation.errors.empty() && !translation.text.empty()) __builtin_trap();
  return 0;
}
