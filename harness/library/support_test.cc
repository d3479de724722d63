#include "harness/library/support.h"

#include <cmath>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

// What the command makes of a kernel when nothing is asked for.
Problem default_problem() {
  Problem p;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 128;
  p.head_dim = p.head_dim_v = 64;
  p.softmax_scale = 0.125f;
  return p;
}

Support support() {
  Support s;
  s.dtypes = 1u << static_cast<unsigned>(DType::kFp16);
  s.layouts = 1u << static_cast<unsigned>(Layout::kBHSD);
  s.masks = kTakesNoMask;
  return s;
}

}  // namespace

TEST_CASE("what is taken is not refused") {
  CHECK(why_not_supported(support(), default_problem()).empty());
}

TEST_CASE("all that is not taken is said at once, with the flags of the nearest problem that is") {
  Support s = support();
  s.dtypes = 1u << static_cast<unsigned>(DType::kFp32);
  s.layouts = 1u << static_cast<unsigned>(Layout::kBSHD);
  const std::string both = why_not_supported(s, default_problem());
  CHECK_THAT(both, contains("dtype fp16, layout BHSD are not among what it declares: dtype fp32;"));
  CHECK_THAT(both, contains("It takes the problem with --dtype fp32 --layout BSHD."));
  s.layouts = support().layouts;
  CHECK_THAT(why_not_supported(s, default_problem()),
             contains("dtype fp16 is not among") && contains("with --dtype fp32."));
}

TEST_CASE("the nearest of several sizes is named") {
  Support s = support();
  const std::int32_t head_dims[] = {32, 80, 128};
  s.head_dims = head_dims;
  s.num_head_dims = 3;
  CHECK_THAT(why_not_supported(s, default_problem()), contains("with --head-dim 80."));
  s.num_head_dims = 0;
  s.max_head_dim = 48;
  CHECK_THAT(why_not_supported(s, default_problem()), contains("with --head-dim 48."));
  s = support();
  Problem p = default_problem();
  p.seqlen_q = p.seqlen_k = 100;
  s.seqlen_q_multiple_of = s.seqlen_k_multiple_of = 64;
  CHECK_THAT(why_not_supported(s, p),
             contains("seqlen_q 100, seqlen_k 100 are not") && contains("with --seqlen 128."));
  s.max_seqlen_k = 64;
  CHECK_THAT(why_not_supported(s, p), contains("with --seqlen 64."));
  s = support();
  p.seqlen_k = 130;
  CHECK_THAT(why_not_supported(s, p), contains("with --seqlen-k 100."));
  s.other_seqlen_k = true;
  s.seqlen_q_multiple_of = 16;
  CHECK_THAT(why_not_supported(s, p), contains("with --seqlen-q 112."));
  p = default_problem();
  p.kv_heads = 1;
  CHECK_THAT(why_not_supported(support(), p), contains("with --kv-heads 2."));
}

TEST_CASE("a head_dim_v of its own is said to be one of those that are declared") {
  Support s = support();
  s.other_head_dim_v = true;
  Problem p = default_problem();
  p.head_dim_v = 2 * p.head_dim;
  CHECK(why_not_supported(s, p).empty());
  s.max_head_dim = p.head_dim;
  CHECK_THAT(why_not_supported(s, p), contains("head_dim_v of these, too"));
}

TEST_CASE("what was left open is chosen, and nothing else is touched") {
  Support s = support();
  s.dtypes = 1u << static_cast<unsigned>(DType::kBf16);
  const std::int32_t head_dims[] = {32, 128};
  s.head_dims = head_dims;
  s.num_head_dims = 2;
  s.masks = kTakesCausalSquare;
  Problem p = default_problem();
  CHECK(choose_open(s, {}, p).empty());
  CHECK(p.dtype == DType::kFp16);
  CHECK(choose_open(s, {.dtype = true}, p) == std::vector<std::string>{"--dtype bf16"});
  CHECK(p.dtype == DType::kBf16);
  CHECK(p.head_dim == 64);
  CHECK(choose_open(s, {true, true, true, true}, p) ==
        std::vector<std::string>{"--head-dim 32", "--mask causal"});
  CHECK(p.head_dim == 32);
  CHECK(p.head_dim_v == 32);
  CHECK(p.mask.kind == MaskKind::kCausal);
  CHECK(choose_open(s, {true, true, true, true}, p).empty());
  s.masks = kTakesWindow;
  CHECK(choose_open(s, {.mask = true}, p) == std::vector<std::string>{"--mask window:16,0"});
  CHECK(p.mask.window_left == 16);
  s.masks = 0;  // none of them
  p.mask = {};
  CHECK(choose_open(s, {.mask = true}, p).empty());
  CHECK(p.mask.kind == MaskKind::kNone);
}

TEST_CASE("masks are those that it takes of these lengths") {
  Support s = support();
  s.masks = kTakesCausalBottomRight;
  s.other_seqlen_k = true;
  CHECK_THAT(why_not_supported(s, default_problem()), contains("with --mask causal."));
  Problem p = default_problem();
  p.seqlen_q = 16;
  CHECK_THAT(why_not_supported(s, p), contains("with --mask causal:bottom_right."));
  s.masks = kTakesWindow;
  CHECK_THAT(why_not_supported(s, p), contains("with --mask window:16,0."));
}

TEST_CASE("multiples of nothing are no declaration") {
  Support s = support();
  s.seqlen_k_multiple_of = 0;
  CHECK_THAT(why_not_supported(s, default_problem()),
             contains("seqlen_k_multiple_of = 0: they are at least 1."));
}

TEST_CASE("where no flag helps none is named") {
  Problem p = default_problem();
  p.softmax_scale = 1;
  Support s = support();
  s.any_scale = false;
  const std::string why = why_not_supported(s, p);
  CHECK_THAT(why, contains("softmax_scale 1 is not among"));
  CHECK_THAT(why, !contains("It takes the problem"));
}

}  // namespace attn_diag
