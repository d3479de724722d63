// Compiled through the source pass: inline PTX against what C++ computes.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness/testing/catch_for_tests.h"

namespace {

using U = std::uint32_t;
using S = std::int32_t;

U bits(float x) {
  U b;
  std::memcpy(&b, &x, 4);
  return b;
}

#define UNARY(name, T, C, R, D, instruction)       \
  R name(T a) {                                    \
    R d;                                           \
    asm(instruction " %0, %1;" : "=" D(d) : C(a)); \
    return d;                                      \
  }
#define BINARY(name, T, C, instruction)                                 \
  T name(T a, T b) {                                                    \
    T d;                                                                \
    asm volatile(instruction " %0, %1, %2;\n" : "=" C(d) : C(a), C(b)); \
    return d;                                                           \
  }
#define TERNARY(name, T, C, instruction)                               \
  T name(T a, T b, T c) {                                              \
    T d;                                                               \
    asm(instruction " %0, %1, %2, %3;" : "=" C(d) : C(a), C(b), C(c)); \
    return d;                                                          \
  }

BINARY(add_u32, U, "r", "add.u32")
BINARY(sub_s32, S, "r", "sub.s32")
BINARY(add_sat, S, "r", "add.sat.s32")
BINARY(mul_lo, U, "r", "mul.lo.u32")
BINARY(mul_hi_u, U, "r", "mul.hi.u32")
BINARY(mul_hi_s, S, "r", "mul.hi.s32")
TERNARY(mad_lo, U, "r", "mad.lo.u32")
BINARY(min_s, S, "r", "min.s32")
BINARY(max_u, U, "r", "max.u32")
BINARY(div_s, S, "r", "div.s32")
BINARY(rem_u, U, "r", "rem.u32")
BINARY(and_b, U, "r", "and.b32")
BINARY(or_b, U, "r", "or.b32")
BINARY(xor_b, U, "r", "xor.b32")
UNARY(not_b, U, "r", U, "r", "not.b32")
BINARY(shl_b, U, "r", "shl.b32")
BINARY(shr_u, U, "r", "shr.u32")
BINARY(shr_s, S, "r", "shr.s32")
UNARY(neg_s, S, "r", S, "r", "neg.s32")
UNARY(abs_s, S, "r", S, "r", "abs.s32")
UNARY(brev_b, U, "r", U, "r", "brev.b32")
UNARY(clz_b, U, "r", U, "r", "clz.b32")
UNARY(popc_b, U, "r", U, "r", "popc.b32")
TERNARY(bfe_u, U, "r", "bfe.u32")
TERNARY(bfe_s, S, "r", "bfe.s32")
TERNARY(prmt_b, U, "r", "prmt.b32")
TERNARY(dp4a_s, S, "r", "dp4a.s32.s32")
TERNARY(shf_l, U, "r", "shf.l.wrap.b32")

BINARY(add_f, float, "f", "add.f32")
BINARY(add_rz, float, "f", "add.rz.f32")
BINARY(mul_ftz, float, "f", "mul.ftz.f32")
BINARY(mul_sat, float, "f", "mul.sat.f32")
TERNARY(fma_f, float, "f", "fma.rn.f32")
BINARY(min_f, float, "f", "min.f32")
BINARY(max_nan, float, "f", "max.NaN.f32")
BINARY(div_full, float, "f", "div.full.f32")
UNARY(ex2, float, "f", float, "f", "ex2.approx.ftz.f32")
UNARY(lg2, float, "f", float, "f", "lg2.approx.f32")
UNARY(rcp, float, "f", float, "f", "rcp.approx.ftz.f32")
UNARY(rsqrt_f, float, "f", float, "f", "rsqrt.approx.f32")
UNARY(sqrt_f, float, "f", float, "f", "sqrt.rn.f32")
UNARY(tanh_f, float, "f", float, "f", "tanh.approx.f32")
BINARY(add_d, double, "d", "add.f64")
UNARY(rzi, float, "f", S, "r", "cvt.rzi.s32.f32")
UNARY(rni, float, "f", S, "r", "cvt.rni.s32.f32")
UNARY(rmi_f, float, "f", float, "f", "cvt.rmi.f32.f32")
UNARY(to_u32, float, "f", U, "r", "cvt.rzi.u32.f32")
UNARY(from_s32, S, "r", float, "f", "cvt.rn.f32.s32")
UNARY(from_s32_rz, S, "r", float, "f", "cvt.rz.f32.s32")
UNARY(to_half, float, "f", unsigned short, "h", "cvt.rn.f16.f32")
UNARY(to_half_rz, float, "f", unsigned short, "h", "cvt.rz.f16.f32")
UNARY(from_half, unsigned short, "h", float, "f", "cvt.f32.f16")
UNARY(to_bf16, float, "f", unsigned short, "h", "cvt.rn.bf16.f32")
UNARY(to_tf32, float, "f", U, "r", "cvt.rna.tf32.f32")
UNARY(narrow, std::uint64_t, "l", U, "r", "cvt.u32.u64")
UNARY(sign_extend, S, "r", std::int64_t, "l", "cvt.s64.s32")
UNARY(low_byte, S, "r", S, "r", "cvt.s32.s8")
UNARY(fp16x2_of_e4m3, unsigned short, "h", U, "r", "cvt.rn.f16x2.e4m3x2")

U pair_of(float high, float low) {
  U d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
unsigned short e4m3_of(float high, float low) {
  unsigned short d;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
  return d;
}
BINARY(add_h2, U, "r", "add.f16x2")
TERNARY(fma_h2, U, "r", "fma.rn.f16x2")
BINARY(max_b2, U, "r", "max.bf16x2")

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("integers wrap around, saturate, and are multiplied in halves") {
  for (const U a : {0u, 1u, 7u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0x12345678u})
    for (const U b : {1u, 3u, 0x80000000u, 0xFFFFFFF0u, 31u}) {
      const auto s = static_cast<S>(a), t = static_cast<S>(b);
      CHECK(add_u32(a, b) == a + b);
      CHECK(sub_s32(s, t) == static_cast<S>(a - b));
      CHECK(mul_lo(a, b) == a * b);
      CHECK(mul_hi_u(a, b) == static_cast<U>((std::uint64_t{a} * b) >> 32));
      CHECK(mul_hi_s(s, t) == static_cast<S>((std::int64_t{s} * t) >> 32));
      CHECK(mad_lo(a, b, 5) == a * b + 5);
      CHECK(min_s(s, t) == std::min(s, t));
      CHECK(max_u(a, b) == std::max(a, b));
      CHECK(rem_u(a, b) == a % b);
      CHECK(and_b(a, b) == (a & b));
      CHECK(or_b(a, b) == (a | b));
      CHECK(xor_b(a, b) == (a ^ b));
      CHECK(not_b(a) == ~a);
    }
  CHECK(add_sat(2147483647, 1) == 2147483647);
  CHECK(add_sat(-2147483647, -9) == std::numeric_limits<S>::min());
  CHECK(div_s(-7, 2) == -3);
  CHECK(neg_s(5) == -5);
  CHECK(abs_s(-5) == 5);
  CHECK(dp4a_s(0x010203FF, 0x02020202, 10) == 10 + 2 * (1 + 2 + 3 - 1));
  std::uint64_t wide = 0;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(0xFFFFFFFFu), "r"(0xFFFFFFFFu));
  CHECK(wide == 0xFFFFFFFE00000001ull);
  std::int64_t more = 0;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(more) : "r"(-3), "r"(5), "l"(std::int64_t{1} << 40));
  CHECK(more == (std::int64_t{1} << 40) - 15);
}

TEST_CASE("bits are shifted, extracted, inserted and permuted") {
  CHECK(shl_b(1, 31) == 0x80000000u);
  CHECK(shl_b(1, 32) == 0);
  CHECK(shr_u(0x80000000u, 31) == 1);
  CHECK(shr_s(-8, 1) == -4);
  CHECK(shr_s(-8, 40) == -1);
  CHECK(brev_b(1) == 0x80000000u);
  CHECK(clz_b(0) == 32);
  CHECK(clz_b(0x00010000u) == 15);
  CHECK(popc_b(0xF0F0u) == 8);
  CHECK(bfe_u(0xABCD1234u, 8, 8) == 0x12);
  CHECK(bfe_s(0x0000F000, 12, 4) == -1);
  CHECK(bfe_u(0xFFFFFFFFu, 28, 8) == 0xF);
  U d = 0;
  asm("bfi.b32 %0, %1, %2, 8, 8;" : "=r"(d) : "r"(0x12u), "r"(0xABCDEF01u));
  CHECK(d == 0xABCD1201u);
  CHECK(prmt_b(0x33221100u, 0x77665544u, 0x7540) == 0x77554400u);
  CHECK(prmt_b(0x80u, 0, 0x8888) == 0xFFFFFFFFu);
  for (const U table : {0x00u, 0xE8u, 0x96u, 0xCAu, 0xFFu}) {
    const U a = 0xF0F0F0F0u, b = 0xCCCCCCCCu, c = 0xAAAAAAAAu;
    U result = 0;
    asm("{ .reg .b32 t; mov.b32 t, %4; lop3.b32 %0, %1, %2, %3, 0xE8; }"
        : "=r"(result)
        : "r"(a), "r"(b), "r"(c), "r"(table));
    CHECK(result == ((a & b) | (a & c) | (b & c)));
  }
  U chosen = 0;
  asm("lop3.b32 %0, %1, %2, %3, %4;"
      : "=r"(chosen)
      : "r"(0xF0F0F0F0u), "r"(0xCCCCCCCCu), "r"(0xAAAAAAAAu), "n"(0xCA));
  CHECK(chosen == 0xCACACACAu);
  CHECK(shf_l(0x80000000u, 1, 1) == 3);
  U low = 0, high = 0;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(0x1122334455667788ull));
  CHECK(low == 0x55667788u);
  CHECK(high == 0x11223344u);
  std::uint64_t both = 0;
  asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(1), "r"(2));
  CHECK(both == 0x200000001ull);
}

TEST_CASE("floats are rounded, flushed and saturated as the modifiers say") {
  CHECK(add_f(1, 0x1p-24f) == 1.0f);
  CHECK(add_rz(1, 0x1.fp-24f) == 1.0f);
  CHECK(add_f(1, 0x1.fp-24f) == 1 + 0x1p-23f);
  CHECK(mul_ftz(0x1p-100f, 0x1p-40f) == 0);
  CHECK(mul_ftz(0x1p-140f, 0x1p100f) == 0);
  CHECK(mul_sat(3, 4) == 1);
  CHECK(mul_sat(-3, 4) == 0);
  CHECK(mul_sat(kNan, 4) == 0);
  CHECK(fma_f(0x1.000002p0f, 0x1.000002p0f, -1) == std::fma(0x1.000002p0f, 0x1.000002p0f, -1.0f));
  CHECK(min_f(kNan, 2) == 2);
  CHECK(std::signbit(min_f(0.0f, -0.0f)));
  CHECK(std::isnan(max_nan(kNan, 2)));
  CHECK(div_full(1, 3) == 1.0f / 3.0f);
  CHECK(ex2(5) == 32);
  CHECK(ex2(-kInfinity) == 0);
  CHECK(ex2(-140) == 0);
  CHECK(lg2(8) == 3);
  CHECK(rcp(4) == 0.25f);
  CHECK(rsqrt_f(4) == 0.5f);
  CHECK(sqrt_f(9) == 3);
  CHECK(tanh_f(0.5f) == std::tanh(0.5f));
  CHECK(add_d(1, 0x1p-52) == 1 + 0x1p-52);
  float y = 2;
  asm("fma.rn.f32 %0, %0, 0f40400000, 0f3F800000;" : "+f"(y));
  CHECK(y == 7);
}

TEST_CASE("conversions round and clamp") {
  CHECK(rzi(-2.7f) == -2);
  CHECK(rni(2.5f) == 2);
  CHECK(rni(3.5f) == 4);
  CHECK(rmi_f(-1.5f) == -2);
  CHECK(rzi(3e9f) == 2147483647);
  CHECK(rzi(kNan) == 0);
  CHECK(to_u32(-1) == 0);
  CHECK(from_s32(16777217) == 16777216.0f);
  CHECK(from_s32_rz(-16777219) == -16777218.0f);
  for (const float x : {1.0f, 0.1f, 65504.0f, 65520.0f, 6e-8f, -3.3f, kInfinity}) {
    CHECK(to_half(x) == __half_as_ushort(__float2half(x)));
    CHECK(from_half(to_half(x)) == __half2float(__float2half(x)));
  }
  CHECK(to_half_rz(1 + 0x1.8p-10f) == 0x3C01);
  CHECK(to_half_rz(-1 - 0x1.8p-10f) == 0xBC01);
  CHECK(to_bf16(1 + 0x1p-8f) == 0x3F80);
  CHECK(to_bf16(1 + 0x1.8p-8f) == 0x3F81);
  CHECK(to_tf32(1 + 0x1p-11f) == bits(1 + 0x1p-10f));
  CHECK(narrow(0x123456789ABCDEF0ull) == 0x9ABCDEF0u);
  CHECK(sign_extend(-5) == -5);
  CHECK(low_byte(0x1FF) == -1);
  CHECK(pair_of(2, 1) == 0x40003C00u);
  CHECK(e4m3_of(1, 448) == 0x387E);
  CHECK(e4m3_of(-1000, 0x1p-9f) == 0xFE01);
  CHECK(e4m3_of(0x1.1p0f, 0x1.3p0f) == 0x383A);  // ties to even
  CHECK(fp16x2_of_e4m3(0x387E) == 0x3C005F00u);
  CHECK(add_h2(0x3C003C00u, 0x40003C00u) == 0x42004000u);
  CHECK(fma_h2(0x40004000u, 0x42004200u, 0x3C00BC00u) == 0x47004500u);
  CHECK(max_b2(0x3F80BF80u, 0x40000000u) == 0x40000000u);
}

TEST_CASE("predicates are set, combined, select and guard") {
  for (const S a : {-3, 0, 3}) {
    S below = 0, both = 0;
    asm("{\n .reg .pred p, q, r;\n setp.lt.s32 p|q, %2, 0;\n setp.ge.and.s32 r, %2, -5, p;\n"
        " selp.s32 %0, 1, 2, p;\n mov.u32 %1, 0;\n @r mov.u32 %1, 7;\n @!q add.s32 %1, %1, 10;\n}"
        : "=r"(below), "=r"(both)
        : "r"(a));
    CHECK(below == (a < 0 ? 1 : 2));
    CHECK(both == (a < 0 ? 17 : 0));
  }
  U set = 0;
  asm("set.gt.u32.f32 %0, %1, %2;" : "=r"(set) : "f"(2.0f), "f"(1.0f));
  CHECK(set == 0xFFFFFFFFu);
  S unordered = 0;
  asm("{ .reg .pred p; setp.ltu.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }"
      : "=r"(unordered)
      : "f"(kNan), "f"(1.0f));
  CHECK(unordered == 1);
}

TEST_CASE("labels and branches loop, each statement with its own") {
  for (const S n : {1, 5}) {
    S sum = 0, again = 0;
    asm("{\n .reg .pred p;\n .reg .s32 i;\n mov.s32 i, 0;\n mov.s32 %0, 0;\nLOOP:\n add.s32 i, i, "
        "1;\n"
        " add.s32 %0, %0, i;\n setp.lt.s32 p, i, %1;\n @p bra LOOP;\n}"
        : "=r"(sum)
        : "r"(n));
    CHECK(sum == n * (n + 1) / 2);
    if (n == 5)
      asm("{\n .reg .pred p;\nLOOP: add.s32 %0, %0, 2; setp.lt.s32 p, %0, 7; @p bra.uni LOOP;\n}"
          : "+r"(again));
    else
      again = 8;
    CHECK(again == 8);
  }
}

namespace {

__device__ U address_of(const void* pointer) {
  return static_cast<U>(__cvta_generic_to_shared(pointer));
}

__global__ void memory_kernel(const float* in, float* out, U* counts) {
  __shared__ alignas(16) float s[128];
  const U lane = threadIdx.x;
  const U at = address_of(&s[4 * lane]);
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at),
               "l"(in + 4 * lane), "r"(lane == 31 ? 8 : 16));
  if (lane == 30)  // whose source is ignored
    asm volatile(
        "{ .reg .pred p; setp.eq.u32 p, %2, 30; cp.async.ca.shared.global [%0], [%1], 16, p; }" ::
            "r"(at),
        "l"(in), "r"(lane));
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group %0;" ::"n"(0) : "memory");
  asm volatile("bar.sync 0;");
  float a, b, c, d;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
               : "r"(at));
  float e;
  asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1 + 4];" : "=f"(e) : "l"(in));
  asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(out + 4 * lane), "f"(a + b), "f"(c)
               : "memory");
  asm volatile("st.global.f32 [%0+8], %1;" ::"l"(out + 4 * lane), "f"(d + e) : "memory");
  asm volatile("red.global.add.u32 [%0], %1;" ::"l"(counts), "r"(lane) : "memory");
  U old;
  asm volatile("atom.global.max.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(counts + 1), "r"(lane)
               : "memory");
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(counts + 2), "r"(lane), "r"(lane + 1)
               : "memory");
  asm volatile("red.relaxed.gpu.global.add.noftz.f16x2 [%0], %1;" ::"l"(counts + 3),
               "r"(0x3C004000u)
               : "memory");
  U waited;
  do
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(waited) : "l"(counts + 2) : "memory");
  while (waited < 32);
}

__global__ void warp_kernel(U* out) {
  U lane, mask;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %lanemask_lt;" : "=r"(mask));
  U* mine = out + 16 * threadIdx.x;
  mine[0] = lane;
  mine[1] = mask;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(mine[2]) : "r"(lane));
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 4, 0x1f, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(mine[3]), "=r"(mine[4])
               : "r"(lane));
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 2, 0x1800, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(mine[5]), "=r"(mine[6])
               : "r"(lane));
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1; }"
               : "=r"(mine[7])
               : "r"(lane));
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(mine[8]) : "r"(lane));
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
               : "=r"(mine[9]));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
               : "=r"(mine[10])
               : "r"(lane * 2 | (lane * 2 + 1) << 16));
  asm volatile("bar.warp.sync 0xffffffff;");
}

__global__ void mbarrier_kernel(int* out) {
  __shared__ alignas(8) std::uint64_t barrier;
  __shared__ int value;
  const U at = address_of(&barrier);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(1));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("bar.sync 3, 64;");
  if (threadIdx.x == 40) {
    value = 5;
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.release.cta.shared::cta.b64 state, [%0]; }" ::"r"(at)
        : "memory");
  }
  asm volatile(
      "{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}\n" ::"r"(at),
      "r"(0)
      : "memory");
  out[threadIdx.x] = value;
}

// d = a b + c of one warp; a (16, 16) and b (16, 8) are loaded from shared memory by ldmatrix.
__global__ void mma_kernel(const __half* a, const __half* b, float* d) {
  __shared__ alignas(16) __half sA[16][16], sB[16][8];
  const U lane = threadIdx.x;
  for (U i = lane; i < 256; i += 32) sA[i / 16][i % 16] = a[i];
  for (U i = lane; i < 128; i += 32) sB[i / 8][i % 8] = b[i];
  __syncthreads();
  U ra[4], rb[2];
  // Without a space it takes addresses of shared memory of 32 bits as well.
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(address_of(&sA[lane % 16][lane / 16 * 8])));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(address_of(&sB[lane % 16][0])));
  float rd[4] = {1, 1, 1, 1};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+f"(rd[0]), "+f"(rd[1]), "+f"(rd[2]), "+f"(rd[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (U i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = rd[i];
}

}  // namespace

TEST_CASE("loads, stores, atomics and asynchronous copies reach the memory they name") {
  std::vector<float> in(128), out(128, -1);
  for (int i = 0; i < 128; ++i) in[static_cast<std::size_t>(i)] = static_cast<float>(i);
  U counts[4] = {};
  memory_kernel<<<1, 32>>>(in.data(), out.data(), counts);
  INFO(cudaGetErrorString(cudaGetLastError()));
  CHECK(out[0] == 1);
  CHECK(out[1] == 2);
  CHECK(out[2] == 4);
  CHECK(out[3] == -1);
  CHECK(out[120] == 0);
  CHECK(out[121] == 0);
  CHECK(out[124] == 249);
  CHECK(out[125] == 0);  // past the source's 8 bytes
  CHECK(counts[0] == 496);
  CHECK(counts[1] == 31);
  CHECK(counts[2] == 32);
  CHECK(counts[3] == 0x50005400u);
}

TEST_CASE("lanes exchange, vote, reduce and transpose") {
  std::vector<U> out(32 * 16);
  warp_kernel<<<1, 32>>>(out.data());
  REQUIRE(cudaGetLastError() == cudaSuccess);
  for (U lane = 0; lane < 32; ++lane) {
    const U* mine = out.data() + 16 * lane;
    CHECK(mine[0] == lane);
    CHECK(mine[1] == (1u << lane) - 1);
    CHECK(mine[2] == (lane ^ 1));
    CHECK(mine[3] == (lane < 28 ? lane + 4 : lane));
    CHECK(mine[4] == (lane < 28));
    CHECK(mine[5] == (lane % 8 >= 2 ? lane - 2 : lane));
    CHECK(mine[6] == (lane % 8 >= 2));
    CHECK(mine[7] == 31);
    CHECK(mine[8] == 496);
    CHECK(mine[9] == (lane == 0));
    // Element (r, c) of the matrix is 8 r + c.
    const U row = lane / 4, column = lane % 4 * 2;
    const U low = 8 * column + row, high = low + 8;
    CHECK(mine[10] == (low | (high << 16)));
  }
}

TEST_CASE("threads wait at an mbarrier until another arrives") {
  std::vector<int> out(64);
  mbarrier_kernel<<<1, 64>>>(out.data());
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(out == std::vector<int>(64, 5));
}

TEST_CASE("ldmatrix and mma.sync multiply matrices") {
  std::vector<__half> a(256), b(128);
  for (int i = 0; i < 256; ++i)
    a[static_cast<std::size_t>(i)] = __float2half(static_cast<float>(i * 7 % 13 - 6));
  for (int i = 0; i < 128; ++i)
    b[static_cast<std::size_t>(i)] = __float2half(static_cast<float>(i * 5 % 11 - 5));
  std::vector<float> d(128);
  mma_kernel<<<1, 32>>>(a.data(), b.data(), d.data());
  REQUIRE(cudaGetLastError() == cudaSuccess);
  for (std::size_t m = 0; m < 16; ++m)
    for (std::size_t n = 0; n < 8; ++n) {
      float sum = 1;
      for (std::size_t k = 0; k < 16; ++k)
        sum += __half2float(a[m * 16 + k]) * __half2float(b[k * 8 + n]);
      CHECK(d[m * 8 + n] == sum);
    }
}
