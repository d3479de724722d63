#include "harness/diagnose/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/diagnose/fit.h"
#include "harness/diagnose/residual.h"
#include "harness/diagnose/sample.h"
#include "harness/diagnose/testing/buggy_capture.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::matching {
namespace {

using testing::BuggyCase;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One wrong row of o, three cells: 1 where it should be 0, 5 where it should be 5, 2 likewise.
struct OneRow {
  Capture capture;
  Evidence evidence;
  Rows rows;
  reference::Prediction predicted;

  static Capture row_of_three() {
    BuggyCase c = testing::buggy_case();
    c.problem.batch = c.problem.heads = c.problem.kv_heads = 1;
    c.problem.seqlen_q = c.problem.seqlen_k = 1;
    c.problem.head_dim_v = 3;
    c.geometry = Geometry{};
    return testing::buggy_capture(c, {});
  }
  OneRow() : capture(row_of_three()), evidence(capture, {Tensor::kO}) {
    constexpr auto o = static_cast<std::size_t>(Tensor::kO);
    rows.flat = {0};
    rows.row = {{0, 0, 0}};
    rows.wrong = {1};
    rows.actual[o] = {1, 5, 2};
    rows.right[Tensor::kO] = {{0, 5, 2}, {0.1, 0.1, 0.1}, {1, 1, 1}, {0, 0, 0}};
    predicted[Tensor::kO] = {{1.05, 5, 2}, {0.1, 0.1, 0.1}, {1, 1, 1}, {0, 0, 0}};
  }
  reference::Prediction::Values& o() { return predicted[Tensor::kO]; }
  RowFit judge() const { return judge_row(evidence, rows, 0, predicted, 0); }
};

}  // namespace

TEST_CASE("a row within a bound that excludes the right value tells") {
  OneRow r;
  CHECK(r.judge().within);
  CHECK(r.judge().telling);
  CHECK(std::fabs(r.judge().worst - 0.5) < 1e-9);
  r.o().value[1] = 5.2;
  CHECK_FALSE(r.judge().within);
  CHECK(std::fabs(r.judge().worst - 2) < 1e-9);
}

TEST_CASE("a bound so wide that the right value is within it tells nothing") {
  OneRow r;
  r.o().bound[0] = 1.5;
  CHECK(r.judge().within);
  CHECK_FALSE(r.judge().telling);
}

TEST_CASE("NaN accounts for NaN alone") {
  OneRow r;
  r.o().value[0] = kNaN;
  CHECK(r.judge().worst == kInfinity);
  r.rows.actual[static_cast<std::size_t>(Tensor::kO)][0] = kNaN;
  CHECK(r.judge().within);
  CHECK(r.judge().telling);
  r.o().value[0] = 1;
  CHECK_FALSE(r.judge().within);
}

TEST_CASE("unknown cells are not judged, and tell by their place where they are the wrong ones") {
  OneRow r;
  r.o().known[0] = 0;
  r.o().value[0] = 77;
  RowFit fit = r.judge();
  CHECK(fit.within);
  CHECK(fit.by_place);
  CHECK(fit.telling);
  CHECK(fit.unknown_wrong == 1);
  r.o().known = {1, 0, 0};
  r.o().value[0] = 1;
  fit = r.judge();
  CHECK_FALSE(fit.by_place);
  CHECK(fit.telling);
  CHECK(fit.unknown_right == 2);
}

TEST_CASE("where memory began as NaN, a cell that should be left alone is still NaN") {
  OneRow r;
  double& actual = r.rows.actual[static_cast<std::size_t>(Tensor::kO)][0];
  r.o().known[0] = 0;
  r.o().unwritten[0] = 1;
  CHECK(r.judge().within);
  std::vector<std::uint8_t>& written = r.rows.written[static_cast<std::size_t>(Tensor::kO)];
  written = {1, 1, 1};
  CHECK(r.judge().worst == kInfinity);
  actual = kNaN;
  CHECK(r.judge().within);
  written[0] = 0;
  CHECK(r.judge().within);
}

TEST_CASE("a cell of o that nobody wrote is no NaN that was computed") {
  OneRow r;
  r.o().value[0] = kNaN;
  r.rows.actual[static_cast<std::size_t>(Tensor::kO)][0] = kNaN;
  r.rows.written[static_cast<std::size_t>(Tensor::kO)] = {1, 1, 1};
  CHECK(r.judge().within);
  r.rows.written[static_cast<std::size_t>(Tensor::kO)][0] = 0;
  CHECK_FALSE(r.judge().within);
}

TEST_CASE("an infinite bound judges nothing") {
  OneRow r;
  r.o().bound.assign(3, kInfinity);
  r.o().value = {9, 9, 9};
  CHECK(r.judge().judged == 0);
  CHECK_FALSE(r.judge().telling);
}

TEST_CASE("a bound beyond any number judges nothing") {
  OneRow r;
  r.o().bound.assign(3, 1e30);
  const RowFit fit = r.judge();
  CHECK(fit.within);
  CHECK(fit.judged == 0);
  CHECK(fit.unbounded == 3);
  CHECK_FALSE(fit.telling);
  Tally tally;
  tally.add(fit, true);
  CHECK(judged_share(tally) == 0);
}

TEST_CASE("NaN where the right value has no bound either is not wrong, and tells nothing") {
  OneRow r;
  r.o().value = {kNaN, kNaN, kNaN};
  r.rows.actual[static_cast<std::size_t>(Tensor::kO)] = {kNaN, kNaN, kNaN};
  CHECK(r.judge().telling);
  r.rows.right[Tensor::kO].bound.assign(3, kInfinity);
  CHECK_FALSE(r.judge().telling);
}

TEST_CASE("NaN, infinity and 0 tell only beside numbers that are as predicted") {
  for (const double special : {kNaN, kInfinity, 0.0}) {
    OneRow r;
    r.rows.right[Tensor::kO].value = {1, 1, 1};
    r.o().value = {special, special, special};
    r.rows.actual[static_cast<std::size_t>(Tensor::kO)] = {special, special, special};
    const RowFit all = r.judge();
    CHECK(all.within);
    CHECK(all.by_pattern);
    Tally everywhere;
    for (int i = 0; i < 100; ++i) everywhere.add(all, true);
    CHECK(telling_rows(everywhere) == 0);
    CHECK_FALSE(inside(everywhere));
    // 100 more rows are right, and predicted so.
    Tally in_places = everywhere;
    r.rows.wrong = {0};
    r.rows.actual[static_cast<std::size_t>(Tensor::kO)] = {1, 1, 1};
    r.o().value = {1, 1, 1};
    for (int i = 0; i < 100; ++i) in_places.add(r.judge(), false);
    CHECK(telling_rows(in_places) == 100);
    CHECK(inside(in_places));
    CHECK_FALSE(tells_by_value(in_places));
  }
}

TEST_CASE("a fitted number needs more rows and numbers than it has freedom") {
  OneRow r;
  Tally tally;
  tally.add(r.judge(), true);
  CHECK(tally.numbers.size() == 1);
  CHECK_FALSE(outweighs_its_freedom(tally, false));
  // Two numbers that every row repeats are one piece of evidence.
  for (int i = 0; i < 50; ++i) tally.add(r.judge(), true);
  CHECK_FALSE(outweighs_its_freedom(tally, true));
  for (const double x : {2.0, 3.0, 4.0}) {
    r.rows.actual[static_cast<std::size_t>(Tensor::kO)][0] = r.o().value[0] = x;
    tally.add(r.judge(), true);
  }
  CHECK(outweighs_its_freedom(tally, false));
  CHECK(outweighs_its_freedom(tally, true));
}

TEST_CASE("one row of every 200 may be twice its bound off, and no more") {
  Tally tally;
  RowFit good, near, bad;
  good.within = good.telling = true;
  good.judged = near.judged = bad.judged = 4;
  near.worst = 1.9;
  bad.worst = 2.1;
  for (int i = 0; i < 399; ++i) tally.add(good, i < 10);
  CHECK(inside(tally));
  Tally with_near = tally, with_bad = tally;
  with_near.add(near, true);
  CHECK(inside(with_near));
  with_bad.add(bad, true);
  CHECK_FALSE(inside(with_bad));
  with_near.add(near, true);
  with_near.add(near, true);
  with_near.add(near, true);
  CHECK_FALSE(inside(with_near));
}

TEST_CASE("what judges nothing, or whose unknown cells are right, accounts for nothing") {
  Tally tally;
  RowFit by_place;
  by_place.within = by_place.telling = by_place.by_place = true;
  by_place.unknown_wrong = 10;
  tally.add(by_place, true);
  CHECK_FALSE(inside(tally));
  RowFit right;
  right.within = true;
  right.judged = 10;
  tally.add(right, false);
  CHECK(inside(tally));
  right.unknown_right = 2;
  tally.add(right, false);
  CHECK_FALSE(inside(tally));
}

TEST_CASE("which cells are wrong tells nothing where few are right") {
  Tally tally;
  RowFit by_place, right;
  by_place.within = by_place.telling = by_place.by_place = true;
  by_place.unknown_wrong = 1;
  by_place.judged = 1;
  right.judged = 4;
  right.within = true;
  tally.add(by_place, true);
  tally.add(right, false);
  CHECK_FALSE(outweighs_its_freedom(tally, false));
  tally.add(right, false);
  CHECK(outweighs_its_freedom(tally, false));
}

TEST_CASE("rows that tell by their place say nothing for those whose bounds are wide") {
  Tally tally;
  RowFit by_place, wide;
  by_place.within = by_place.telling = by_place.by_place = true;
  by_place.unknown_wrong = 1;
  by_place.judged = wide.judged = 4;
  wide.within = true;
  tally.add(by_place, true);
  CHECK(inside(tally));
  tally.add(wide, true);
  CHECK_FALSE(inside(tally));
}

TEST_CASE("rows are spread, without repetition, and any first part holds wrong and right ones") {
  const Capture capture = testing::buggy_capture(testing::buggy_case(), {});
  Evidence evidence(capture, {Tensor::kO});
  for (std::int64_t row = 100; row < 300; ++row) evidence.mark_wrong(row);
  std::vector<std::int64_t> rows = choose_rows(evidence);
  REQUIRE(rows.size() == static_cast<std::size_t>(kSampleWrong + kSampleRight));
  const auto wrong = [&](std::int64_t row) { return evidence.wrong(row); };
  CHECK(std::count_if(rows.begin(), rows.end(), wrong) == kSampleWrong);
  CHECK(std::count_if(rows.begin(), rows.begin() + 16, wrong) == 12);
  CHECK(rows == choose_rows(evidence));
  std::sort(rows.begin(), rows.end());
  CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
}

TEST_CASE("a residual is described: a factor, moved rows, swapped columns, zeros") {
  const BuggyCase c = testing::buggy_case();
  const Capture right = testing::buggy_capture(c, {});
  const auto describe = [&](auto change) {
    Capture capture = right;
    TensorData& o = *capture.tensors[static_cast<std::size_t>(Tensor::kO)];
    for (std::int64_t i = 0; i < o.size(); ++i)
      store_element(o.bytes.data(), o.dtype, i, change(right[Tensor::kO], i));
    Evidence evidence(capture, {Tensor::kO});
    evidence.mark_wrong(compare_with_reference(capture, {}));
    std::string text;
    for (const std::string& sentence : residual_structure(evidence, testing::data_of(c), {}, 1))
      text += sentence + "; ";
    return text;
  };
  CHECK_THAT(describe([](const TensorData& o, std::int64_t i) { return 0.75 * o.at(i); }),
             contains("every row is 0.75 times the right one"));
  CHECK_THAT(describe([](const TensorData& o, std::int64_t i) { return o.at(i ^ 2); }),
             contains("columns d and d xor 2 swapped"));
  CHECK_THAT(describe([](const TensorData& o, std::int64_t i) { return o.at(i ^ (8 * 16)); }),
             contains("the right row of another place (query"));
  CHECK_THAT(
      describe([](const TensorData& o, std::int64_t i) { return i / 16 % 5 == 0 ? 0.0 : o.at(i); }),
      contains("wrong rows are zero"));
}

}  // namespace attn_diag::matching
