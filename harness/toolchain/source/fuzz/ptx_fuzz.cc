// Any text as inline PTX with operands of every kind: parsed and translated, or refused in words.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/toolchain/source/ptx.h"
#include "harness/toolchain/source/translate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace source = attn_diag::source;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    source::parse_ptx(text);
  } catch (const source::PtxProblem&) {
  }
  if (text.find(")ptx\"") != std::string::npos) return 0;
  source::translate(
      "__device__ void f(unsigned a, float b, long c, int* d) {\n  asm volatile(R\"ptx(" + text +
          ")ptx\" : \"+r\"(a), \"+f\"(b) : \"l\"(c), \"l\"(d), \"n\"(4) : \"memory\");\n}\n",
      "fuzz.cu");
  return 0;
}
