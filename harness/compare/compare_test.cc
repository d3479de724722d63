#include "attn_diag/harness/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "attn_diag/harness/error.h"
#include "attn_diag/reference/reference.h"
#include "harness/compare/accumulator.h"
#include "harness/compare/cells.h"
#include "harness/compare/judgement.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// One lse cell a query: actual against expected.
TensorComparison compare_cells(const std::vector<double>& actual,
                               const std::vector<double>& expected, Tolerance tolerance) {
  Problem p;
  p.seqlen_q = static_cast<std::int32_t>(actual.size());
  Capture a = testing::empty_capture(p, {}), e = a;
  testing::put(a, Tensor::kLse, DType::kFp64, actual);
  testing::put(e, Tensor::kLse, DType::kFp64, expected);
  return compare_captures(a, e, tolerance).tensors.at(0);
}

bool passes(double actual, double expected, double atol = 0.5) {
  return compare_cells({actual}, {expected}, {false, atol, 0}).agrees();
}

// What compare_cells() should give, computed a cell at a time in the plainest way.
TensorComparison plain_comparison(const CellGrid& grid, const std::vector<double>& actual,
                                  const std::vector<double>& expected,
                                  const std::vector<double>& limit, double ulp_bits,
                                  int min_exponent) {
  TensorComparison c;
  c.tensor = grid.id;
  c.picture_shape = grid.picture_shape;
  c.picture.resize(SharedPicture(grid).tiles.size());
  std::int64_t first = -1, worst = -1, abs = -1, rel = -1;
  for (std::int64_t i = 0; i < grid.size(); ++i) {
    const double a = actual[static_cast<std::size_t>(i)], e = expected[static_cast<std::size_t>(i)],
                 l = limit[static_cast<std::size_t>(i)];
    const auto index = grid.index_of(i);
    double err = std::fabs(a - e);
    const bool equal = a == e || (std::isnan(a) && std::isnan(e));
    const bool unjudged = l == kInf && !std::isinf(e);
    if (equal || unjudged) err = 0;
    const bool ok = err == 0 || (std::isfinite(err) && err <= l);
    double ratio = err == 0 ? 0 : err / l;
    if (!ok && !(ratio >= 1)) ratio = kInf;
    c.compared += !unjudged;
    c.unjudged += unjudged;
    c.mismatched += !ok;
    c.nan_actual += std::isnan(a) && !std::isnan(e) && !unjudged;
    c.nan_both += std::isnan(a) && std::isnan(e);
    if (!ok && first < 0) {
      first = i;
      c.first = Mismatch{index, a, e, l};
    }
    if (worst < 0 || ratio > c.max_err_over_bound) {
      worst = i;
      c.max_err_over_bound = ratio;
      c.worst = Mismatch{index, a, e, l};
    }
    const double finite_err = std::isfinite(err) ? err : 0;
    if (abs < 0 || finite_err > c.max_abs_err) {
      abs = i;
      c.max_abs_err = finite_err;
      c.max_abs_index = index;
    }
    const double r = finite_err > 0 && e != 0 ? finite_err / std::fabs(e) : 0;
    if (rel < 0 || r > c.max_rel_err) {
      rel = i;
      c.max_rel_err = r;
      c.max_rel_index = index;
    }
    // Half of the digits of fp32 are left.
    if (finite_err > 0 && l <= 0x1p-12 * std::fabs(e)) {
      const int exponent = e == 0 ? min_exponent : std::max(std::ilogb(e), min_exponent);
      c.max_ulp =
          std::max(c.max_ulp, std::ldexp(finite_err, static_cast<int>(ulp_bits) - exponent));
    }
    if (std::fabs(e) > 0) {
      const double z = std::fabs(e) / l;
      c.zeros_err_over_bound = std::max(c.zeros_err_over_bound, std::isnan(z) ? kInf : z);
    }
    if (!ok) {
      if (c.wrong_rows.empty() || c.wrong_rows.back().batch != index[0] ||
          c.wrong_rows.back().head != index[1] || c.wrong_rows.back().query != index[2])
        c.wrong_rows.push_back({static_cast<std::int32_t>(index[0]),
                                static_cast<std::int32_t>(index[1]),
                                static_cast<std::int32_t>(index[2]), 0, 0});
      ++c.wrong_rows.back().mismatched;
      c.wrong_rows.back().max_err_over_bound =
          std::max(c.wrong_rows.back().max_err_over_bound, ratio);
    }
    const auto& s = grid.picture_shape;
    const std::int64_t query_tile = index[2] / grid.block_m - grid.origin[2] / grid.block_m;
    const std::int64_t at =
        (((index[0] - grid.origin[0]) * s[1] + index[1] - grid.origin[1]) * s[2] + query_tile) *
            s[3] +
        i % grid.row_cells / grid.run_cells;
    TileError& tile = c.picture[static_cast<std::size_t>(at)];
    ++tile.compared;
    tile.mismatched += !ok;
    tile.max_err_over_bound = std::max(tile.max_err_over_bound, ratio);
  }
  return c;
}

void check_same_mismatch(const std::optional<Mismatch>& a, const std::optional<Mismatch>& b) {
  REQUIRE(a.has_value() == b.has_value());
  if (!a) return;
  CHECK(a->index == b->index);
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  CHECK(same(a->actual, b->actual));
  CHECK(same(a->expected, b->expected));
  CHECK(same(a->limit, b->limit));
}

void check_same(const TensorComparison& a, const TensorComparison& b) {
  CHECK(a.compared == b.compared);
  CHECK(a.unjudged == b.unjudged);
  CHECK(a.mismatched == b.mismatched);
  CHECK(a.nan_actual == b.nan_actual);
  CHECK(a.nan_both == b.nan_both);
  CHECK(a.max_abs_err == b.max_abs_err);
  CHECK(a.max_rel_err == b.max_rel_err);
  CHECK(a.max_err_over_bound == b.max_err_over_bound);
  CHECK(a.max_ulp == b.max_ulp);
  CHECK(a.zeros_err_over_bound == b.zeros_err_over_bound);
  CHECK(a.max_abs_index == b.max_abs_index);
  CHECK(a.max_rel_index == b.max_rel_index);
  check_same_mismatch(a.first, b.first);
  check_same_mismatch(a.worst, b.worst);
  REQUIRE(a.wrong_rows.size() == b.wrong_rows.size());
  for (std::size_t i = 0; i < a.wrong_rows.size(); ++i) {
    const auto &x = a.wrong_rows[i], &y = b.wrong_rows[i];
    CHECK((x.batch == y.batch && x.head == y.head && x.query == y.query));
    CHECK(x.mismatched == y.mismatched);
    CHECK(x.max_err_over_bound == y.max_err_over_bound);
  }
  CHECK(a.picture_shape == b.picture_shape);
  REQUIRE(a.picture.size() == b.picture.size());
  int different = 0;
  for (std::size_t i = 0; i < a.picture.size(); ++i)
    different += a.picture[i].compared != b.picture[i].compared ||
                 a.picture[i].mismatched != b.picture[i].mismatched ||
                 a.picture[i].max_err_over_bound != b.picture[i].max_err_over_bound;
  CHECK(different == 0);
}

Problem small_problem() {
  Problem p;
  p.batch = 2, p.heads = 4, p.kv_heads = 2, p.seqlen_q = 37, p.seqlen_k = 29;
  p.head_dim = 8, p.head_dim_v = 5;
  p.mask.kind = MaskKind::kCausal;
  p.softmax_scale = 0.35f;
  return p;
}

Geometry small_geometry() {
  Geometry g;
  g.tile = {16, 8};
  g.num_splits = 2, g.tiles_per_split = 2;
  g.has_split_merge = true;
  return g;
}

}  // namespace

TEST_CASE("an element passes only if its error is at most the limit") {
  CHECK(passes(1.5, 1.0));
  CHECK_FALSE(passes(std::nextafter(1.5, 2), 1.0));
  CHECK(passes(1, 1, 0));
  CHECK(passes(0.0, -0.0, 0));
  CHECK_FALSE(passes(1, 2, kNaN));
}

TEST_CASE("NaN passes only where NaN is expected and is counted apart") {
  CHECK_FALSE(passes(kNaN, 1));
  CHECK_FALSE(passes(1, kNaN));
  CHECK_FALSE(passes(kNaN, kInf));
  const TensorComparison c = compare_cells({kNaN, kNaN, 1}, {kNaN, 1, 1}, {false, 1, 1});
  CHECK(c.nan_both == 1);
  CHECK(c.nan_actual == 1);
  CHECK(c.mismatched == 1);
  CHECK(c.max_err_over_bound == kInf);
}

TEST_CASE("infinities match only with their own sign and never a finite value") {
  CHECK(passes(kInf, kInf));
  CHECK(passes(-kInf, -kInf));
  CHECK_FALSE(passes(kInf, -kInf));
  CHECK_FALSE(passes(1, kInf));
  CHECK_FALSE(passes(-kInf, 1));
  CHECK_FALSE(passes(1, -kInf, kInf));
  CHECK_FALSE(passes(kInf, 1, kInf));
}

TEST_CASE("error over limit is infinite where the element cannot pass") {
  CHECK(judge_cell(1, 2, 0.5).ratio == 2);
  CHECK(judge_cell(1.75, 2, 0.5).ratio == 0.5);
  CHECK(judge_cell(kNaN, 2, 0.5).ratio == kInf);
  CHECK(judge_cell(1, -kInf, 0.5).ratio == kInf);
  CHECK(judge_cell(-kInf, -kInf, 0).ratio == 0);
  CHECK(judge_cell(2, 2, 0).ratio == 0);
  CHECK(judge_cell(kNaN, 2, kInf).ratio == 0);  // an infinite bound judges nothing
  CHECK_FALSE(judge_cell(kNaN, 2, kInf).judged);
  CHECK(judge_cell(kNaN, kInf, kInf).judged);
}

TEST_CASE("cells are judged alike one at a time and many at a time") {
  const std::vector<double> values = {0,      -0.0, 1,         -1,         std::nextafter(1, 2),
                                      1.5,    2,    0x1p-1074, -0x1p-1030, 1e300,
                                      -1e308, kInf, -kInf,     kNaN};
  const std::vector<double> limits = {0, 0x1p-1074, 0x1p-52, 0.5, 1, 1e308, kInf, kNaN};
  std::vector<double> actual, expected, limit;
  for (const double a : values)
    for (const double e : values)
      for (const double l : limits) {
        actual.push_back(a);
        expected.push_back(e);
        limit.push_back(l);
      }
  const auto n = static_cast<std::int64_t>(actual.size());
  int judged = 0;
  cells::for_each_vector(
      actual.data(), expected.data(), ArrayLimit{limit.data()}, n,
      [&](const CellErrors& many, std::int64_t first) {
        for (std::int64_t lane = 0; lane < kLanes && first + lane < n; ++lane) {
          const auto i = static_cast<std::size_t>(first + lane);
          INFO(actual[i] << " against " << expected[i] << ", limit " << limit[i]);
          const Judgement one = judge_cell(actual[i], expected[i], limit[i]);
          CHECK(one.judged == (many.unjudged[lane] == 0));
          CHECK(one.passes == (many.passes[lane] != 0));
          CHECK(one.ratio == many.ratio[lane]);
          ++judged;
        }
      });
  CHECK(judged == n);
}

TEST_CASE("a tolerance of the user's own judges every cell, one at a time and many at a time") {
  const Tolerance tolerance{false, 0.5, 1e300};
  for (const double expected : {0.0, 1.0, 1e300, kInf, kNaN})
    for (const double actual : {0.0, 1.0, 1e300, -kInf, kInf, kNaN}) {
      INFO(actual << " against " << expected);
      const TensorComparison many = compare_cells({actual}, {expected}, tolerance);
      const Judgement one = judge_cell(actual, expected, Limits(tolerance).by_tolerance(expected));
      CHECK(one.judged);
      CHECK(many.compared == 1);
      CHECK(one.passes == many.agrees());
    }
}

TEST_CASE("limit is atol plus rtol times the magnitude of the expected value") {
  CHECK(compare_cells({-103}, {-100}, {false, 1, 0.02}).agrees());
  const TensorComparison c = compare_cells({-104}, {-100}, {false, 1, 0.02});
  CHECK_FALSE(c.agrees());
  REQUIRE(c.first);
  CHECK(c.first->limit == 3.0);
  CHECK(c.max_err_over_bound == 4.0 / 3.0);
  CHECK(c.zeros_err_over_bound == 100.0 / 3.0);
  CHECK(c.max_rel_err == 0.04);
}

TEST_CASE("ULPs are counted where a rounding bound leaves half of the digits") {
  const CellGrid grid(Tensor::kLse, {1, 1, 3}, {0, 0, 0}, {});
  const auto ulps = [&](std::vector<double> limit) {
    const std::vector<double> expected{1, 0x1p-10, 2}, actual{1 + 0x1p-22, 0x1p-10 + 0x1p-22, 2};
    SharedPicture picture(grid);
    CellAccumulator cells(grid, picture, DType::kFp32);
    cells.add(0, 3, {actual.data(), DType::kFp64}, {expected.data(), DType::kFp64},
              ArrayLimit{limit.data()});
    cells.finish();
    const CellAccumulator* const all[] = {&cells};
    return merge(grid, std::move(picture), all).max_ulp;
  };
  CHECK(ulps({0x1p-13, 0x1p-23, 1}) == 2048);  // 2^-22 of 2^-10
  CHECK(ulps({0x1p-13, 0x1p-21, 1}) == 2);     // that one cancelled
  CHECK(ulps({0x1p-11, 0x1p-21, 1}) == 0);     // as did that of 1
}

TEST_CASE("ULPs are counted in the storage type of the actual tensor") {
  Problem p;
  for (const auto& [dtype, value, ulp] :
       {std::tuple{DType::kFp16, 1.0, 0x1p-10}, std::tuple{DType::kFp16, 0x1p-20, 0x1p-24},
        std::tuple{DType::kBf16, 3.0, 0x1p-6}, std::tuple{DType::kFp32, 5.0, 0x1p-21}}) {
    Capture a = testing::empty_capture(p, {}), e = a;
    testing::put(a, Tensor::kO, dtype, {value + 3 * ulp});
    testing::put(e, Tensor::kO, DType::kFp64, {value});
    CHECK(compare_captures(a, e, {false, 0, 0}).tensors.at(0).max_ulp == 3.0);
  }
}

TEST_CASE("a comparison that compared nothing does not agree") {
  CHECK_FALSE(Comparison{}.agrees());
  CHECK_FALSE(TensorComparison{}.agrees());
  const Capture nothing = testing::empty_capture(small_problem(), small_geometry());
  CHECK_FALSE(compare_captures(nothing, nothing, {false, 1, 1}).agrees());
  CHECK_FALSE(compare_with_reference(nothing, {}).agrees());
}

TEST_CASE("a cell that cannot fail is not judged, not even where it equals what is expected") {
  const Capture right = testing::reference_capture(small_problem(), small_geometry(), 3);
  Capture c = right;
  c.problem.softmax_scale = 1e9f;  // scores so large that their rounding may change any weight
  for (std::optional<TensorData>& t : c.tensors)
    if (t && t->id != Tensor::kO) t.reset();
  const Comparison comparison = compare_with_reference(c, {});
  REQUIRE(comparison.tensors.size() == 1);
  const TensorComparison& o = comparison.tensors.front();
  CHECK(o.unjudged > 0);
  CHECK(o.compared + o.unjudged == c[Tensor::kO].size());
  CHECK_THAT(comparison.notes.front(),
             contains("elements of o are not judged") && contains("scores are so large"));

  // One head of v is NaN: whatever stands in its o, the reference's NaN among it, is no evidence.
  c.problem = right.problem;
  const std::size_t half = c.v.size() / 2;
  for (std::size_t at = 0; at < half; at += size_of(c.problem.dtype))
    store_element(c.v.edit().data() + at, c.problem.dtype, 0, kNaN);
  for (const double value : {kNaN, 0.5}) {
    TensorData& data = *c.tensors[static_cast<std::size_t>(Tensor::kO)];
    for (std::int64_t i = 0; i < data.size() / 2; ++i)
      store_element(data.bytes.data(), data.dtype, i, value);
    const Comparison nan = compare_with_reference(c, {});
    CHECK(nan.answer() == Answer::kAgrees);  // in the other half
    CHECK(nan.tensors.front().mismatched == 0);
    CHECK(nan.tensors.front().compared == data.size() / 2);
    CHECK_THAT(nan.unjudged_because, contains("NaN or infinity in q, k or v"));
  }
}

TEST_CASE(
    "nothing judged is neither right nor wrong, and no verdict on o comes from other tensors") {
  CHECK(answer_of(0, 0) == Answer::kNotJudged);
  CHECK(answer_of(1, 0) == Answer::kAgrees);
  CHECK(answer_of(5, 1) == Answer::kDiverges);
  CHECK(Comparison{}.answer() == Answer::kNotJudged);
  Comparison c;
  c.tensors.resize(2);
  c.tensors[0].tensor = Tensor::kS, c.tensors[0].compared = 10;
  c.tensors[1].tensor = Tensor::kO, c.tensors[1].unjudged = 4;
  CHECK(c.answer() == Answer::kNotJudged);
  CHECK_THAT(why_not_judged(c), contains("none of the 4 elements of o"));
  c.tensors[0].mismatched = 1;
  CHECK(c.answer() == Answer::kDiverges);
  c.tensors[0].mismatched = 0, c.tensors[1].compared = 1;
  CHECK(c.answer() == Answer::kAgrees);
}

TEST_CASE("what zeros would agree with as well is no verdict, unless zeros are right") {
  Comparison c;
  c.tensors.resize(1);
  c.tensors[0].tensor = Tensor::kO, c.tensors[0].compared = 10;
  for (const auto& [zeros, answer] : {std::pair{0.11, Answer::kNotJudged},
                                      {1.0, Answer::kNotJudged},
                                      {1.5, Answer::kAgrees},
                                      {0.0, Answer::kAgrees}}) {
    c.tensors[0].zeros_err_over_bound = zeros;
    CHECK(c.answer() == answer);
  }
  c.tensors[0].zeros_err_over_bound = 0.11;
  c.tensors[0].by_bound = false;  // a tolerance that was given is meant
  CHECK(c.answer() == Answer::kAgrees);
  c.tensors[0].by_bound = true;
  CHECK_THAT(why_not_judged(c), contains("an all-zeros o would agree as well, at 0.11 of what"));
  c.tensors[0].mismatched = 1;
  CHECK(c.answer() == Answer::kDiverges);
}

TEST_CASE("a run that wrote an input, left a hole or moved diverges, whatever it compares to") {
  Capture c = testing::reference_capture(small_problem(), small_geometry(), 3);
  const Comparison right = compare_with_reference(c, {false, 1e-6, 5e-4});
  CHECK(answer_of(c, right) == Answer::kAgrees);
  Capture other = c;
  other.input_writes.push_back({});
  CHECK(answer_of(other, right) == Answer::kDiverges);
  other = c;
  other.coverage[0].never = 1;
  CHECK(answer_of(other, right) == Answer::kDiverges);
  other = c;
  other.repetition.first = Repetition::Cell{};
  CHECK(answer_of(other, right) == Answer::kDiverges);
}

TEST_CASE("vectors and several accumulators find what a plain loop finds") {
  std::mt19937 random(7);
  const auto pick = [&](int n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  const std::array<double, 8> odd = {0, -0.0, kInf, -kInf, kNaN, 1, 1e-30, 1e30};
  for (int round = 0; round < 300; ++round) {
    const auto id = static_cast<Tensor>(pick(kNumTensors));
    std::vector<std::int64_t> shape, origin;
    for (int i = 0; i < info(id).rank; ++i) {
      shape.push_back(1 + pick(i < 2 ? 2 : 40));
      origin.push_back(i < 3 ? pick(20) : 0);
    }
    const CellGrid grid(
        id, shape, origin,
        {static_cast<std::int32_t>(1 + pick(9)), static_cast<std::int32_t>(1 + pick(20))});
    const bool odd_round = round % 3 == 0;
    std::vector<double> actual, expected, limit;
    std::vector<float> stored;
    for (std::int64_t i = 0; i < grid.size(); ++i) {
      const double e = odd_round && pick(4) == 0
                           ? odd[static_cast<std::size_t>(pick(8))]
                           : std::ldexp(static_cast<double>(pick(2000) - 1000), -8);
      const bool other = odd_round && pick(8) == 0;
      stored.push_back(
          static_cast<float>(other ? odd[static_cast<std::size_t>(pick(8))]
                                   : e + std::ldexp(static_cast<double>(pick(9) - 4), -12)));
      actual.push_back(stored.back());
      expected.push_back(e);
      limit.push_back(odd_round && pick(9) == 0 ? odd[static_cast<std::size_t>(pick(8))] : 0x1p-11);
    }
    SharedPicture picture(grid);
    std::vector<CellAccumulator> parts(3, CellAccumulator(grid, picture, DType::kFp32));
    std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
    for (std::int64_t at = 0; at < grid.size();) {
      const std::int64_t n = std::min(grid.size() - at, 1 + pick(100));
      pieces.emplace_back(at, n);
      at += n;
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (const auto& [at, n] : pieces)
      parts[static_cast<std::size_t>(pick(3))].add(at, n, {stored.data() + at, DType::kFp32},
                                                   {expected.data() + at, DType::kFp64},
                                                   ArrayLimit{limit.data() + at});
    for (CellAccumulator& part : parts) part.finish();
    const std::array<const CellAccumulator*, 3> views{&parts[0], &parts[1], &parts[2]};
    check_same(merge(grid, std::move(picture), views),
               plain_comparison(grid, actual, expected, limit, 23, -126));
  }
}

TEST_CASE("16-bit tensors are compared at their exact values") {
  const Problem p = small_problem();
  Capture a = testing::empty_capture(p, small_geometry());
  const auto shape = tensor_shape(Tensor::kO, p, small_geometry());
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape[0] * shape[1] * shape[2] * shape[3]; ++i)
    values.push_back(std::ldexp(static_cast<double>(i % 255), -3));
  testing::put(a, Tensor::kO, DType::kBf16, values);
  Capture e = a;
  testing::put(e, Tensor::kO, DType::kFp16, values);
  CHECK(compare_captures(a, e, {false, 0, 0}).agrees());
  store_element(e.tensors[static_cast<std::size_t>(Tensor::kO)]->bytes.data(), DType::kFp16, 700,
                values[700] + 0.25);
  const TensorComparison c = compare_captures(a, e, {false, 0, 0}).tensors.at(0);
  CHECK(c.mismatched == 1);
  CHECK(c.max_abs_err == 0.25);
}

TEST_CASE("a capture of the reference's own values agrees with the reference, with any threads") {
  for (const bool isolated : {false, true}) {
    Capture c = testing::reference_capture(small_problem(), small_geometry(), 3);
    c.isolated = isolated;
    for (const int threads : {1, 3}) {
      const Comparison comparison = compare_with_reference(c, {false, 1e-6, 5e-4}, threads);
      CHECK(comparison.agrees());
      CHECK(comparison.tensors.size() == kNumTensors);
      for (const TensorComparison& t : comparison.tensors) CHECK(t.compared == c[t.tensor].size());
    }
  }
}

TEST_CASE("one wrong cell is found at its absolute coordinates in a region") {
  Capture c = testing::reference_capture(small_problem(), small_geometry(), 4,
                                         Region{{1, 1, 10}, {1, 2, 20}});
  TensorData& p = *c.tensors[static_cast<std::size_t>(Tensor::kP)];
  const std::int64_t at = (1 * 20 + 9) * 29 + 17;  // head 2, query 19, key 17
  store_element(p.bytes.data(), p.dtype, at, p.at(at) + 0.5);
  const Comparison all = compare_with_reference(c, {false, 1e-6, 5e-4}, 2);
  CHECK_FALSE(all.agrees());
  for (const TensorComparison& t : all.tensors) CHECK(t.agrees() == (t.tensor != Tensor::kP));
  const TensorComparison& t = all.tensors.at(static_cast<std::size_t>(Tensor::kP));
  REQUIRE(t.first);
  CHECK(t.first->index == std::array<std::int64_t, 5>{1, 2, 19, 17, 0});
  CHECK(t.first->actual == p.at(at));
  REQUIRE(t.wrong_rows.size() == 1);
  CHECK((t.wrong_rows[0].batch == 1 && t.wrong_rows[0].head == 2 && t.wrong_rows[0].query == 19));
  // Queries 10..29 lie on query tiles 0 and 1; key 17 on KV tile 2.
  CHECK(t.picture_shape == std::array<std::int64_t, 4>{1, 2, 2, 4});
  for (std::size_t i = 0; i < t.picture.size(); ++i)
    CHECK(t.picture[i].mismatched == (i == (1 * 2 + 1) * 4 + 2 ? 1 : 0));
}

TEST_CASE("captures of different problems, regions or tensors are refused by name") {
  const Capture a = testing::reference_capture(small_problem(), small_geometry(), 3);
  Capture b = a;
  b.problem.mask = {};
  CHECK_THROWS_WITH(compare_captures(a, b, {false, 0, 0}),
                    contains("mask causal:top_left and none"));
  b = a;
  b.tensors[static_cast<std::size_t>(Tensor::kPartialO)].reset();
  CHECK_THROWS_WITH(compare_captures(a, b, {false, 0, 0}), contains("/stages/pv/partial_o"));
  CHECK_THROWS_WITH(compare_captures(b, a, {false, 0, 0}), contains("/stages/pv/partial_o"));
  b = a;
  b.geometry.frame = Frame::kTile;
  CHECK_THROWS_WITH(compare_captures(a, b, {false, 0, 0}), contains("frame running and tile"));
  b = a;
  b.region.extent[2] = 5;
  CHECK_THROWS_WITH(compare_captures(a, b, {false, 0, 0}), contains("different regions"));
  b = a;
  b.tensors[0]->bytes.pop_back();
  CHECK_THROWS_WITH(compare_captures(a, b, {false, 0, 0}), contains("Tensor S"));
}

}  // namespace attn_diag
