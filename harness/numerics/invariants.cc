#include "harness/numerics/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "attn_diag/harness/inputs.h"
#include "attn_diag/reference/coarse_bounds.h"
#include "harness/numerics/operand_rows.h"

namespace attn_diag {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Index = std::array<std::int64_t, 5>;

constexpr std::array<InvariantInfo, kNumInvariants> kInvariants = {{
    {Invariant::kMaskedScores, "masked-scores", "S is -inf where masked and finite elsewhere",
     "the mask lets a key through or hides one, or q.k was not computed there"},
    {Invariant::kFiniteMax, "finite-max", "m is finite where the row has seen a key",
     "the maximum missed every key, or a score that is no number got into it"},
    {Invariant::kMaxNotDecreasing, "max-not-decreasing", "running_m never falls from tile to tile",
     "the maximum of the tile before is forgotten, or another row's is taken"},
    {Invariant::kMaskedProbs, "masked-probs", "P is exactly 0 where masked",
     "a masked key is given weight: its score is not -inf, or exp(-inf - -inf) is not guarded"},
    {Invariant::kSumOfProbs, "sum-of-probs", "the P of a tile sum up to its l",
     "l is summed over other keys than P: lanes, rows or a tail are left out or counted twice"},
    {Invariant::kSumAtLeastOne, "sum-in-range",
     "l of a row that sees n keys is at least 1, its largest P, and at most n",
     "l misses keys or counts some twice, is not rescaled or too often, or is relative to "
     "another max than m"},
    {Invariant::kLogSumExp, "log-sum-exp", "lse = m + ln l",
     "lse is in another base, lacks m or ln l, or takes them from another row or tile"},
    {Invariant::kEmptyRows, "empty-rows", "o = 0 and lse = -inf where a row sees no key",
     "0 / 0 or what lay in memory is written for a row without keys"},
    {Invariant::kOutputInRange, "output-in-range",
     "o lies between the least and the largest v of the keys that the row sees, dim by dim",
     "the weights of o do not sum up to 1 (l, a rescale, a merge), one is negative, or v is of "
     "other keys or dims"},
    {Invariant::kConstantV, "constant-v", "where v is constant o is that constant",
     "the weights do not sum up to 1: l misses keys or counts others, or is not rescaled as o is"},
    {Invariant::kPermutedKeys, "permuted-keys", "permuting the keys with v leaves o as it is",
     "a key counts by its place: a tail, a tile's edge, a rescale or a merge that is wrong"},
    {Invariant::kPermutedHeads, "permuted-heads",
     "permuting batch entries and heads permutes o alike",
     "an index or a stride of batch or head is wrong, or blocks share what each should have alone"},
    {Invariant::kSplits, "splits", "another number of splits leaves o as it is",
     "the merge of splits is wrong, or a split's first or last tile"},
}};

struct Keys {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

// The keys that each query sees, one run each.
std::vector<Keys> visible_keys(const Problem& p, std::int64_t first, std::int64_t queries) {
  std::vector<Keys> out;
  std::int64_t begin = 0;
  const auto sees = [&](std::int64_t q, std::int64_t j) {
    return reference::visible(p, static_cast<std::int32_t>(q), static_cast<std::int32_t>(j));
  };
  for (std::int64_t q = first; q < first + queries; ++q) {
    // Runs of later queries begin and end no earlier.
    std::int64_t j = begin;
    while (j < p.seqlen_k && !sees(q, j)) ++j;
    if (j == p.seqlen_k) {
      out.push_back({});
      continue;
    }
    begin = j;
    std::int64_t end = std::max(j + 1, out.empty() ? 0 : out.back().end);
    while (end < p.seqlen_k && sees(q, end)) ++end;
    out.push_back({begin, end});
  }
  return out;
}

class Rule {
 public:
  explicit Rule(Invariant invariant) { x_result.invariant = invariant; }

  void skip(std::string why) {
    if (x_result.why_not.empty()) x_result.why_not = std::move(why);
  }
  // Written positively, so that NaN breaks it. A limit of inf says nothing.
  void cell(std::int64_t row, Tensor t, const Index& index, double actual, double expected,
            double limit) {
    if (!(limit < kInf)) return;
    ++x_result.checked;
    const double error = std::fabs(actual - expected);
    const bool same = actual == expected;
    if (same || (std::isfinite(error) && error <= limit)) {
      if (!same) worst(error / limit);
      return;
    }
    worst(limit > 0 && std::isfinite(error) ? error / limit : kInf);
    ++x_result.broken;
    if (x_cells.empty() || x_cells.back().row != row)
      x_cells.push_back({row, t, index, actual, expected, limit});
  }
  // Counts cells that are as they should be.
  void held(std::int64_t cells) { x_result.checked += cells; }

  InvariantResult finish(std::int64_t rows) {
    using Verdict = InvariantResult::Verdict;
    InvariantResult& r = x_result;
    if (r.checked == 0) {
      skip("what it is about was not recorded, or cannot be judged");
      return r;
    }
    r.why_not.clear();
    r.verdict = r.broken > 0 ? Verdict::kBroken : Verdict::kHolds;
    r.rows.assign(static_cast<std::size_t>(r.broken > 0 ? rows : 0), 0);
    for (const BrokenCell& c : x_cells) r.rows[static_cast<std::size_t>(c.row)] = 1;
    if (!x_cells.empty()) show(x_cells.front(), r);
    return r;
  }
  // Says from which of `before` it follows, where one of them is broken in most of its rows; else shows the first
  // of its cells that lies in none of theirs.
  static void explain(const Rule& rule, InvariantResult& r,
                      const std::vector<InvariantResult>& before) {
    if (r.verdict != InvariantResult::Verdict::kBroken) return;
    const InvariantResult* root = nullptr;
    const BrokenCell* own = nullptr;
    std::size_t follow = 0;
    for (const BrokenCell& c : rule.x_cells) {
      const auto found = std::find_if(before.begin(), before.end(), [&](const InvariantResult& b) {
        return b.verdict == InvariantResult::Verdict::kBroken &&
               b.rows[static_cast<std::size_t>(c.row)] != 0;
      });
      if (found == before.end()) {
        if (own == nullptr) own = &c;
        continue;
      }
      ++follow;
      if (root == nullptr) root = &*found;
    }
    if (2 * follow > rule.x_cells.size()) {
      r.verdict = InvariantResult::Verdict::kFollows;
      r.follows_from = root->invariant;
    } else if (own != nullptr) {
      show(*own, r);
    }
  }

 private:
  void worst(double ratio) {
    x_result.max_err_over_limit = std::max(x_result.max_err_over_limit, ratio);
  }
  static void show(const BrokenCell& c, InvariantResult& r) {
    r.tensor = c.tensor;
    r.index = c.index;
    r.actual = c.actual;
    r.expected = c.expected;
    r.limit = c.limit;
  }

  InvariantResult x_result;
  std::vector<BrokenCell> x_cells;  // the first of each row that has any, in order
};

class Check {
 public:
  explicit Check(const Capture& c)
      : x_c(c),
        x_p(c.problem),
        x_g(c.geometry),
        x_tiles(num_kv_tiles(c.problem, c.geometry)),
        x_limits(c.problem, c.geometry, c.arithmetic),
        x_keys(visible_keys(c.problem, c.region.origin[2], c.region.extent[2])),
        x_bounds(reference::coarse_bounds(c.problem, c.geometry, c.arithmetic,
                                          {c.q.data(), c.k.data(), c.v.data()})),
        x_v_finite(!has_nonfinite(c.v, c.problem.dtype)) {}

  std::vector<InvariantResult> run() {
    const auto& [origin, extent] = x_c.region;
    x_rows = extent[0] * extent[1] * extent[2];
    for (x_row = 0; x_row < x_rows; ++x_row) {
      x_query = x_row % extent[2];
      x_at = {origin[0] + x_row / (extent[1] * extent[2]),
              origin[1] + x_row / extent[2] % extent[1], origin[2] + x_query, 0, 0};
      masked();
      maxima();
      sums();
      log_sum_exp();
      output();
    }
    if (!x_bounds.scores_finite)
      for (Rule* rule :
           {&x_masked_scores, &x_finite_max, &x_masked_probs, &x_sum_in_range, &x_log_sum_exp})
        rule->skip("scores may overflow, or q or k holds NaN or infinity");
    if (!x_bounds.scores_finite)
      x_output.skip("scores may overflow, or q or k holds NaN or infinity");
    if (!x_v_finite) x_output.skip("v holds NaN or infinity");
    Rule* const rules[] = {&x_masked_scores, &x_finite_max,   &x_not_decreasing,
                           &x_masked_probs,  &x_sum_of_probs, &x_sum_in_range,
                           &x_log_sum_exp,   &x_empty,        &x_output};
    if (std::all_of(x_keys.begin(), x_keys.end(), [](const Keys& k) { return k.count() > 0; }))
      x_empty.skip("every row sees a key");
    std::vector<InvariantResult> out;
    for (Rule* rule : rules) {
      InvariantResult r = rule->finish(x_rows);
      Rule::explain(*rule, r, out);
      out.push_back(std::move(r));
    }
    return out;
  }

 private:
  const TensorData* recorded(Tensor t) const {
    return x_c.has(t) && x_c[t].uncertainty.empty() ? &x_c[t] : nullptr;
  }
  // Cell (i3, i4) of the row.
  double value(const TensorData& data, std::int64_t i3, std::int64_t i4 = 0) const {
    const std::int64_t n3 = data.shape.size() > 3 ? data.shape[3] : 1;
    const std::int64_t n4 = data.shape.size() > 4 ? data.shape[4] : 1;
    return data.at((x_row * n3 + i3) * n4 + i4);
  }
  Index place(std::int64_t i3) const { return {x_at[0], x_at[1], x_at[2], i3, 0}; }
  const Keys& keys() const { return x_keys[static_cast<std::size_t>(x_query)]; }
  // How many keys of these tiles the row sees.
  std::int64_t seen_in(std::int64_t first_tile, std::int64_t last_tile) const {
    const std::int64_t begin = std::max(keys().begin, first_tile * x_g.tile.block_n);
    const std::int64_t end = std::min(keys().end, (last_tile + 1) * x_g.tile.block_n);
    return std::max<std::int64_t>(0, end - begin);
  }
  std::int64_t first_tile(std::int64_t tile) const {
    return tile / x_g.tiles_per_split * x_g.tiles_per_split;
  }

  void masked() {
    // A kernel that masks by adding -inf leaves NaN where it was.
    if (!x_bounds.scores_finite) return;
    if (const TensorData* s = recorded(Tensor::kS)) {
      each_masked(*s, -kInf, x_masked_scores);
      for (std::int64_t j = keys().begin; j < keys().end; ++j) {
        const double x = value(*s, j);
        if (std::isfinite(x))
          x_masked_scores.held(1);
        else
          x_masked_scores.cell(x_row, Tensor::kS, place(j), x, 0, 0);
      }
    }
    if (const TensorData* p = recorded(Tensor::kP)) each_masked(*p, 0, x_masked_probs);
  }
  void each_masked(const TensorData& data, double expected, Rule& rule) {
    for (std::int64_t j = 0; j < x_p.seqlen_k; ++j) {
      if (j == keys().begin && keys().count() > 0) j = keys().end;
      if (j < x_p.seqlen_k) rule.cell(x_row, data.id, place(j), value(data, j), expected, 0);
    }
  }

  void maxima() {
    for (const Tensor t : {Tensor::kM, Tensor::kRunningM}) {
      const TensorData* m = recorded(t);
      if (m == nullptr || !x_bounds.scores_finite) continue;
      const bool running = t == Tensor::kRunningM || x_g.frame == Frame::kRunning;
      for (std::int64_t tile = 0; tile < x_tiles; ++tile) {
        if (seen_in(running ? first_tile(tile) : tile, tile) == 0) continue;
        const double x = value(*m, tile);
        if (std::isfinite(x))
          x_finite_max.held(1);
        else
          x_finite_max.cell(x_row, t, place(tile), x, 0, 0);
      }
    }
    const TensorData* m = recorded(Tensor::kRunningM);
    for (std::int64_t tile = 1; m != nullptr && tile < x_tiles; ++tile) {
      if (first_tile(tile) == tile) continue;
      const double before = value(*m, tile - 1), now = value(*m, tile);
      if (std::isnan(before) || std::isnan(now)) continue;  // finite-max has it
      if (now >= before)
        x_not_decreasing.held(1);
      else
        x_not_decreasing.cell(x_row, Tensor::kRunningM, place(tile), now, before, 0);
    }
  }

  // At least 1 and at most n, in the frame of m.
  void sum_of(Tensor t, std::int64_t at, double l, std::int64_t n, double m) {
    if (n == 0 || !x_bounds.scores_finite || !std::isfinite(m)) return;
    const double below = x_limits.sum_below_one(n, m);
    const auto most = static_cast<double>(n);
    const double nearest = l < 1 ? 1 : l > most ? most : std::isnan(l) ? 1 : l;
    x_sum_in_range.cell(x_row, t, place(at), l, nearest, nearest == most ? below * most : below);
  }

  void sums() {
    const TensorData* p = recorded(Tensor::kP);
    const TensorData* l = recorded(Tensor::kL);
    const TensorData* m = recorded(Tensor::kM);
    const TensorData* running_l = recorded(Tensor::kRunningL);
    const TensorData* running_m = recorded(Tensor::kRunningM);
    for (std::int64_t tile = 0; tile < x_tiles; ++tile) {
      if (l != nullptr && m != nullptr && x_g.frame == Frame::kTile)
        sum_of(Tensor::kL, tile, value(*l, tile), seen_in(tile, tile), value(*m, tile));
      if (running_l != nullptr && running_m != nullptr)
        sum_of(Tensor::kRunningL, tile, value(*running_l, tile), seen_in(first_tile(tile), tile),
               value(*running_m, tile));
      if (p == nullptr || l == nullptr) continue;
      const std::int64_t begin = tile * x_g.tile.block_n;
      const std::int64_t end = std::min<std::int64_t>(begin + x_g.tile.block_n, x_p.seqlen_k);
      double sum = 0;
      for (std::int64_t j = begin; j < end; ++j) sum += value(*p, j);
      // Where scores may be NaN, no numbers are asked for; else NaN in P or l breaks the sum.
      if (!x_bounds.scores_finite && !std::isfinite(sum)) continue;
      x_sum_of_probs.cell(x_row, Tensor::kL, place(tile), value(*l, tile), sum,
                          x_limits.sum_of_probs(end - begin, std::isfinite(sum) ? sum : 0));
    }
    const auto total = final_state();
    if (total && recorded(Tensor::kMergedL) != nullptr)
      sum_of(Tensor::kMergedL, x_g.num_splits - 1, total->l, keys().count(), total->m);
  }

  struct State {
    double m = -kInf, l = 0;
  };
  // The state of the whole row.
  std::optional<State> final_state() const {
    const TensorData* m = recorded(Tensor::kRunningM);
    const TensorData* l = recorded(x_g.has_split_merge ? Tensor::kMergedL : Tensor::kRunningL);
    if (m == nullptr || l == nullptr) return std::nullopt;
    if (!x_g.has_split_merge) return State{value(*m, x_tiles - 1), value(*l, x_tiles - 1)};
    State s;
    for (std::int64_t tile = 0; tile < x_tiles; ++tile) {
      if (tile + 1 < x_tiles && first_tile(tile + 1) != tile + 1) continue;  // not a split's last
      const double x = value(*m, tile);
      s.m = std::isnan(x) ? x : std::max(s.m, x);
    }
    s.l = value(*l, x_g.num_splits - 1);
    return s;
  }

  void log_sum_exp() {
    const TensorData* lse = recorded(Tensor::kLse);
    const auto total = final_state();
    if (lse == nullptr || !total || keys().count() == 0 || !x_bounds.scores_finite) return;
    if (!std::isfinite(total->m) || !(total->l > 0)) return;  // finite-max and sum-in-range
    x_log_sum_exp.cell(x_row, Tensor::kLse, place(0), value(*lse, 0), total->m + std::log(total->l),
                       x_limits.log_sum_exp(total->m, total->l));
  }

  void output() {
    const TensorData* o = recorded(Tensor::kO);
    const TensorData* lse = recorded(Tensor::kLse);
    if (keys().count() == 0) {
      if (!x_v_finite || !x_bounds.scores_finite) return;
      if (lse != nullptr) x_empty.cell(x_row, Tensor::kLse, place(0), value(*lse, 0), -kInf, 0);
      for (std::int64_t d = 0; o != nullptr && d < x_p.head_dim_v; ++d)
        x_empty.cell(x_row, Tensor::kO, place(d), value(*o, d), 0, 0);
      return;
    }
    if (o == nullptr || !x_v_finite || !x_bounds.scores_finite) return;
    extend_range();
    const double size =
        lse != nullptr && std::isfinite(value(*lse, 0))
            ? std::fabs(value(*lse, 0))
            : x_bounds.largest_score + std::log(static_cast<double>(keys().count()));
    const double limit = x_limits.outside_of_v(keys().count(), size, x_largest_v);
    for (std::int64_t d = 0; d < x_p.head_dim_v; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const double x = value(*o, d);
      const double nearest = std::isnan(x) ? x_low[at] : std::clamp(x, x_low[at], x_high[at]);
      x_output.cell(x_row, Tensor::kO, place(d), x, nearest, limit);
    }
  }

  // Least and largest v of the row's keys, from those of the row before where its keys are among them.
  void extend_range() {
    const auto batch = static_cast<std::int32_t>(x_at[0]),
               head = static_cast<std::int32_t>(x_at[1]);
    const bool other = batch != x_v_batch || head != x_v_head || keys().begin != x_covered.begin ||
                       keys().end < x_covered.end;
    if (batch != x_v_batch || head != x_v_head) x_v = operand_rows(x_c, 'v', batch, head);
    x_v_batch = batch;
    x_v_head = head;
    if (other) {
      x_low.assign(static_cast<std::size_t>(x_p.head_dim_v), kInf);
      x_high.assign(static_cast<std::size_t>(x_p.head_dim_v), -kInf);
      x_largest_v = 0;
      x_covered = {keys().begin, keys().begin};
    }
    for (std::int64_t j = x_covered.end; j < keys().end; ++j)
      for (std::size_t d = 0; d < x_low.size(); ++d) {
        const double v = x_v[static_cast<std::size_t>(j) * x_low.size() + d];
        x_low[d] = std::min(x_low[d], v);
        x_high[d] = std::max(x_high[d], v);
        x_largest_v = std::max(x_largest_v, std::fabs(v));
      }
    x_covered.end = keys().end;
  }

  const Capture& x_c;
  const Problem& x_p;
  const Geometry& x_g;
  const std::int64_t x_tiles;
  const reference::ConsistencyLimits x_limits;
  const std::vector<Keys> x_keys;  // of each query of the region
  const reference::CoarseBounds x_bounds;
  const bool x_v_finite;
  Rule x_masked_scores{Invariant::kMaskedScores}, x_finite_max{Invariant::kFiniteMax},
      x_not_decreasing{Invariant::kMaxNotDecreasing}, x_masked_probs{Invariant::kMaskedProbs},
      x_sum_in_range{Invariant::kSumAtLeastOne}, x_sum_of_probs{Invariant::kSumOfProbs},
      x_log_sum_exp{Invariant::kLogSumExp}, x_empty{Invariant::kEmptyRows},
      x_output{Invariant::kOutputInRange};
  // The row at hand.
  std::int64_t x_rows = 0, x_row = 0, x_query = 0;
  Index x_at{};
  std::int32_t x_v_batch = -1, x_v_head = -1;
  std::vector<double> x_v, x_low, x_high;
  Keys x_covered;
  double x_largest_v = 0;
};

std::string_view broken_text(const InvariantResult& r) {
  return r.invariant == Invariant::kFiniteMax ||
                 (r.invariant == Invariant::kMaskedScores && r.expected == 0)
             ? "a finite number"
             : "";
}

}  // namespace

const InvariantInfo& info(Invariant invariant) {
  return kInvariants[static_cast<std::size_t>(invariant)];
}

const char* meaning_of(const InvariantResult& broken) {
  return std::isnan(broken.actual) ? "no number is there: nobody stored it, or what nobody wrote, "
                                     "0 / 0 or inf - inf went into it"
                                   : info(broken.invariant).meaning;
}

InvariantResult not_tried(Invariant invariant, std::string why) {
  InvariantResult r;
  r.invariant = invariant;
  r.why_not = std::move(why);
  return r;
}

std::vector<InvariantResult> check_invariants(const Capture& capture) {
  constexpr std::size_t kOfCaptures = 9;
  std::string why;
  if (capture.isolated) why = "every stage was fed the reference's inputs";
  if (capture.arithmetic.part != Part::kAttention)
    why = "the kernel computes a part of attention alone";
  if (capture.q.empty() || capture.k.empty() || capture.v.empty()) why = "q, k or v is not there";
  if (!why.empty()) {
    std::vector<InvariantResult> none;
    for (std::size_t i = 0; i < kOfCaptures; ++i) none.push_back(not_tried(kInvariants[i].id, why));
    return none;
  }
  return Check(capture).run();
}

std::vector<std::string> broken_invariants(const std::vector<InvariantResult>& results) {
  std::vector<std::string> out;
  for (const InvariantResult& r : results) {
    if (r.verdict != InvariantResult::Verdict::kBroken) continue;
    const TensorInfo& t = info(r.tensor);
    std::string index;
    for (int axis = 0; axis < t.rank; ++axis)
      index += fmt::format("{}{}", axis == 0 ? "" : ", ", r.index[static_cast<std::size_t>(axis)]);
    const std::string_view words = broken_text(r);
    out.push_back(fmt::format(
        "Invariant {} is broken ({}): {}({}) is {:.9g}, expected {}; {} of {} cells. Means: {}.",
        info(r.invariant).name, info(r.invariant).statement, t.name, index, r.actual,
        words.empty() ? fmt::format("{:.9g} within {:.3g}", r.expected, r.limit)
                      : std::string(words),
        r.broken, r.checked, meaning_of(r)));
  }
  return out;
}

void look_elsewhere(const std::vector<InvariantResult>& results, const Tolerance& tolerance,
                    Comparison& comparison) {
  for (std::string& broken : broken_invariants(results)) {
    if (tolerance.use_bound && comparison.broken_elsewhere.empty())
      comparison.broken_elsewhere = broken;
    comparison.notes.push_back(std::move(broken));
  }
}

}  // namespace attn_diag
