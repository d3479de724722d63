#include "attn_diag/harness/identifiability.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/diagnose/contrast.h"

namespace attn_diag {
namespace {

using matching::Contrast;
using reference::RowIndex;
using reference::Variant;

constexpr int kRows = 64;
constexpr std::int64_t kRowsAtOnce = 512;
constexpr std::uint32_t kOutputs = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);

struct Way {
  std::size_t bug = 0;  // in Identifiability::bugs
  Variant variant;
};

// Free parameters at their known values, or else where the search for them begins.
void add_ways(std::size_t bug, const Variant& variant, std::vector<Way>& to) {
  if (!variant.free) {
    to.push_back({bug, variant});
    return;
  }
  for (const reference::ParameterValue& value : variant.free->named)
    to.push_back({bug, variant.at(value.value, value.named)});
  if (!variant.free->named.empty()) return;
  to.push_back({bug, variant.at(variant.free->low)});
  to.push_back({bug, variant.at(variant.free->high)});
}

std::vector<Way> ways_of(const reference::PredictionInputs& c, Identifiability& to) {
  std::vector<Way> ways;
  for (const reference::Hypothesis* hypothesis : reference::catalogue()) {
    const std::vector<Variant> variants = hypothesis->variants(c);
    if (variants.empty()) continue;
    const reference::HypothesisInfo& info = hypothesis->info();
    Identifiability::Bug bug;
    bug.id = info.id;
    bug.statement = info.statement;
    bug.formula = info.formula;
    for (const Variant& variant : variants) add_ways(to.bugs.size(), variant, ways);
    to.bugs.push_back(std::move(bug));
  }
  return ways;
}

// The right numbers first, then those of the ways.
std::vector<reference::Deviation> deviations_of(const std::vector<Way>& ways,
                                                const std::vector<std::size_t>& which) {
  std::vector<reference::Deviation> all(1);
  for (const std::size_t i : which) all.push_back(ways[i].variant.deviation);
  return all;
}

// Those of `which` that no row of the whole problem tells from the right numbers; `gaps` keeps the largest gap
// of each way.
std::vector<std::size_t> hidden_everywhere(const reference::PredictionInputs& c,
                                           const std::vector<Way>& ways,
                                           std::vector<std::size_t> which,
                                           std::vector<double>& gaps, int threads) {
  const Problem& p = c.problem();
  const std::int64_t all = std::int64_t{p.batch} * p.heads * p.seqlen_q;
  for (std::int64_t begin = 0; begin < all && !which.empty(); begin += kRowsAtOnce) {
    std::vector<RowIndex> rows;
    for (std::int64_t i = begin; i < std::min(all, begin + kRowsAtOnce); ++i)
      rows.push_back({static_cast<std::int32_t>(i / (std::int64_t{p.heads} * p.seqlen_q)),
                      static_cast<std::int32_t>(i / p.seqlen_q % p.heads),
                      static_cast<std::int32_t>(i % p.seqlen_q)});
    const Contrast contrast(c, rows, deviations_of(ways, which), kOutputs, threads);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < which.size(); ++i) {
      double& gap = gaps[which[i]];
      gap = std::max(gap, contrast.gap(0, i + 1).over_bound);
      if (gap <= 1 && contrast.knows_all(i + 1)) left.push_back(which[i]);
    }
    which = std::move(left);
  }
  return which;
}

void add_once(std::vector<std::string>& to, const std::string& id) {
  if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
}

}  // namespace

std::int64_t Identifiability::hidden() const {
  return std::count_if(bugs.begin(), bugs.end(), [](const Bug& b) { return b.is_hidden(); });
}
std::int64_t Identifiability::hidden_in_part() const {
  return std::count_if(bugs.begin(), bugs.end(),
                       [](const Bug& b) { return b.hidden > 0 && !b.is_hidden(); });
}
std::int64_t Identifiability::alike() const {
  return std::count_if(bugs.begin(), bugs.end(), [](const Bug& b) { return !b.alike.empty(); });
}

Identifiability identify(const reference::PredictionInputs& c, int threads) {
  Identifiability out;
  const std::vector<Way> ways = ways_of(c, out);
  std::vector<std::size_t> all(ways.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<RowIndex> rows = matching::rows_of(c.problem(), kRows);
  out.rows = static_cast<std::int64_t>(rows.size());
  const Contrast contrast(c, rows, deviations_of(ways, all), kOutputs, threads);

  std::vector<double> gaps(ways.size());
  std::vector<std::size_t> unseen, comparable;
  for (const std::size_t i : all) {
    gaps[i] = contrast.gap(0, i + 1).over_bound;
    if (!contrast.knows_all(i + 1)) continue;
    (gaps[i] > 1 ? comparable : unseen).push_back(i);
  }
  for (const std::size_t i : hidden_everywhere(c, ways, unseen, gaps, threads)) {
    Identifiability::Bug& bug = out.bugs[ways[i].bug];
    ++bug.hidden;
    bug.hidden_ways.push_back(ways[i].variant.label());
  }
  for (const std::size_t i : all) {
    Identifiability::Bug& bug = out.bugs[ways[i].bug];
    ++bug.ways;
    bug.shows_by = std::max(bug.shows_by, gaps[i]);
  }
  for (std::size_t a = 0; a < comparable.size(); ++a) {
    for (std::size_t b = a + 1; b < comparable.size(); ++b) {
      Identifiability::Bug &one = out.bugs[ways[comparable[a]].bug],
                           &other = out.bugs[ways[comparable[b]].bug];
      if (one.id == other.id) continue;
      const auto known = [](const Identifiability::Bug& bug, const std::string& id) {
        return std::find(bug.alike.begin(), bug.alike.end(), id) != bug.alike.end();
      };
      if (known(one, other.id) || contrast.apart(comparable[a] + 1, comparable[b] + 1)) continue;
      add_once(one.alike, other.id);
      add_once(other.alike, one.id);
    }
  }
  return out;
}

}  // namespace attn_diag
