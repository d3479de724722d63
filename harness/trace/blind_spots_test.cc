#include "harness/trace/blind_spots.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

// Sees everything: a tail, two tiles in a split, two splits, a mask, grouped heads, two batches.
struct Case {
  Problem problem;
  Geometry geometry;
  Case() {
    problem.batch = 2;
    problem.heads = 4;
    problem.kv_heads = 2;
    problem.seqlen_q = problem.seqlen_k = 250;
    problem.mask.kind = MaskKind::kCausal;
    geometry.num_splits = 2;
    geometry.tiles_per_split = 2;
    geometry.has_split_merge = true;
  }
};

bool mentions(const Case& c, const std::string& text) {
  return describe_blind_spots(c.problem, c.geometry).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a problem that reaches every part of a kernel has no blind spots") {
  const Case c;
  CHECK(blind_spots(c.problem, c.geometry).empty());
  CHECK(describe_blind_spots(c.problem, c.geometry).empty());
}

TEST_CASE("each part of a kernel that the sizes leave untouched is named") {
  Case c;
  c.problem.seqlen_k = 64;
  CHECK(mentions(c, "the rescale between KV tiles"));
  c = Case();
  c.geometry.num_splits = 4;
  c.geometry.tiles_per_split = 1;
  CHECK(mentions(c, "every split holds one KV tile; take --num-splits 2"));
  c = Case();
  c.geometry.num_splits = 1;
  c.geometry.tiles_per_split = 4;
  CHECK(mentions(c, "the merge of splits"));
  c.geometry.has_split_merge = false;
  CHECK_FALSE(mentions(c, "splits"));
  c = Case();
  c.problem.seqlen_q = c.problem.seqlen_k = 256;
  CHECK(mentions(c, "tails"));
  c.problem.seqlen_q = 255;
  CHECK_FALSE(mentions(c, "tails"));
  c = Case();
  c.problem.mask.kind = MaskKind::kNone;
  CHECK(mentions(c, "masks"));
  c = Case();
  c.problem.kv_heads = 4;
  CHECK(mentions(c, "grouped heads"));
  c = Case();
  c.problem.batch = 1;
  CHECK(mentions(c, "more than one batch"));
}

}  // namespace attn_diag
