#include <cuda_runtime.h>

#include "harness/host/test_support.h"

namespace attn_diag::host {

TEST_CASE("bits and bytes are moved as CUDA does") {
  CHECK(__brevll(1ull) == 1ull << 63);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x0123u) == 0x00112233u);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0xFFFFu) == 0x77777777u);  // the top bits are ignored
  CHECK(__funnelshift_l(0x80000001u, 0x00000001u, 1) == 0x00000003u);
  CHECK(__funnelshift_l(0x80000001u, 0x12345678u, 0) == 0x12345678u);
  CHECK(__funnelshift_r(0x80000001u, 0x00000001u, 1) == 0xC0000000u);
  CHECK(__funnelshift_r(0x80000001u, 0x00000007u, 32) == 0x80000001u);
  CHECK(__funnelshift_rc(0x80000001u, 0x00000007u, 32) == 0x00000007u);
  CHECK(__funnelshift_lc(0x80000001u, 0x00000007u, 40) == 0x80000001u);
}

TEST_CASE("wide and narrow products are CUDA's") {
  CHECK(__umul64hi(~0ull, ~0ull) == ~0ull - 1);
  CHECK(__mul64hi(-1, 1) == -1);
  CHECK(__umul24(0xFF000002u, 3) == 6);
  CHECK(__mul24(0x00FFFFFF, 5) == -5);
  CHECK(__sad(-5, 7, 1) == 13);
  CHECK(__usad(3, 10, 0) == 7);
  CHECK(__hadd(-3, 0) == -2);
  CHECK(__rhadd(3, 0) == 2);
  CHECK(__uhadd(0xFFFFFFFFu, 1) == 0x80000000u);
  CHECK(__urhadd(0xFFFFFFFFu, 0xFFFFFFFEu) == 0xFFFFFFFFu);
  CHECK(__dp4a(0x7F80FF01, 0x01020304, 10) == 127 - 256 - 3 + 4 + 10);
  CHECK(__dp4a(0x7F80FF01u, 0x01020304u, 10u) == 127 + 256 + 765 + 4 + 10);
  CHECK(__dp4a(char4{1, -2, 3, -4}, char4{5, 6, 7, 8}, 0) == 5 - 12 + 21 - 32);
  CHECK(__dp2a_lo(0x0002FFFF, 0x01020304, 0) == -4 + 2 * 3);
  CHECK(__dp2a_hi(0x0002FFFFu, 0x01020304u, 0u) == 2 * 65535u + 1 * 2u);
}

TEST_CASE("packed integers are added, compared and saturated part by part") {
  CHECK(__vadd4(0xFF01807Fu, 0x01010101u) == 0x00028180u);
  CHECK(__vaddss4(0xFF01807Fu, 0x0101FF01u) == 0x0002807Fu);
  CHECK(__vaddus4(0xFF018000u, 0x01018001u) == 0xFF02FF01u);
  CHECK(__vsubus2(0x00010005u, 0x00020003u) == 0x00000002u);
  CHECK(__vsub2(0x00000005u, 0x00010003u) == 0xFFFF0002u);
  CHECK(__vmaxs2(0x8000FFFFu, 0x00010001u) == 0x00010001u);
  CHECK(__vmaxu2(0x8000FFFFu, 0x00010001u) == 0x8000FFFFu);
  CHECK(__vmins4(0x80FF0102u, 0x00000000u) == 0x80FF0000u);
  CHECK(__vcmpgts4(0x01FF0080u, 0x00000000u) == 0xFF000000u);
  CHECK(__vcmpgtu4(0x01FF0080u, 0x00000000u) == 0xFFFF00FFu);
  CHECK(__vseteq2(0x00010002u, 0x00010003u) == 0x00010000u);
  CHECK(__vabsdiffu4(0x05010302u, 0x01050203u) == 0x04040101u);
  CHECK(__vsadu4(0x05010302u, 0x01050203u) == 10);
  CHECK(__vavgu4(0x01020304u, 0x02020305u) == 0x02020305u);
  CHECK(__vnegss2(0x80000001u) == 0x7FFFFFFFu);
  CHECK(__vabs4(0x80FF0102u) == 0x80010102u);
  CHECK(__vabsss4(0x80FF0102u) == 0x7F010102u);
}

TEST_CASE("loads and stores with a cache hint load and store") {
  float4 memory[2] = {{1, 2, 3, 4}, {}};
  __stcs(&memory[1], __ldg(&memory[0]));
  CHECK(__ldcg(&memory[1].w) == 4);
  int flag = 0;
  __stcg(&flag, 7u);  // converts
  CHECK((__ldcv(&flag) == 7 && __ldca(&flag) == 7 && __ldlu(&flag) == 7));
}

TEST_CASE("min and max of two types convert as arithmetic does") {
  CHECK(::max(-1, 1u) == 0xFFFFFFFFu);
  CHECK(::min(2.5f, 1.5) == 1.5);
  CHECK(::max(1ull, 2ll) == 2ull);
}

}  // namespace attn_diag::host
