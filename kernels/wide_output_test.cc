// How o in fp32 is rounded: as the host executor's own conversions do it.
#include <attn_diag/kernels/wide_output.h>

#include "attn_diag_host/small_float.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

bool rounds_alike(std::uint32_t bits) {
  const float x = __builtin_bit_cast(float, bits);
  return WideOutput::to_fp16(bits) == host::half_bits(x) &&
         WideOutput::to_bf16(bits) == host::bfloat16_bits(x);
}

TEST_CASE("o in fp32 is rounded to fp16 and bf16 as conversions are") {
  // Each sign and exponent, with digits about each place at which either rounds.
  for (std::uint32_t head = 0; head < 512; ++head)
    for (int place = 0; place <= 23; ++place)
      for (int digit = 0; digit <= 23; ++digit)
        for (const std::uint32_t more : {0xFFFFFFFFu, 0u, 1u}) {
          const std::uint32_t digits = ((1u << place) + (1u << digit) + more) & 0x7FFFFFu;
          if (!rounds_alike(head << 23 | digits)) FAIL("bits " << (head << 23 | digits));
        }
}

}  // namespace
}  // namespace attn_diag
