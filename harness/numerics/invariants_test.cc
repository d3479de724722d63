#include <array>
#include <cmath>
#include <random>

#include "attn_diag/harness/numerics.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"
#include "reference/testing/random_case.h"
#include "reference/testing/simulate.h"

namespace attn_diag {
namespace {

using reference::testing::Mistake;
using Verdict = InvariantResult::Verdict;

// A kernel on paper, recorded.
Capture simulated(const reference::testing::Case& c, const reference::testing::Declared& declared,
                  Mistake mistake) {
  Capture capture = testing::empty_capture(c.problem, c.geometry);
  capture.q = c.q;
  capture.k = c.k;
  capture.v = c.v;
  capture.arithmetic = declared.arithmetic;
  const auto values =
      reference::testing::simulate(c, declared.arithmetic, declared.style, nullptr, mistake);
  for (const TensorInfo& t : kTensors)
    if (!values[static_cast<std::size_t>(t.id)].empty())
      testing::put(capture, t.id, t.id == Tensor::kO ? declared.arithmetic.output : DType::kFp32,
                   values[static_cast<std::size_t>(t.id)]);
  return capture;
}

std::string said(const std::vector<InvariantResult>& results) {
  std::string all;
  for (const std::string& sentence : broken_invariants(results)) all += sentence + '\n';
  return all;
}

const InvariantResult& of(const std::vector<InvariantResult>& results, Invariant i) {
  return results[static_cast<std::size_t>(i)];
}

TEST_CASE("no invariant is broken by rounding, in any declared arithmetic") {
  std::mt19937_64 random(21);
  std::array<std::int64_t, kNumInvariants> tried{};
  for (int i = 0; i < 600; ++i) {
    const auto c = reference::testing::random_case(random, 40, false);
    const auto declared = reference::testing::random_declared(random);
    INFO(c.describe() << ' ' << declared.style.describe());
    const auto results = check_invariants(simulated(c, declared, Mistake::kNone));
    INFO(said(results));
    REQUIRE(results.size() == 9);
    for (const InvariantResult& r : results) {
      REQUIRE((r.verdict == Verdict::kHolds || r.verdict == Verdict::kNotTried));
      tried[static_cast<std::size_t>(r.invariant)] += r.verdict == Verdict::kHolds;
    }
  }
  for (std::size_t i = 0; i < 9; ++i) {
    INFO(info(static_cast<Invariant>(i)).name);
    REQUIRE(tried[i] > (i == static_cast<std::size_t>(Invariant::kEmptyRows) ? 30 : 200));
  }
}

// How often some invariant is broken, and how many are said to be at once.
void count_broken(Mistake mistake, int& cases, int& found, int& roots) {
  std::mt19937_64 random(22);
  for (int i = 0; i < 120; ++i) {
    auto c = reference::testing::random_case(random, 60, false);
    c.problem.mask.kind = MaskKind::kCausal;
    c.problem.seqlen_k = c.problem.seqlen_q;
    c.input_scale = 1;
    reference::testing::fill_inputs(random, c);
    auto declared = reference::testing::random_declared(random);
    declared.arithmetic.accumulate = DType::kFp32;
    c.geometry.tiles_per_split = num_kv_tiles(c.problem, c.geometry);
    c.geometry.num_splits = 1;
    c.geometry.has_split_merge = false;
    if (num_kv_tiles(c.problem, c.geometry) < 2) continue;
    ++cases;
    const auto broken = broken_invariants(check_invariants(simulated(c, declared, mistake)));
    found += !broken.empty();
    roots = std::max(roots, static_cast<int>(broken.size()));
  }
}

TEST_CASE("mistakes break invariants, and few at once") {
  for (const Mistake mistake : {Mistake::kAccumulatorNotRescaled, Mistake::kSumCountedTwice,
                                Mistake::kSumNotRescaled, Mistake::kCausalOffByOne}) {
    int cases = 0, found = 0, roots = 0;
    count_broken(mistake, cases, found, roots);
    INFO(static_cast<int>(mistake) << ": " << found << " of " << cases << ", at once " << roots);
    REQUIRE(cases > 50);
    // A sum that is too large by less than the number of keys leaves o within the range of v: only now and then
    // does it show without a run on other values.
    CHECK(found > (mistake == Mistake::kCausalOffByOne   ? cases - 1
                   : mistake == Mistake::kSumNotRescaled ? 0
                                                         : cases / 3));
    CHECK(roots <= 2);
  }
}

// Two queries that see one key and two: S = ((0, -inf), (0, 0)), v = (1, 3).
struct ByHand {
  Capture capture;
  std::vector<double> s{0, -HUGE_VAL, 0, 0}, m{0, 0}, p{1, 0, 1, 1}, l{1, 2}, part{1, 4}, o{1, 2},
      lse{0, std::log(2.0)};

  ByHand() {
    Problem problem;
    problem.seqlen_q = problem.seqlen_k = 2;
    problem.dtype = DType::kFp32;
    problem.mask.kind = MaskKind::kCausal;
    Geometry geometry;
    geometry.tile = {2, 2};
    capture = testing::empty_capture(problem, geometry);
    capture.arithmetic.output = DType::kFp32;
    store_element(capture.v.edit().data(), DType::kFp32, 0, 1);
    store_element(capture.v.edit().data(), DType::kFp32, 1, 3);
  }
  std::vector<InvariantResult> check() {
    const auto put = [&](Tensor t, const std::vector<double>& x) {
      testing::put(capture, t, DType::kFp32, x);
    };
    put(Tensor::kS, s);
    put(Tensor::kM, m);
    put(Tensor::kRunningM, m);
    put(Tensor::kP, p);
    put(Tensor::kL, l);
    put(Tensor::kRunningL, l);
    put(Tensor::kPartialO, part);
    put(Tensor::kRunningO, part);
    put(Tensor::kLse, lse);
    put(Tensor::kO, o);
    return check_invariants(capture);
  }
  // The one that is broken, where there is one.
  Invariant broken() {
    const auto results = check();
    INFO(said(results));
    REQUIRE(broken_invariants(results).size() == 1);
    for (const InvariantResult& r : results)
      if (r.verdict == Verdict::kBroken) return r.invariant;
    return Invariant::kSplits;
  }
};

TEST_CASE("each invariant is broken by what it is about, by hand") {
  {
    ByHand h;
    const auto results = h.check();
    INFO(said(results));
    REQUIRE(broken_invariants(results).empty());
    REQUIRE(of(results, Invariant::kEmptyRows).verdict == Verdict::kNotTried);
    REQUIRE(of(results, Invariant::kOutputInRange).checked == 2);
    REQUIRE(of(results, Invariant::kMaskedProbs).checked == 1);
  }
  ByHand scores, max, probs, sum_small, sum_large, sums, lse, output, nan;
  scores.s[1] = -1e4;
  REQUIRE(scores.broken() == Invariant::kMaskedScores);
  max.m[1] = -HUGE_VAL;
  REQUIRE(max.broken() == Invariant::kFiniteMax);
  probs.p[1] = 1e-30;
  REQUIRE(probs.broken() == Invariant::kMaskedProbs);
  sum_small.p = {0.9, 0, 1, 1}, sum_small.l[0] = 0.9, sum_small.lse[0] = std::log(0.9);
  REQUIRE(sum_small.broken() == Invariant::kSumAtLeastOne);
  sum_large.p = {2, 0, 1, 1}, sum_large.l[0] = 2, sum_large.lse[0] = std::log(2);
  REQUIRE(sum_large.broken() == Invariant::kSumAtLeastOne);
  sums.l[1] = 1.5, sums.lse[1] = std::log(1.5);
  REQUIRE(sums.broken() == Invariant::kSumOfProbs);
  lse.lse[1] = 1;  // in base 2
  REQUIRE(lse.broken() == Invariant::kLogSumExp);
  output.o[0] = 1.001;
  REQUIRE(output.broken() == Invariant::kOutputInRange);
  nan.o[1] = NAN;
  REQUIRE(nan.broken() == Invariant::kOutputInRange);
}

TEST_CASE("what follows from a broken invariant is not told as another") {
  ByHand h;
  h.s[1] = -1e4;
  h.p[1] = 1e-30;
  h.o[0] = 5;
  h.lse[1] = 1;  // in another row: a root of its own
  const auto results = h.check();
  REQUIRE(of(results, Invariant::kMaskedScores).verdict == Verdict::kBroken);
  REQUIRE(of(results, Invariant::kMaskedProbs).verdict == Verdict::kFollows);
  REQUIRE(of(results, Invariant::kMaskedProbs).follows_from == Invariant::kMaskedScores);
  REQUIRE(of(results, Invariant::kOutputInRange).verdict == Verdict::kFollows);
  REQUIRE(of(results, Invariant::kLogSumExp).verdict == Verdict::kBroken);
  const auto sentences = broken_invariants(results);
  REQUIRE(sentences.size() == 2);
  REQUIRE(sentences[0].find("S(0, 0, 0, 1) is -10000, expected -inf") != std::string::npos);
  // Where it is broken in other rows, too, one of these is shown.
  h.o[1] = 4;
  const auto both = h.check();
  REQUIRE(of(both, Invariant::kOutputInRange).verdict == Verdict::kFollows);
  h.lse[1] = std::log(2.0);
  const auto beyond = h.check();
  REQUIRE(of(beyond, Invariant::kOutputInRange).verdict == Verdict::kBroken);
  REQUIRE(of(beyond, Invariant::kOutputInRange).index[2] == 1);
  REQUIRE(of(beyond, Invariant::kOutputInRange).actual == 4);
}

TEST_CASE("a running max that falls, and a row without keys that is not 0, are broken") {
  Problem p;
  p.seqlen_q = 2;
  p.seqlen_k = 2;
  p.dtype = DType::kFp32;
  p.mask.kind = MaskKind::kCausal;
  p.mask.alignment = CausalAlignment::kBottomRight;
  Geometry g;
  g.tile = {2, 1};
  g.tiles_per_split = 2;
  Capture c = testing::empty_capture(p, g);
  testing::put(c, Tensor::kRunningM, DType::kFp32, {0, 0, 0.5, 0.25});
  const auto falls = of(check_invariants(c), Invariant::kMaxNotDecreasing);
  REQUIRE(falls.verdict == Verdict::kBroken);
  REQUIRE((falls.index[2] == 1 && falls.index[3] == 1 && falls.expected == 0.5));
  p.seqlen_k = 1;  // query 0 sees nothing
  g.tile = {2, 1};
  g.tiles_per_split = 1;
  c = testing::empty_capture(p, g);
  testing::put(c, Tensor::kO, DType::kFp32, {1e-3, 0});
  testing::put(c, Tensor::kLse, DType::kFp32, {-HUGE_VAL, 0});
  const auto empty = of(check_invariants(c), Invariant::kEmptyRows);
  REQUIRE(empty.verdict == Verdict::kBroken);
  REQUIRE(empty.tensor == Tensor::kO);
  testing::put(c, Tensor::kO, DType::kFp32, {0, 0});
  REQUIRE(of(check_invariants(c), Invariant::kEmptyRows).verdict == Verdict::kHolds);
}

TEST_CASE("of a cell that is NaN nothing is said about weights") {
  ByHand h;
  h.o[0] = NAN;
  const auto results = h.check();
  const InvariantResult broken = of(results, Invariant::kOutputInRange);
  REQUIRE(broken.verdict == InvariantResult::Verdict::kBroken);
  REQUIRE(std::string(meaning_of(broken)).find("nobody stored it") != std::string::npos);
  REQUIRE(broken_invariants(results).front().find("weights") == std::string::npos);
}

TEST_CASE("where scores may overflow or inputs are NaN, nothing is held against the kernel") {
  ByHand h;
  store_element(h.capture.q.edit().data(), DType::kFp32, 0, NAN);
  h.s[0] = h.m[0] = h.p[0] = h.l[0] = h.lse[0] = h.o[0] = NAN;
  const auto results = h.check();
  INFO(said(results));
  REQUIRE(of(results, Invariant::kFiniteMax).verdict == Verdict::kNotTried);
  REQUIRE(of(results, Invariant::kOutputInRange).verdict == Verdict::kNotTried);
  REQUIRE(of(results, Invariant::kSumOfProbs).verdict != Verdict::kBroken);
  REQUIRE(broken_invariants(results).empty());
  h.capture.isolated = true;
  for (const InvariantResult& r : h.check()) REQUIRE(r.verdict == Verdict::kNotTried);
}

}  // namespace
}  // namespace attn_diag
