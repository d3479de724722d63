// o is linear in v, with weights that sum up to 1.
#include <cmath>

#include "attn_diag/reference/reference.h"
#include "harness/xray/properties.h"

namespace attn_diag::xraying {
namespace {

double largest_of(DType type) { return type == DType::kFp16 ? 65504.0 : 0x1p127; }
// Below this, doubling before rounding and after it differ by up to half the distance of numbers.
double smallest_normal(DType type) { return type == DType::kFp16 ? 0x1p-14 : 0x1p-126; }

// From this size of o on, what fp32 loses of products below 2^-126 is far below o's last place.
constexpr double kNoUnderflow = 0x1p-96;

bool sees_a_key(const Problem& p, std::int64_t query) {
  for (std::int32_t j = 0; j < p.seqlen_k; ++j)
    if (reference::visible(p, static_cast<std::int32_t>(query), j)) return true;
  return false;
}

}  // namespace

PropertyResult doubled_v(const Subject& s) {
  Judge judge(Property::kDoubledV);
  Operands doubled = s.operands;
  double largest = 0;
  const Problem& p = s.operands.problem();
  doubled.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    for (std::int64_t d = 0; d < p.head_dim_v; ++d) {
      double& x = doubled.v(b, h, j, d);
      x *= 2;
      largest = std::max(largest, std::fabs(x));
    }
  });
  if (largest > largest_of(p.dtype)) return judge.not_tried("2v does not fit into v's type");
  const TrialOutcome twice = s.run(doubled);
  const double small = 2 * smallest_normal(twice.output);
  for_each_row(p, [&](const RowIndex& row) {
    const auto expected = [&](std::int64_t d) { return 2 * s.base.o[s.base.flat(row, d)]; };
    judge.o_of(twice, row, expected, [&](std::int64_t d) {
      const double x = std::fabs(expected(d));
      if (x > largest_of(twice.output)) return HUGE_VAL;  // o itself does not fit
      // Where a sum may overflow for one of them, or lose to underflow, only rounding's own bound holds.
      const double bound =
          2 * s.base.o_bound[s.base.flat(row, d)] + twice.o_bound[twice.flat(row, d)];
      if (!(bound < HUGE_VAL)) return HUGE_VAL;
      if (x < kNoUnderflow) return bound;
      if (twice.moves) return 2 * twice.o_bound[twice.flat(row, d)];
      return x < small ? small * 0x1p-9 : 0.0;
    });
  });
  return judge.finish();
}

PropertyResult sum_of_v(const Subject& s) {
  Judge judge(Property::kSumOfV);
  Operands even = s.operands, odd = s.operands;
  const Problem& p = s.operands.problem();
  even.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    for (std::int64_t d = 0; d < p.head_dim_v; ++d) (j % 2 == 0 ? odd : even).v(b, h, j, d) = 0;
  });
  const TrialOutcome first = s.run(even), second = s.run(odd);
  for_each_row(p, [&](const RowIndex& row) {
    judge.o_of(
        s.base, row,
        [&](std::int64_t d) { return first.o[first.flat(row, d)] + second.o[second.flat(row, d)]; },
        [&](std::int64_t d) {
          const std::size_t at = first.flat(row, d);
          return s.base.o_bound[at] + first.o_bound[at] + second.o_bound[at];
        });
  });
  return judge.finish();
}

PropertyResult constant_v(const Subject& s) {
  Judge judge(Property::kConstantV);
  Operands constant = s.operands;
  const Problem& p = s.operands.problem();
  // Quarters that differ in neighbouring dims.
  const auto value = [](std::int64_t d) {
    return static_cast<double>(d % 7 + 1) / (d % 2 == 0 ? 4.0 : -4.0);
  };
  constant.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    for (std::int64_t d = 0; d < p.head_dim_v; ++d) constant.v(b, h, j, d) = value(d);
  });
  const TrialOutcome run = s.run(constant);
  for_each_row(p, [&](const RowIndex& row) {
    const bool sees = sees_a_key(p, row[2]);
    judge.o_of(
        run, row, [&](std::int64_t d) { return sees ? value(d) : 0.0; },
        [&](std::int64_t d) { return run.o_bound[run.flat(row, d)]; });
  });
  return judge.finish();
}

}  // namespace attn_diag::xraying
