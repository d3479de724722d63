#include "harness/testing/catch_for_tests.h"
#include "harness/timing/bench.h"

namespace attn_diag {
namespace {

using Catch::Matchers::WithinRel;

Problem square(int seqlen, MaskKind mask) {
  Problem p;
  p.heads = p.kv_heads = 8;
  p.seqlen_q = p.seqlen_k = seqlen;
  p.head_dim = p.head_dim_v = 64;
  p.mask.kind = mask;
  return p;
}

TEST_CASE("the work of attention counts what the mask lets through") {
  CHECK(work_of(square(512, MaskKind::kNone)).flops == 4.0 * 8 * 512 * 512 * 64);
  CHECK(work_of(square(512, MaskKind::kCausal)).flops == 4.0 * 8 * (512 * 513 / 2) * 64);
  Problem p = square(4, MaskKind::kWindow);
  p.heads = p.kv_heads = 1;
  p.mask.window_left = 1;  // queries see 1, 2, 2, 2 keys
  CHECK(work_of(p).flops == 4.0 * 7 * 64);
}

TEST_CASE("keys that no query may see are not work") {
  Problem p = square(4, MaskKind::kCausal);
  p.heads = p.kv_heads = 1;
  p.seqlen_k = 2;  // top_left: 1, 2, 2, 2 keys; bottom_right: 0, 0, 1, 2
  CHECK(work_of(p).flops == 4.0 * 7 * 64);
  p.mask.alignment = CausalAlignment::kBottomRight;
  CHECK(work_of(p).flops == 4.0 * 3 * 64);
}

TEST_CASE("grouped heads read each key and value head once") {
  Problem p = square(128, MaskKind::kNone);
  p.kv_heads = 2;
  p.head_dim_v = 32;
  CHECK(work_of(p).bytes == 8 * 128 * (64 + 32) * 2 + 2 * 128 * (64 + 32) * 2 + 8 * 128 * 4);
}

TEST_CASE("the floors are bytes over copy bandwidth and flops over the nominal peak") {
  DevicePeaks peaks;
  peaks.compute_major = 9;
  peaks.sm_count = 100;
  peaks.clock_hz = 1e9;  // 4096 * 100 * 1e9 = 409.6 TFLOP/s
  peaks.copy_bytes_per_second = 4e12;
  const Problem p = square(2048, MaskKind::kNone);
  const Floors floors = floors_of(p, peaks);
  CHECK_THAT(floors.bytes_seconds,
             WithinRel((4.0 * 8 * 2048 * 64 * 2 + 8 * 2048 * 4) / 4e12, 1e-9));
  REQUIRE(floors.flops_seconds.has_value());
  CHECK_THAT(*floors.flops_seconds, WithinRel(4.0 * 8 * 2048 * 2048 * 64 / 409.6e12, 1e-9));
  CHECK(floors.larger() == *floors.flops_seconds);
}

TEST_CASE("an architecture this program does not know has no floor of flops") {
  DevicePeaks peaks;
  peaks.compute_major = 12;
  peaks.sm_count = 1;
  peaks.clock_hz = 1e9;
  peaks.copy_bytes_per_second = 1e12;
  const Floors floors = floors_of(square(128, MaskKind::kNone), peaks);
  CHECK_FALSE(floors.flops_seconds.has_value());
  CHECK(floors.larger() == floors.bytes_seconds);
}

TEST_CASE("fp32 is held against the SMs' own units, not against the tensor cores") {
  DevicePeaks peaks;
  peaks.compute_major = 8;
  CHECK(flops_per_sm_per_clock(peaks, DType::kFp16) == 2048.0);
  CHECK(flops_per_sm_per_clock(peaks, DType::kBf16) == 2048.0);
  CHECK(flops_per_sm_per_clock(peaks, DType::kFp32) == 128.0);
}

TEST_CASE("samples are summed up by median, least and quartiles") {
  const Timing odd = summarise_samples({5, 1, 3, 2, 4});
  CHECK(odd.samples == 5);
  CHECK(odd.min == 1);
  CHECK(odd.lower_quartile == 2);
  CHECK(odd.median == 3);
  CHECK(odd.upper_quartile == 4);
  CHECK(summarise_samples({1, 2}).median == 1.5);
  CHECK(summarise_samples({7}).upper_quartile == 7);
  CHECK_THROWS(summarise_samples({}));
}

TEST_CASE("every row is compared up to the limit, beyond it the first, middle and last rows") {
  const Problem p = square(8192, MaskKind::kNone);
  const auto all = compared_queries(p, 1e12);
  REQUIRE(all.size() == 1);
  CHECK(all[0].begin == 0);
  CHECK(all[0].end == 8192);
  const auto sample = compared_queries(p, 1e9);
  REQUIRE(sample.size() == 3);
  CHECK(sample[0].begin == 0);
  CHECK(sample[1].begin < 4096);
  CHECK(sample[1].end > 4096);
  CHECK(sample[2].end == 8192);
}

TEST_CASE("a problem with few queries is compared whole, however many keys it has") {
  Problem p = square(1, MaskKind::kNone);
  p.seqlen_k = 1 << 24;
  REQUIRE(compared_queries(p, 1).size() == 1);
  CHECK(compared_queries(p, 1)[0].end == 1);
}

}  // namespace
}  // namespace attn_diag
