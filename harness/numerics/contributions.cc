#include "harness/numerics/contributions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn_diag/harness/inputs.h"

namespace attn_diag {
namespace {

using reference::Rounded;
using reference::rounded_bit;
using reference::RowIndex;

// Multiplications of one evaluation of the twin.
constexpr std::int64_t kMostProducts = std::int64_t{1} << 24;
constexpr int kFewestRows = 8;

double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return a.empty() ? 0 : std::sqrt(squares / static_cast<double>(a.size()));
}

std::vector<RowIndex> rows_of(const Capture& c, int wanted) {
  const Problem& p = c.problem;
  const std::int64_t products = std::int64_t{p.seqlen_k} * (p.head_dim + p.head_dim_v);
  const auto& [origin, extent] = c.region;
  const std::int64_t all = extent[0] * extent[1] * extent[2];
  const std::int64_t most = std::max<std::int64_t>(kFewestRows, kMostProducts / products);
  const std::int64_t n = std::min({all, std::int64_t{wanted}, most});
  std::vector<RowIndex> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    // The middle of the i-th of n equal runs.
    const std::int64_t row = (2 * i + 1) * all / (2 * n);
    rows.push_back({static_cast<std::int32_t>(origin[0] + row / (extent[1] * extent[2])),
                    static_cast<std::int32_t>(origin[1] + row / extent[2] % extent[1]),
                    static_cast<std::int32_t>(origin[2] + row % extent[2])});
  }
  return rows;
}

std::string why_not(const Capture& c) {
  if (!c.has(Tensor::kO)) return "o was not recorded";
  if (c.arithmetic.part != Part::kAttention)
    return "the kernel computes a part of attention, which the twin does not";
  if (c.isolated) return "every stage was fed the reference's inputs";
  if (!c[Tensor::kO].uncertainty.empty()) return "o was not recorded as the kernel had it";
  for (const auto* data : {&c.q, &c.k, &c.v})
    if (has_nonfinite(*data, c.problem.dtype)) return "q, k or v holds NaN or infinity";
  return {};
}

// The twin of one capture's rows.
class Study {
 public:
  Study(const Capture& c, std::vector<RowIndex> rows) : x_c(c), x_rows(std::move(rows)) {
    x_exact = o(c.arithmetic, 0);
  }
  std::vector<double> o(const Arithmetic& arithmetic, std::uint32_t roundings) const {
    return reference::twin_o(x_c.problem, x_c.geometry, arithmetic,
                             {x_c.q.data(), x_c.k.data(), x_c.v.data()}, x_rows, roundings);
  }
  double rms_with(const Arithmetic& arithmetic, std::uint32_t roundings) const {
    return rms(o(arithmetic, roundings), x_exact);
  }
  const std::vector<double>& exact() const { return x_exact; }

 private:
  const Capture& x_c;
  const std::vector<RowIndex> x_rows;
  std::vector<double> x_exact;
};

std::vector<double> recorded(const Capture& c, const std::vector<RowIndex>& rows) {
  const TensorData& o = c[Tensor::kO];
  const auto& [origin, extent] = c.region;
  std::vector<double> out;
  for (const RowIndex& r : rows) {
    const std::int64_t row =
        ((r.batch - origin[0]) * extent[1] + r.head - origin[1]) * extent[2] + r.query - origin[2];
    for (std::int64_t d = 0; d < c.problem.head_dim_v; ++d)
      out.push_back(o.at(row * c.problem.head_dim_v + d));
  }
  return out;
}

// Types that the kernel does not round to, and might.
void add_instead(const Capture& c, const Study& study, Contributions& out) {
  const auto narrow = [](DType type) { return type == DType::kFp16 || type == DType::kBf16; };
  const DType type = narrow(c.problem.dtype) ? c.problem.dtype : DType::kFp16;
  const auto add = [&](DType Arithmetic::*field, Rounded rounding, std::uint32_t roundings) {
    if (narrow(c.arithmetic.*field)) return;
    Arithmetic other = c.arithmetic;
    other.*field = type;
    Contribution part;
    part.rounding = rounding;
    part.what = describe(rounding, other, c.geometry);
    if (part.what.empty()) return;
    part.rms = study.rms_with(other, roundings);
    out.instead.push_back(std::move(part));
  };
  add(&Arithmetic::probs, Rounded::kProbs, rounded_bit(Rounded::kProbs));
  add(&Arithmetic::scores, Rounded::kScores, rounded_bit(Rounded::kScores));
  add(&Arithmetic::partial, Rounded::kPartials, rounded_bit(Rounded::kPartials));
  add(&Arithmetic::output, Rounded::kOutput, rounded_bit(Rounded::kOutput));
  Arithmetic narrow_sums = c.arithmetic;
  narrow_sums.dot_ulp = 1;
  if (!narrow(narrow_sums.accumulate))
    for (const Rounded sums : {Rounded::kQkSums, Rounded::kPvSums}) {
      narrow_sums.accumulate = type;
      out.instead.push_back({sums, describe(sums, narrow_sums, c.geometry),
                             study.rms_with(narrow_sums, rounded_bit(sums)), 0, 0});
    }
}

}  // namespace

double Contributions::ratio() const {
  if (rms_observed == 0) return 0;
  return rms_together > 0 ? rms_observed / rms_together : std::numeric_limits<double>::infinity();
}

Contributions find_contributions(const Capture& c, int wanted) {
  Contributions out;
  out.why_not = why_not(c);
  if (!out.why_not.empty()) return out;
  const std::vector<RowIndex> rows = rows_of(c, wanted);
  const Study study(c, rows);
  const std::vector<double> actual = recorded(c, rows),
                            together = study.o(c.arithmetic, reference::kAllRounded);
  for (const std::vector<double>* numbers : {&actual, &together, &study.exact()})
    if (!std::all_of(numbers->begin(), numbers->end(), [](double x) { return std::isfinite(x); })) {
      out.why_not =
          numbers == &actual ? "o holds NaN or infinity" : "the declared arithmetic overflows";
      return out;
    }
  out.rows = static_cast<std::int64_t>(rows.size());
  out.cells = static_cast<std::int64_t>(actual.size());
  double squares = 0;
  for (int i = 0; i < reference::kNumRounded; ++i) {
    Contribution part;
    part.rounding = static_cast<Rounded>(i);
    part.what = describe(part.rounding, c.arithmetic, c.geometry);
    if (part.what.empty()) continue;
    const std::uint32_t bit = rounded_bit(part.rounding);
    part.rms = study.rms_with(c.arithmetic, bit);
    part.rms_without = study.rms_with(c.arithmetic, reference::kAllRounded & ~bit);
    squares += part.rms * part.rms;
    out.parts.push_back(std::move(part));
  }
  for (Contribution& part : out.parts) part.share = squares > 0 ? part.rms * part.rms / squares : 0;
  std::stable_sort(out.parts.begin(), out.parts.end(),
                   [](const auto& a, const auto& b) { return a.rms > b.rms; });
  out.rms_of_parts = std::sqrt(squares);
  out.rms_together = rms(together, study.exact());
  out.rms_observed = rms(actual, study.exact());
  const double left = rms(actual, together);
  out.left_over = out.rms_observed > 0 ? left * left / (out.rms_observed * out.rms_observed) : 0;
  out.explained = out.ratio() <= Contributions::kExplainedFactor;
  add_instead(c, study, out);
  return out;
}

}  // namespace attn_diag
