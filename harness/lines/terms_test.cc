// What numbers are in terms of attention, on graphs made by hand: 2 queries, 3 keys, head dim 2.
#include "harness/lines/terms.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "harness/lines/fault.h"

namespace attn_diag::lines {
namespace {

using host::ValueNode;
using host::ValueOp;

constexpr float kQ[] = {1, 0.5F, -0.25F, 2};
constexpr float kK[] = {0.5F, 1, -1, 0.25F, 2, -0.5F};
constexpr float kV[] = {1, 2, 3, 4, 5, 6};
constexpr float kScale = 0.7F;

Problem problem_of_test() {
  Problem p{};
  p.batch = p.heads = p.kv_heads = 1;
  p.seqlen_q = 2;
  p.seqlen_k = 3;
  p.head_dim = p.head_dim_v = 2;
  p.softmax_scale = kScale;
  p.dtype = DType::kFp32;
  return p;
}

// Computes, and keeps how.
class Maker {
 public:
  Maker() {
    graph.sites.resize(1);
    graph.nodes.resize(1);
    for (unsigned op = 0; op < value_callouts::kNumOps; ++op) {
      host::ValueSite site;
      site.op = static_cast<ValueOp>(op);
      site.line = static_cast<int>(op) + 1;
      graph.sites.push_back(site);
    }
  }

  std::uint32_t number(float value) { return push(0, {}, value); }
  std::uint32_t q(unsigned row, unsigned d) { return input(0, row * 2 + d, kQ[row * 2 + d]); }
  std::uint32_t k(unsigned row, unsigned d) { return input(1, row * 2 + d, kK[row * 2 + d]); }
  std::uint32_t v(unsigned row, unsigned d) { return input(2, row * 2 + d, kV[row * 2 + d]); }

  std::uint32_t make(ValueOp op, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
    const float x = value(a), y = value(b), z = value(c);
    float out = x;
    if (op == ValueOp::kAdd) out = x + y;
    if (op == ValueOp::kSubtract) out = x - y;
    if (op == ValueOp::kMultiply) out = x * y;
    if (op == ValueOp::kDivide) out = x / y;
    if (op == ValueOp::kFma) out = x * y + z;
    if (op == ValueOp::kNegate) out = -x;
    if (op == ValueOp::kMaximum) out = std::fmax(x, y);
    if (op == ValueOp::kExp) out = std::exp(x);
    if (op == ValueOp::kExp2) out = std::exp2(x);
    if (op == ValueOp::kLog) out = std::log(x);
    return push(static_cast<std::uint32_t>(op) + 1, {a, b, c}, out);
  }
  std::uint32_t add(std::uint32_t a, std::uint32_t b) { return make(ValueOp::kAdd, a, b); }
  std::uint32_t times(std::uint32_t a, std::uint32_t b) { return make(ValueOp::kMultiply, a, b); }
  std::uint32_t less(std::uint32_t a, std::uint32_t b) { return make(ValueOp::kSubtract, a, b); }

  std::uint32_t raw(unsigned query, unsigned key) {
    return make(ValueOp::kFma, q(query, 1), k(key, 1), times(q(query, 0), k(key, 0)));
  }
  std::uint32_t score(unsigned query, unsigned key) {
    return times(raw(query, key), number(kScale));
  }
  // exp(s - frame)
  std::uint32_t weight(unsigned query, unsigned key, float frame) {
    return make(ValueOp::kExp, less(score(query, key), number(frame)));
  }
  std::uint32_t product(std::uint32_t addend, const std::vector<std::uint32_t>& pairs) {
    float sum = value(addend);
    const auto begin = static_cast<std::uint32_t>(graph.products.size());
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      sum += value(pairs[i]) * value(pairs[i + 1]);
      graph.products.push_back({pairs[i], pairs[i + 1]});
    }
    return push(static_cast<std::uint32_t>(ValueOp::kProduct) + 1,
                {addend, begin, static_cast<std::uint32_t>(pairs.size() / 2)}, sum);
  }

  float value(std::uint32_t n) const { return graph.nodes[n].value; }

  host::ValueGraph graph;

 private:
  std::uint32_t input(std::uint32_t buffer, std::uint32_t element, float value) {
    return push(static_cast<std::uint32_t>(ValueOp::kInput) + 1,
                {buffer + 1, element, ValueNode::kInput}, value);
  }
  std::uint32_t push(std::uint32_t site, std::array<std::uint32_t, 3> operand, float value) {
    graph.nodes.push_back({site, 0, operand, value});
    return static_cast<std::uint32_t>(graph.nodes.size() - 1);
  }
};

struct Reader {
  explicit Reader(const Maker& maker)
      : attention(problem_of_test(), kQ, kK, kV), terms(maker.graph, attention) {}
  Term operator[](std::uint32_t n) const { return terms[n]; }
  unsigned keys(std::uint32_t n) const { return terms.keys().count(terms[n].set); }

  Attention attention;
  Terms terms;
};

void check_ill(const Reader& read, std::uint32_t n, Ill why, std::uint32_t root) {
  CHECK(read[n].kind == TermKind::kIll);
  CHECK(static_cast<int>(read[n].ill) == static_cast<int>(why));
  CHECK(read[n].root == root);
}

}  // namespace

TEST_CASE("products of elements add up to a score, however they are ordered") {
  Maker m;
  const std::uint32_t part = m.times(m.k(2, 1), m.q(1, 1));
  const std::uint32_t whole = m.make(ValueOp::kFma, m.q(1, 0), m.k(2, 0), part);
  const std::uint32_t scaled_q = m.times(m.q(1, 0), m.number(kScale));
  const std::uint32_t first = m.times(scaled_q, m.k(2, 0));
  const Reader read(m);
  REQUIRE(read[part].kind == TermKind::kScore);
  CHECK(read.terms.columns().count(read[part].set) == 1);
  REQUIRE(read[whole].kind == TermKind::kScore);
  CHECK(read[whole].row == 1);
  CHECK(read[whole].column == 2);
  CHECK(read.terms.columns().count(read[whole].set) == 2);
  CHECK(read[whole].x == 1);
  CHECK(read[first].x == Approx(kScale));
}

TEST_CASE("a product of unlike columns, and one that is added twice, is where a score goes wrong") {
  Maker m;
  const std::uint32_t mixed = m.times(m.q(0, 0), m.k(1, 1));
  const std::uint32_t later = m.make(ValueOp::kExp, m.add(mixed, m.raw(0, 1)));
  const std::uint32_t part = m.times(m.q(0, 0), m.k(1, 0));
  const std::uint32_t twice = m.add(part, part);
  const std::uint32_t rows = m.add(m.times(m.q(0, 0), m.k(1, 0)), m.times(m.q(1, 1), m.k(1, 1)));
  const std::uint32_t keys = m.add(m.times(m.q(0, 0), m.k(1, 0)), m.times(m.q(0, 1), m.k(2, 1)));
  const Reader read(m);
  check_ill(read, mixed, Ill::kColumns, mixed);
  check_ill(read, later, Ill::kColumns, mixed);
  check_ill(read, twice, Ill::kTwice, twice);
  check_ill(read, rows, Ill::kRows, rows);
  check_ill(read, keys, Ill::kSumOfScores, keys);
}

TEST_CASE("the exponential of a score is a weight in a frame, in base 2, too") {
  Maker m;
  const std::uint32_t plain = m.weight(0, 1, 0.5F);
  const std::uint32_t base2 = m.make(
      ValueOp::kExp2,
      m.less(m.times(m.raw(0, 1), m.number(kScale * 1.44269504F)), m.number(0.5F * 1.44269504F)));
  const Reader read(m);
  for (const std::uint32_t n : {plain, base2}) {
    REQUIRE(read[n].kind == TermKind::kWeight);
    CHECK(read[n].x == Approx(0.5F));
    CHECK(read[n].row == 0);
    CHECK(read.keys(n) == 1);
    CHECK(read.terms.keys().has(read[n].set, 1));
  }
}

TEST_CASE("exponentials of scores that are not scaled, or lack columns, are told") {
  Maker m;
  const std::uint32_t unscaled = m.make(ValueOp::kExp, m.raw(0, 1));
  const std::uint32_t twice = m.make(ValueOp::kExp, m.times(m.score(0, 1), m.number(kScale)));
  const std::uint32_t part = m.make(ValueOp::kExp, m.times(m.q(0, 0), m.k(1, 0)));
  const Reader read(m);
  check_ill(read, unscaled, Ill::kScale, unscaled);
  check_ill(read, twice, Ill::kScale, twice);
  check_ill(read, part, Ill::kPartial, part);
}

TEST_CASE("0 less a maximum is no score; a score of the wrong sign is scaled wrongly") {
  Maker m;
  const std::uint32_t of_zero = m.make(ValueOp::kExp, m.less(m.number(0), m.score(0, 1)));
  const std::uint32_t minus = m.times(m.raw(0, 0), m.number(-kScale));
  const std::uint32_t of_minus = m.make(ValueOp::kExp, m.less(minus, m.number(0.1F)));
  const Reader read(m);
  check_ill(read, of_zero, Ill::kNoScore, of_zero);
  check_ill(read, of_minus, Ill::kScale, of_minus);
}

TEST_CASE("weights add up in one frame; a factor moves it") {
  Maker m;
  const std::uint32_t a = m.weight(0, 0, 0.1F), b = m.weight(0, 1, 0.9F);
  const std::uint32_t unlike = m.add(a, b);
  // exp(0.1 - 0.9) brings a into b's frame
  const std::uint32_t moved = m.times(a, m.number(std::exp(0.1F - 0.9F)));
  const std::uint32_t l = m.add(moved, b);
  const std::uint32_t again = m.add(l, b);
  const std::uint32_t other_row = m.add(a, m.weight(1, 2, 0.1F));
  const std::uint32_t offset = m.add(l, m.number(1));
  const std::uint32_t guarded = m.add(l, m.number(1e-6F));
  const Reader read(m);
  CHECK(read[guarded].kind == TermKind::kWeight);
  check_ill(read, unlike, Ill::kFrames, unlike);
  REQUIRE(read[l].kind == TermKind::kWeight);
  CHECK(read[l].x == Approx(0.9F));
  CHECK(read.keys(l) == 2);
  check_ill(read, again, Ill::kTwice, again);
  check_ill(read, other_row, Ill::kRows, other_row);
  check_ill(read, offset, Ill::kOffset, offset);
}

TEST_CASE("weights times rows of v, divided by their sum, are o in the frame of lse") {
  Maker m;
  const float frame = 0.3F;
  std::uint32_t o = 0, l = 0;
  for (unsigned j = 0; j < 3; ++j) {
    const std::uint32_t p = m.weight(1, j, frame);
    const std::uint32_t part = m.times(p, m.v(j, 1));
    o = o == 0 ? part : m.add(o, part);
    l = l == 0 ? p : m.add(l, p);
  }
  const std::uint32_t normal = m.make(ValueOp::kDivide, o, l);
  const std::uint32_t inverse = m.make(ValueOp::kDivide, m.number(1), l);
  const std::uint32_t by_inverse = m.times(o, inverse);
  const std::uint32_t log_l = m.make(ValueOp::kLog, l);
  Reader read(m);
  CHECK(read[o].x == Approx(frame));
  const auto lse = static_cast<float>(read.attention.lse(1));
  for (const std::uint32_t n : {normal, by_inverse}) {
    REQUIRE(read[n].kind == TermKind::kWeight);
    CHECK(read[n].column == 1);
    CHECK(read.keys(n) == 3);
    CHECK(read[n].x == Approx(lse).margin(1e-5));
  }
  CHECK(read[inverse].kind == TermKind::kInverse);
  CHECK(read[log_l].kind == TermKind::kLog);
}

TEST_CASE(
    "a weight of one key times a row of v of another is told; so are sums over columns of v") {
  Maker m;
  const std::uint32_t p = m.weight(0, 1, 0);
  const std::uint32_t wrong = m.times(p, m.v(2, 0));
  const std::uint32_t columns = m.add(m.times(p, m.v(1, 0)), m.times(m.weight(0, 2, 0), m.v(2, 1)));
  const Reader read(m);
  check_ill(read, wrong, Ill::kKeys, wrong);
  check_ill(read, columns, Ill::kColumns, columns);
}

TEST_CASE("a product of matrices is the sum of its products") {
  Maker m;
  const std::uint32_t zero = m.number(0);
  const std::uint32_t right = m.product(zero, {m.q(0, 0), m.k(2, 0), m.q(0, 1), m.k(2, 1)});
  const std::uint32_t wrong = m.product(zero, {m.q(0, 0), m.k(2, 0), m.q(0, 1), m.k(1, 1)});
  const Reader read(m);
  REQUIRE(read[right].kind == TermKind::kScore);
  CHECK(read[right].column == 2);
  CHECK(read.terms.columns().count(read[right].set) == 2);
  check_ill(read, wrong, Ill::kSumOfScores, wrong);
}

TEST_CASE("what a condition puts in a score's place masks it, and only it") {
  Maker m;
  const std::uint32_t score = m.score(1, 2);
  const std::uint32_t masked = m.make(ValueOp::kPick, m.number(-INFINITY), score);
  const std::uint32_t kept = m.make(ValueOp::kPick, m.score(1, 1), m.number(-INFINITY));
  const Reader read(m);
  CHECK(read[masked].kind == TermKind::kNumber);
  CHECK(read[kept].kind == TermKind::kScore);
  CHECK(read.terms.masked_at(1, 2) == masked);
  CHECK(read.terms.masked_at(1, 1) == 0);
}

TEST_CASE("memory that nobody wrote is told where it is first computed with") {
  Maker m;
  const std::uint32_t unwritten = m.add(m.weight(0, 1, 0), m.number(std::nanf("")));
  const std::uint32_t larger = m.make(ValueOp::kMaximum, m.score(0, 1), m.number(std::nanf("")));
  const Reader read(m);
  check_ill(read, unwritten, Ill::kUnwritten, unwritten);
  CHECK(read[larger].kind == TermKind::kScore);
}

TEST_CASE("what v was multiplied by before is a factor of the sum") {
  Maker m;
  const std::uint32_t twice = m.times(m.v(1, 0), m.number(2));
  const std::uint32_t part = m.times(m.weight(0, 1, 0.5F), twice);
  const std::uint32_t once = m.times(m.weight(0, 1, 0.5F), m.v(1, 0));
  const Reader read(m);
  REQUIRE(read[part].kind == TermKind::kWeight);
  CHECK(read[part].x == Approx(read[once].x - std::log(2.0)));
}

TEST_CASE("in which part of attention a number is wrong") {
  Maker m;
  const std::uint32_t columns = m.times(m.q(0, 0), m.k(0, 1));
  const std::uint32_t scale = m.make(ValueOp::kExp, m.less(m.raw(0, 0), m.number(1)));
  const std::uint32_t part = m.times(m.q(0, 0), m.k(0, 0));
  const std::uint32_t part_twice = m.add(part, part);
  const std::uint32_t weight = m.weight(0, 1, 0.5F);
  const std::uint32_t weight_twice = m.add(weight, weight);
  const std::uint32_t frames = m.add(m.weight(0, 0, 0.25F), weight);
  const std::uint32_t other_key = m.times(weight, m.v(2, 0));
  const std::uint32_t in_product = m.product(0, {weight, m.v(2, 0)});
  const std::uint32_t rows = m.less(m.score(0, 1), m.score(1, 1));
  const std::uint32_t seeded = m.add(weight, m.number(1));
  const Reader read(m);
  const auto of = [&](std::uint32_t n) {
    Cause cause;
    cause.what = What::kIll;
    cause.ill = read[n].ill;
    cause.node = read[n].root;
    REQUIRE(read[n].kind == TermKind::kIll);
    return fault_of(read.terms, cause);
  };
  CHECK(of(columns) == LineFault::kScores);
  CHECK(of(scale) == LineFault::kScores);
  CHECK(of(part_twice) == LineFault::kScores);
  CHECK(of(weight_twice) == LineFault::kKeys);
  CHECK(of(frames) == LineFault::kFrames);
  CHECK(of(other_key) == LineFault::kOperands);
  CHECK(of(in_product) == LineFault::kOperands);
  CHECK(of(rows) == LineFault::kRows);
  CHECK(of(seeded) == LineFault::kNoNumbers);
  Cause missing;
  missing.what = What::kMissing;
  CHECK(fault_of(read.terms, missing) == LineFault::kKeys);
  Cause unstored;
  unstored.what = What::kUnstored;
  CHECK(fault_of(read.terms, unstored) == LineFault::kPlace);
}

TEST_CASE("sets of keys join where they are apart") {
  Sets sets(130);
  const std::uint32_t low = sets.range(0, 65), high = sets.range(65, 130);
  CHECK(sets.count(low) == 65);
  CHECK(sets.join(low, high) == sets.all());
  CHECK(sets.join(low, sets.single(64)) == kNone);
  CHECK(sets.has(high, 129));
  CHECK_FALSE(sets.has(high, 64));
}

TEST_CASE("elements are found in both layouts, and which head's keys a query reads") {
  Problem p = problem_of_test();
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 3;
  const std::vector<float> zeros(2 * 4 * 3 * 2);
  p.layout = Layout::kBSHD;
  const Attention attention(p, zeros.data(), zeros.data(), zeros.data());
  std::uint32_t row = 0, column = 0;
  // batch 1, query 2, head 3, column 1
  attention.locate(0, ((1 * 3 + 2) * 4 + 3) * 2 + 1, row, column);
  CHECK(row == (1 * 4 + 3) * 3 + 2);
  CHECK(column == 1);
  attention.locate(1, ((1 * 3 + 2) * 2 + 1) * 2, row, column);
  CHECK(row == (1 * 2 + 1) * 3 + 2);
  CHECK(attention.same_head((1 * 4 + 3) * 3, (1 * 2 + 1) * 3 + 2));
  CHECK_FALSE(attention.same_head((1 * 4 + 1) * 3, (1 * 2 + 1) * 3));
  CHECK_FALSE(attention.same_head((0 * 4 + 3) * 3, (1 * 2 + 1) * 3));
}

}  // namespace attn_diag::lines
