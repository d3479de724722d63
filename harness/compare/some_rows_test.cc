#include "harness/compare/some_rows.h"

#include <algorithm>
#include <set>

#include "attn_diag/harness/error.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Capture causal_capture() {
  Problem p;
  p.batch = 2;
  p.heads = p.kv_heads = 3;
  p.seqlen_q = p.seqlen_k = 50;
  p.head_dim = p.head_dim_v = 8;
  p.softmax_scale = 0.35f;
  p.mask.kind = MaskKind::kCausal;
  Geometry g;
  g.tile = {16, 16};
  g.num_splits = 1;
  g.tiles_per_split = 4;
  return testing::reference_capture(p, g, 7);
}

// One cell of o made wrong.
void spoil(Capture& capture, std::int64_t batch, std::int64_t head, std::int64_t query) {
  TensorData& o = *capture.tensors[static_cast<std::size_t>(Tensor::kO)];
  store_element(o.bytes.data(), o.dtype, ((batch * 3 + head) * 50 + query) * 8 + 5, 1000);
}

SomeRows rows_of(std::vector<std::int32_t> queries) { return {0, 2, 0, 3, std::move(queries)}; }

TEST_CASE("rows here and there are judged as they are among all") {
  const Capture capture = causal_capture();
  std::vector<std::int32_t> every;
  for (std::int32_t q = 0; q < 50; ++q) every.push_back(q);
  const Comparison all = compare_with_reference(capture, {}),
                   same = compare_some_rows(capture, rows_of(every), {}, 2);
  REQUIRE(same.tensors.size() == all.tensors.size());
  for (std::size_t i = 0; i < all.tensors.size(); ++i) {
    CHECK(same.tensors[i].compared == all.tensors[i].compared);
    CHECK(same.tensors[i].max_err_over_bound == all.tensors[i].max_err_over_bound);
    CHECK(same.tensors[i].max_abs_err == all.tensors[i].max_abs_err);
  }
  CHECK(same.notes.empty());
  const Comparison some = compare_some_rows(capture, rows_of({0, 17, 49}), {}, 2);
  CHECK(some.notes.empty());  // nothing of what was asked for is left out
  CHECK(some.unjudged() > 0);
  CHECK(some.unjudged_because == "they are not of the rows that were asked for");
  CHECK(some.answer() == Answer::kAgrees);
  for (const TensorComparison& t : some.tensors)
    if (t.tensor == Tensor::kO) CHECK(t.compared == 2 * 3 * 3 * 8);
}

TEST_CASE("a wrong row is found where it is looked at, and at its place, and nowhere else") {
  Capture capture = causal_capture();
  spoil(capture, 1, 2, 17);
  const Comparison seen = compare_some_rows(capture, rows_of({3, 17, 40}), {});
  REQUIRE(seen.mismatched() == 1);
  for (const TensorComparison& t : seen.tensors)
    if (t.tensor == Tensor::kO) {
      REQUIRE(t.first.has_value());
      CHECK(t.first->index[0] == 1);
      CHECK(t.first->index[1] == 2);
      CHECK(t.first->index[2] == 17);
      CHECK(t.first->index[3] == 5);
    }
  CHECK(compare_some_rows(capture, rows_of({3, 16, 18}), {}).answer() == Answer::kAgrees);
  SomeRows others = rows_of({17});
  others.head_end = 2;
  CHECK(compare_some_rows(capture, others, {}).answer() == Answer::kAgrees);
}

TEST_CASE("rows that were not recorded are refused") {
  const Capture capture = causal_capture();
  CHECK_THROWS_AS(compare_some_rows(capture, rows_of({}), {}), Error);
  CHECK_THROWS_AS(compare_some_rows(capture, rows_of({50}), {}), Error);
  SomeRows heads = rows_of({1});
  heads.head_end = 4;
  CHECK_THROWS_WITH(compare_some_rows(capture, heads, {}), contains("head 0:3"));
}

TEST_CASE("a sample has both ends, ascends, is spread out and depends on the seed alone") {
  const std::int64_t wanted = GENERATE(1, 2, 3, 64, 1000);
  const std::int64_t extent = GENERATE(1, 2, 3, 64, 65, 131072);
  const auto sample = sampled_queries(extent, wanted, 5);
  REQUIRE(std::ssize(sample) == std::min(wanted, extent));
  CHECK(std::is_sorted(sample.begin(), sample.end()));
  CHECK(std::set<std::int32_t>(sample.begin(), sample.end()).size() == sample.size());
  CHECK(sample.front() >= 0);
  CHECK(sample.back() < extent);
  if (wanted > 1 && extent > 1) CHECK(sample.front() == 0);
  if (wanted > 1 || extent > 3) CHECK(sample.back() == std::max(extent - 1, std::int64_t{0}));
  CHECK(sample == sampled_queries(extent, wanted, 5));
  if (wanted == 64 && extent == 131072) {
    CHECK(sample != sampled_queries(extent, wanted, 6));
    for (std::size_t i = 1; i < sample.size(); ++i)
      CHECK(sample[i] - sample[i - 1] < 2 * 131072 / 60);
  }
}

}  // namespace
}  // namespace attn_diag
