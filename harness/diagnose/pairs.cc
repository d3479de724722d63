#include "harness/diagnose/pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "harness/base/parallel_for.h"

namespace attn_diag::matching {
namespace {

constexpr std::size_t kFirstRows = 3;  // on which a pair must be right before it gets the sample
constexpr std::size_t kPartners = 24;  // of a hypothesis whose parameter is fitted
constexpr double kRowOverhead = 4000;  // of predicting a row, in multiplications
constexpr double kFitRuns = 110;       // predictions that a fit makes of each of its rows
constexpr double kFitShare = 0.25;     // of the work, kept for pairs of which one is fitted
constexpr std::size_t kPairsAtOnce = 4096;  // pairs between two looks at what was spent
constexpr int kRowsToChooseFrom = 12;
constexpr double kLeastShare = 0.05;  // of the wrong rows, for a member of a union

// One member of a pair.
struct Single {
  reference::Variant variant;
  Generality generality = Generality::kFixed;
};

struct Pool {
  std::vector<Single> fixed, free;
};

Pool pool_of(const Search& search, const std::vector<const reference::Hypothesis*>& hypotheses) {
  Pool pool;
  for (const reference::Hypothesis* hypothesis : hypotheses)
    for (const reference::Variant& variant : hypothesis->variants(search.cuts().front())) {
      if (!variant.in_pairs) continue;
      if (!variant.free) {
        pool.fixed.push_back({variant, Generality::kFixed});
        continue;
      }
      pool.free.push_back({variant, Generality::kFitted});
      for (const reference::ParameterValue& value : variant.free->named)
        pool.fixed.push_back({variant.at(value.value, value.named), Generality::kNamed});
    }
  return pool;
}

// The first wrong rows of the sample as evidence of their own, for a quick no.
class FirstRows {
 public:
  explicit FirstRows(const Search& search) : x_search(search) {
    const Rows& sample = search.sample();
    // Rows that see few keys cost little, and most pairs fail there.
    std::vector<std::pair<std::int64_t, std::size_t>> by_keys;
    for (const std::size_t at :
         rows_to_fit(search.evidence(), sample, sample.size(), kRowsToChooseFrom))
      by_keys.emplace_back(keys_of(sample.row[at]), at);
    std::sort(by_keys.begin(), by_keys.end());
    if (by_keys.size() > kFirstRows)
      by_keys = {by_keys.front(), by_keys[by_keys.size() / 2], by_keys.back()};
    const Problem& p = search.cuts().front().problem();
    for (const auto& [keys, at] : by_keys) {
      x_at.push_back(at);
      x_row.push_back(sample.row[at]);
      x_lse_work.push_back(kRowOverhead + static_cast<double>(keys * p.head_dim));
      x_work.push_back(kRowOverhead + static_cast<double>(keys * (p.head_dim + p.head_dim_v)));
    }
  }

  std::size_t size() const { return x_row.size(); }

  // Adds what it cost to `spent`.
  bool explains_all(const reference::Deviation& deviation, double& spent) const {
    for (std::size_t i = 0; i < size(); ++i) {
      // Most pairs fail here already, and lse needs no product with v.
      if (have_lse()) {
        spent += x_lse_work[i];
        if (!explains_lse(deviation, i)) return false;
      }
      spent += x_work[i];
      if (!judge(deviation, i).telling) return false;
    }
    return true;
  }

  // What a bug does to row `i`: whether it leaves it as it should be, to the bit, and whether the row is as
  // the bug would have it. Where it is not known what it does, it may be anything.
  struct Effect {
    bool leaves_row = true, explains_row = true, leaves_lse = false, explains_lse = true;
  };
  Effect effect(const reference::Deviation& deviation, std::size_t i) const {
    const Evidence& evidence = x_search.evidence();
    const Rows& sample = x_search.sample();
    thread_local reference::Prediction out;
    reference::predict(x_search.cuts().front(), std::span(&x_row[i], 1), deviation, evidence.mask(),
                       out);
    Effect effect;
    for (const Tensor t : evidence.tensors()) {
      const reference::Prediction::Values &with = out[t], &right = sample.right[t];
      const auto n = static_cast<std::size_t>(evidence.cells(t));
      bool leaves = true, explains = true;
      for (std::size_t d = 0; d < std::min(n, with.value.size()); ++d) {
        const std::size_t cell = x_at[i] * n + d;
        leaves = leaves && with.known[d] != 0 &&
                 residual_over_bound(with.value[d], right.value[cell], 0) == 0;
        explains = explains && explains_cell(with, d, t, cell);
      }
      effect.leaves_row = effect.leaves_row && leaves;
      effect.explains_row = effect.explains_row && explains;
      if (t == Tensor::kLse) effect.leaves_lse = leaves, effect.explains_lse = explains;
    }
    return effect;
  }
  // Mean of ln(1 + residual/bound) of the rows' worst cells.
  double distance(const reference::Variant& variant) const {
    double sum = 0;
    for (std::size_t i = 0; i < x_row.size(); ++i)
      sum += std::log1p(std::min(judge(variant.deviation, i).worst, 1e12));
    return sum;
  }
  // For one row, on average.
  double work() const {
    return std::accumulate(x_work.begin(), x_work.end(), 0.0) /
           static_cast<double>(std::max<std::size_t>(1, x_work.size()));
  }

 private:
  std::int64_t keys_of(const reference::RowIndex& row) const {
    const Problem& p = x_search.cuts().front().problem();
    std::int64_t keys = 0;
    for (std::int32_t key = 0; key < p.seqlen_k; ++key)
      keys += reference::visible(p, row.query, key);
    return keys;
  }
  bool have_lse() const { return x_search.evidence().has(Tensor::kLse); }
  // What is not known explains anything.
  bool explains_cell(const reference::Prediction::Values& predicted, std::size_t at, Tensor t,
                     std::size_t cell) const {
    const double actual = x_search.sample().actual[static_cast<std::size_t>(t)][cell];
    return predicted.known[at] == 0 ||
           residual_over_bound(actual, predicted.value[at], predicted.bound[at]) <= 1;
  }
  bool explains_lse(const reference::Deviation& deviation, std::size_t i) const {
    thread_local reference::Prediction out;
    reference::predict(x_search.cuts().front(), std::span(&x_row[i], 1), deviation,
                       tensor_bit(Tensor::kLse), out);
    return explains_cell(out[Tensor::kLse], 0, Tensor::kLse, x_at[i]);
  }
  RowFit judge(const reference::Deviation& deviation, std::size_t i) const {
    thread_local reference::Prediction out;
    reference::predict(x_search.cuts().front(), std::span(&x_row[i], 1), deviation,
                       x_search.evidence().mask(), out);
    return judge_row(x_search.evidence(), x_search.sample(), x_at[i], out, x_at[i]);
  }

  const Search& x_search;
  std::vector<std::size_t> x_at;
  std::vector<reference::RowIndex> x_row;
  std::vector<double> x_work, x_lse_work;
};

// Which pairs cannot account for the first rows. A row that one bug leaves as it is, to the bit, must be accounted for
// by the other bug alone; so must the lse of a row.
class Prospects {
 public:
  Prospects(const Search& search, const FirstRows& rows, const std::vector<Single>& singles)
      : x_of(singles.size()) {
    for (const Single& single : singles)
      x_family.push_back(single.variant.hypotheses.front()->info().family);
    parallel_for(static_cast<std::int64_t>(singles.size()), search.threads(), [&](std::int64_t s) {
      const auto at = static_cast<std::size_t>(s);
      for (std::size_t i = 0; i < rows.size(); ++i)
        x_of[at].push_back(rows.effect(singles[at].variant.deviation, i));
    });
  }

  bool allow(std::size_t a, std::size_t b) const {
    if (may_meet(x_family[a], x_family[b])) return true;
    for (std::size_t i = 0; i < x_of[a].size(); ++i) {
      const FirstRows::Effect &of_a = x_of[a][i], &of_b = x_of[b][i];
      if ((of_a.leaves_lse && !of_b.explains_lse) || (of_b.leaves_lse && !of_a.explains_lse) ||
          (of_a.leaves_row && !of_b.explains_row) || (of_b.leaves_row && !of_a.explains_row))
        return false;
    }
    return true;
  }

 private:
  // What a bug of softmax, recurrence or merge does to a row depends on its scores: it may leave the row alone, but
  // no longer once another bug has changed the scores, or other steps that depend on them.
  static bool may_meet(reference::Family a, reference::Family b) {
    using reference::Family;
    const auto depends = [](Family f) {
      return f == Family::kSoftmax || f == Family::kRecurrence || f == Family::kCombine;
    };
    const auto follows = [](Family f) {
      return f == Family::kPv || f == Family::kFinish || f == Family::kStore;
    };
    return (depends(a) && !follows(b)) || (depends(b) && !follows(a));
  }

  std::vector<reference::Family> x_family;
  std::vector<std::vector<FirstRows::Effect>> x_of;  // [single][row]
};

// The members of a pair, each with its parameter as it was fitted for the pair.
std::vector<reference::Variant> members_of(const Candidate& pair) {
  std::vector<reference::Variant> members;
  for (const reference::Variant& part : pair.parts) {
    members.push_back(part);
    if (!part.free) continue;
    for (const reference::ParameterValue& value : pair.variant.parameters)
      if (value.name == part.free->name) members.back() = part.at(value.value, value.named);
  }
  return members;
}

// Whether a bug alone would be seen in some row of the sample. One that would not is no half of a pair: it
// only lends the other a parameter.
bool shows_alone(const Search& search, const reference::Variant& variant) {
  const Rows& sample = search.sample();
  const Evidence& evidence = search.evidence();
  thread_local reference::Prediction out;
  for (std::size_t at = 0; at < sample.size(); ++at) {
    reference::predict(search.cuts().front(), std::span(&sample.row[at], 1), variant.deviation,
                       evidence.mask(), out);
    for (const Tensor t : evidence.tensors()) {
      const reference::Prediction::Values &with = out[t], &right = sample.right[t];
      const auto n = static_cast<std::size_t>(evidence.cells(t));
      for (std::size_t i = 0; i < std::min(n, with.value.size()); ++i) {
        if (with.known[i] == 0) return true;
        const std::size_t r = at * n + i;
        if (residual_over_bound(with.value[i], right.value[r], right.bound[r]) > 1) return true;
      }
    }
  }
  return false;
}

void keep_inside(const Search& search, std::vector<Candidate>& found) {
  search.keep_inside(found);
  std::erase_if(found, [&](const Candidate& c) {
    const std::vector<reference::Variant> members = members_of(c);
    return !std::all_of(members.begin(), members.end(),
                        [&](const reference::Variant& v) { return shows_alone(search, v); });
  });
}

// Places in `singles`, those first that come nearest to the first rows.
std::vector<std::uint32_t> nearest_first(const Search& search, const FirstRows& rows,
                                         const std::vector<Single>& singles) {
  std::vector<double> distance(singles.size());
  parallel_for(static_cast<std::int64_t>(singles.size()), search.threads(), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    distance[at] = rows.distance(singles[at].variant);
  });
  std::vector<std::uint32_t> order(singles.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return distance[a] < distance[b]; });
  return order;
}

using Pair = std::pair<std::uint32_t, std::uint32_t>;

// All that the first rows do not rule out, by the sum of their members' ranks.
std::vector<Pair> pairs_in_order(const Search& search, const FirstRows& rows,
                                 const std::vector<Single>& singles) {
  const Prospects prospects(search, rows, singles);
  const std::vector<std::uint32_t> order = nearest_first(search, rows, singles);
  const auto n = static_cast<std::uint32_t>(order.size());
  std::vector<Pair> pairs;
  for (std::uint32_t sum = 1; sum + 1 < 2 * n; ++sum)
    for (std::uint32_t i = sum < n ? 0 : sum - n + 1; 2 * i < sum; ++i) {
      const auto [a, b] = std::minmax(order[i], order[sum - i]);
      if (singles[a].variant.hypotheses != singles[b].variant.hypotheses && prospects.allow(a, b))
        pairs.emplace_back(a, b);
    }
  return pairs;
}

// Pairs of which neither has a free parameter, that explain the first rows.
std::vector<Candidate> fixed_pairs(const Search& search, const FirstRows& rows,
                                   const std::vector<Single>& singles, PairLimit& limit) {
  const std::vector<Pair> pairs = pairs_in_order(search, rows, singles);
  limit.all += static_cast<std::int64_t>(pairs.size());
  std::vector<Candidate> found;
  double spent = 0;
  for (std::size_t begin = 0; begin < pairs.size() && spent < (1 - kFitShare) * limit.work;
       begin += kPairsAtOnce) {
    if (limit.on_tried) limit.on_tried(limit.tried, limit.all);
    const std::size_t n = std::min(kPairsAtOnce, pairs.size() - begin);
    // There may be millions: only the answer for each is kept.
    std::vector<std::uint8_t> explains(n, 0);
    std::vector<double> work(n, 0);
    parallel_for(static_cast<std::int64_t>(n), search.threads(), [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      const auto [a, b] = pairs[begin + at];
      const std::optional<reference::Deviation> both =
          reference::unite(singles[a].variant.deviation, singles[b].variant.deviation);
      explains[at] = both && rows.explains_all(*both, work[at]) && search.fits_sample(*both);
    });
    spent += std::accumulate(work.begin(), work.end(), 0.0);
    limit.tried += static_cast<std::int64_t>(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (explains[i] == 0) continue;
      const auto [first, second] = pairs[begin + i];
      const Single &a = singles[first], &b = singles[second];
      Candidate candidate;
      candidate.variant = reference::combine(a.variant, b.variant).value();
      candidate.parts = {a.variant, b.variant};
      candidate.generality = static_cast<int>(a.generality) + static_cast<int>(b.generality);
      candidate.order = static_cast<std::int64_t>(first * singles.size() + second);
      found.push_back(std::move(candidate));
    }
  }
  return found;
}

// Pairs of which one has a free parameter, with the partners that come nearest.
std::vector<Candidate> fitted_pairs(const Search& search, const FirstRows& rows, const Pool& pool) {
  std::vector<std::uint32_t> nearest = nearest_first(search, rows, pool.fixed);
  nearest.resize(std::min(nearest.size(), kPartners));
  std::vector<Candidate> found;
  for (const std::uint32_t partner : nearest)
    for (const Single& free : pool.free) {
      std::optional<reference::Variant> both =
          reference::combine(free.variant, pool.fixed[partner].variant);
      if (!both) continue;
      Candidate candidate;
      candidate.variant = std::move(*both);
      candidate.parts = {free.variant, pool.fixed[partner].variant};
      candidate.generality = static_cast<int>(pool.fixed[partner].generality);
      candidate.order = static_cast<std::int64_t>(found.size());
      found.push_back(std::move(candidate));
    }
  return found;
}

}  // namespace

std::vector<Candidate> find_pairs(const Search& search,
                                  const std::vector<const reference::Hypothesis*>& hypotheses,
                                  PairLimit& limit) {
  const Pool pool = pool_of(search, hypotheses);
  const FirstRows rows(search);
  std::vector<Candidate> found = fixed_pairs(search, rows, pool.fixed, limit);
  keep_inside(search, found);
  if (!found.empty()) return found;
  found = fitted_pairs(search, rows, pool);
  const double each = kFitRuns * static_cast<double>(rows.size()) * rows.work();
  const auto most = static_cast<std::size_t>(kFitShare * limit.work / std::max(1.0, each));
  limit.all += static_cast<std::int64_t>(found.size());
  if (found.size() > most) found.resize(most);
  limit.tried += static_cast<std::int64_t>(found.size());
  if (limit.on_tried) limit.on_tried(limit.tried, limit.all);
  keep_inside(search, found);
  return found;
}

std::vector<Candidate> find_union(const Search& search, const std::vector<Candidate>& singles) {
  const Rows& sample = search.sample();
  std::vector<std::size_t> wrong;
  for (std::size_t at = 0; at < sample.size(); ++at)
    if (sample.wrong[at] != 0) wrong.push_back(at);
  const auto explains = [](const Candidate& c, std::size_t at) {
    return !c.explained.empty() && c.explained[at] != 0;
  };
  const auto least =
      static_cast<std::int64_t>(std::ceil(kLeastShare * static_cast<double>(wrong.size())));
  const Candidate *first = nullptr, *second = nullptr;
  for (const Candidate& a : singles)
    for (const Candidate& b : singles) {
      if (&a >= &b || a.explained.empty() || b.explained.empty()) continue;
      std::int64_t only_a = 0, only_b = 0, neither = 0;
      for (const std::size_t at : wrong) {
        const bool by_a = explains(a, at), by_b = explains(b, at);
        only_a += by_a && !by_b;
        only_b += by_b && !by_a;
        neither += !by_a && !by_b;
      }
      if (neither > 0 || only_a < least || only_b < least) continue;
      // Among several such, those that overlap most: each has more rows to speak for it.
      if (first != nullptr &&
          a.tally.telling + b.tally.telling <= first->tally.telling + second->tally.telling)
        continue;
      first = &a;
      second = &b;
    }
  if (first == nullptr) return {};
  if (first->tally.telling < second->tally.telling) std::swap(first, second);
  return {*first, *second};
}

}  // namespace attn_diag::matching
