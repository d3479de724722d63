// Numerical diagnostics of a run: how large errors are, where, of which sign and from what; and what must hold in
// attention without a reference. Returns data, prints nothing; docs/numerics.md derives it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/experiment.h"
#include "attn_diag/harness/histogram.h"
#include "attn_diag/reference/twin.h"

namespace attn_diag {

// ---- errors of a tensor -----------------------------------------------------------------------

// Errors of the judged cells whose position (a query, a number of visible keys, |S|) is in [low, high).
struct PositionBin {
  double low = 0, high = 0;
  std::int64_t cells = 0;
  double rms_err_over_bound = 0, max_err_over_bound = 0;
};

// Counts over every recorded cell, judged or not, without what is expected (-inf where masked).
struct Census {
  std::int64_t nan = 0, plus_inf = 0, minus_inf = 0;
  std::int64_t overflow = 0;     // infinities where the expected value is finite
  std::int64_t subnormal = 0;    // in the storage type
  std::int64_t flushed = 0;      // 0 where a normal number of the storage type is expected
  std::int64_t underflowed = 0;  // 0 where a subnormal one is
  std::int64_t nonfinite() const { return nan + plus_inf + minus_inf; }
};

struct TensorNumerics {
  Tensor tensor = Tensor::kS;
  DType storage = DType::kFp32;  // what the kernel rounds it to, as declared; ULPs are of this type
  std::int64_t cells = 0, judged = 0, mismatched = 0;

  // ULPs are counted where they mean something: in judged cells whose rounding bound leaves half of the digits of
  // the storage type (harness/compare/limits.h).
  std::array<std::int64_t, kUlpBins> ulps{};
  std::int64_t with_ulps = 0;
  double max_ulp = 0;  // of those

  std::vector<std::int64_t>
      ratios;  // kRatioBins counts of error over bound, of finite judged cells
  double median = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;  // of error over bound
  // Over finite judged cells. `bias` is mean(actual - expected) / rms; `shrinkage` is that of the error times the sign
  // of expected. 0: errors have random signs. Shrinkage -1: all are too small by the same amount, as by truncation.
  double rms_err = 0, bias = 0, shrinkage = 0;

  // By query; by the keys that the row sees; by |S|: of the cell for S and P, else of the row's largest.
  std::vector<PositionBin> by_query, by_keys, by_score;
  Census census;
};

// ---- where a value that is no number was made -------------------------------------------------

struct OriginStep {
  std::optional<char> input;  // q, k or v; else a tensor
  Tensor tensor = Tensor::kS;
  std::array<std::int64_t, 5>
      index{};  // absolute; of an input: batch, head of its own, query or key, dim
  double value = 0;
  std::string why;  // "o = running_o / l, and l is 0"
};
// From the first cell of a tensor that is no finite number, though one is expected, back through the operands that
// made it so. The last step is the origin, as far as it was recorded.
struct NonFiniteOrigin {
  std::vector<OriginStep> steps;
  std::int64_t cells = 0;  // of the first step's tensor that are not finite
};

// ---- cancellation ------------------------------------------------------------------------------

struct CancelledDot {
  std::array<std::int64_t, 4> index{};  // batch, head, query; key of S, dim of o
  double sum_abs = 0, sum = 0;          // of the products
  double digits = 0;                    // log10(sum_abs / |sum|)
  double err = 0, bound = 0;            // of what was recorded; 0: nothing was
};
// In the sums q.k (S) or the normalised P.V (o).
struct Cancellation {
  Tensor tensor = Tensor::kS;
  std::int64_t dots = 0;
  std::array<std::int64_t, 17> by_digits{};  // [n]: dots that lost n whole digits; the last: more
  double median_digits = 0, p99_digits = 0, max_digits = 0;
  std::vector<CancelledDot> worst;  // by digits, at most 5
  // The cell with the largest relative error, if it is 1e-6 or more. `explained`: its error is within the bound,
  // small beside sum_abs, and large beside the sum alone because at least one digit cancelled.
  std::optional<CancelledDot> largest_relative;
  bool explained = false;
};

// ---- range ------------------------------------------------------------------------------------

// The reference's S or P beside the type that the kernel rounds it to.
struct RangeInType {
  Tensor tensor = Tensor::kS;
  DType type = DType::kFp32;
  std::int64_t cells = 0;            // visible
  double smallest = 0, largest = 0;  // magnitudes; smallest: that is not 0
  double type_smallest_normal = 0, type_largest = 0;
  std::int64_t overflows = 0, subnormal = 0,
               vanishes = 0;  // beyond the largest; below normal; below half of the least
  double lost_of_row = 0;     // P: the largest share of a row's sum that vanishes
  // S: half an ULP of the largest score; P gets a relative error of that size.
  double error_of_largest = 0;
};

// ---- what each rounding adds ------------------------------------------------------------------

struct Contribution {
  reference::Rounded rounding = reference::Rounded::kOutput;
  std::string what;        // "P rounded to fp16"
  double rms = 0;          // error of o with this rounding alone
  double share = 0;        // rms^2 over the sum of all rms^2
  double rms_without = 0;  // with all the others: what leaving it out buys
};
struct Contributions {
  std::string why_not;               // nothing was computed; else empty
  std::int64_t rows = 0, cells = 0;  // of o that were looked at
  std::vector<Contribution> parts;   // largest first
  double rms_of_parts = 0;           // root of the sum of squares
  double rms_together = 0;           // the twin with all of them
  double rms_observed = 0;
  // Share of the observed error's squares that is left after the twin's error is subtracted cell by cell: 0 if both
  // err alike, about 2 if the twin's errors are as large but unrelated.
  double left_over = 0;
  // The observed error is at most kExplainedFactor times the twin's, or each is nothing.
  static constexpr double kExplainedFactor = 4;
  bool explained = false;
  double ratio() const;  // observed over together; inf where the twin has no error
  // The same for roundings that the kernel does not make.
  std::vector<Contribution> instead;
};

// ---- all of it --------------------------------------------------------------------------------

struct NumericsOptions {
  int threads = 0;
  int twin_rows = 64;  // rows of o that the twin computes, spread evenly
};
struct Numerics {
  Comparison comparison;
  std::vector<TensorNumerics> tensors;  // in pipeline order
  std::vector<NonFiniteOrigin> origins;
  std::vector<Cancellation> cancellation;
  std::vector<RangeInType> ranges;
  Contributions contributions;
};
Numerics analyse_numerics(const Capture& capture, const NumericsOptions& options);

// ---- invariants -------------------------------------------------------------------------------

// What every right capture satisfies, checked on the capture alone, without a reference. In pipeline order.
enum class Invariant : std::uint8_t {
  kMaskedScores,      // S is -inf where masked and finite elsewhere
  kFiniteMax,         // m is finite on tiles with a key
  kMaxNotDecreasing,  // running_m
  kMaskedProbs,       // P is 0 where masked
  kSumOfProbs,        // sum P / l = 1
  kSumAtLeastOne,     // l of a row that sees a key
  kLogSumExp,         // lse = m + ln l
  kEmptyRows,         // o = 0 and lse = -inf where a row sees no key
  kOutputInRange,     // o within [min V, max V] of the visible keys, dim by dim
  // By running again.
  kConstantV,      // V = 1 gives o = 1
  kPermutedKeys,   // keys and v permuted: o stays
  kPermutedHeads,  // batch entries and heads permuted: o moves along
  kSplits,         // another number of splits: o stays
};
inline constexpr std::size_t kNumInvariants = 13;

struct InvariantInfo {
  Invariant id;
  const char* name;       // "sum-of-probs"
  const char* statement;  // what holds
  const char* meaning;    // what it means where it does not
};
const InvariantInfo& info(Invariant invariant);

struct InvariantResult {
  // kFollows: it is broken, but mostly in rows that break an earlier invariant, from which this may follow.
  enum class Verdict : std::uint8_t { kHolds, kBroken, kFollows, kNotTried };
  Invariant invariant = Invariant::kMaskedScores;
  Verdict verdict = Verdict::kNotTried;
  std::string why_not;                                // kNotTried
  Invariant follows_from = Invariant::kMaskedScores;  // kFollows
  std::int64_t checked = 0, broken = 0;               // cells
  // The first cell where it does not hold: what was found, what it should be, and the limit of their distance.
  Tensor tensor = Tensor::kO;
  std::array<std::int64_t, 5> index{};
  double actual = 0, expected = 0, limit = 0;
  double max_err_over_limit = 0;   // over all that was checked; inf where equality is asked for
  std::vector<std::uint8_t> rows;  // of the region: 1 where it does not hold
};

// What it means that it is broken: as info() has it, but of a first cell that is NaN.
const char* meaning_of(const InvariantResult& broken);

// The nine that a capture alone can break. Takes the time and memory of reading it once.
std::vector<InvariantResult> check_invariants(const Capture& capture);

// The four that run the production kernel again. `known`: the results for its capture; where one is broken, what does
// not hold here follows from it. Limits come from norms of q, k and v, not from a reference.
std::vector<InvariantResult> check_invariants_by_runs(
    const Experiment& experiment, const std::vector<InvariantResult>& known,
    const std::function<void(int step, int steps, const std::string& what)>& on_step = {});

// One sentence for each that is broken, with place and meaning; none for what follows from it.
std::vector<std::string> broken_invariants(const std::vector<InvariantResult>& results);

// Adds them to the notes of a comparison of a sample of the rows, and makes it diverge where any is broken and cells
// are judged by their bounds: the invariants were checked on every row.
void look_elsewhere(const std::vector<InvariantResult>& results, const Tolerance& tolerance,
                    Comparison& comparison);

// ---- baseline ---------------------------------------------------------------------------------

struct BaselineTensor {
  std::string name;
  std::vector<std::int64_t> ulps, ratios;
  Census census;
};
struct Baseline {
  std::string of;  // problem, tiles, inputs, stages: one line; runs of others are not compared
  std::string kernel, created, build_id;  // may be any kernel's
  std::vector<BaselineTensor> tensors;
};
Baseline baseline_of(const Capture& capture, const Numerics& numerics);
std::string baseline_text(const Baseline& baseline);  // JSON
// Throws Error for a text that is no baseline.
Baseline read_baseline(const std::string& text, const std::string& path);

struct Drift {
  std::string tensor;
  std::string what;  // "error over bound: 90 % of cells within 0.31x, were within 0.12x"
};
struct DriftReport {
  bool identical = false;  // every count of every histogram
  std::vector<Drift> drifted;
};
// Drift: the Kolmogorov-Smirnov distance of two histograms of error over bound is beyond chance (1e-6), and their
// median, 90 % or 99 % moved by more than a quarter; or there are NaN, infinities or zeros that were not there.
// Throws Error where the two are of different cases.
DriftReport find_drift(const Baseline& before, const Baseline& now);

}  // namespace attn_diag
