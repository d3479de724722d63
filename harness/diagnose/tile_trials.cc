// Judging which property of a row foretells, in every tiling, whether it is wrong.
#include "attn_diag/harness/tile_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "attn_diag/reference/reference.h"
#include "harness/base/index_ranges.h"

namespace attn_diag {
namespace {

// What a row sees under a trial's mask.
struct Sight {
  std::int32_t tiles = 0, splits = 0, last_key = -1;
};

Sight sight(const TileTrial& trial, std::int32_t query) {
  Sight out;
  std::int32_t tile = -1, split = -1;
  for (std::int32_t key = 0; key < trial.problem.seqlen_k; ++key) {
    if (!reference::visible(trial.problem, query, key)) continue;
    const std::int32_t t = key / trial.geometry.tile.block_n;
    const std::int32_t s = split_of_kv_tile(trial.geometry, t);
    out.tiles += t != tile;
    out.splits += s != split;
    tile = t;
    split = s;
    out.last_key = key;
  }
  return out;
}

std::int64_t label_of(Follows follows, const TileTrial& trial, std::int32_t batch,
                      std::int32_t head, std::int32_t query, const Sight& sees) {
  const TileShape tile = trial.geometry.tile;
  const std::int32_t in_tile = query % tile.block_m;
  switch (follows) {
    case Follows::kBatch:
      return batch;
    case Follows::kHead:
      return head;
    case Follows::kWarpRows16:
      return in_tile % 16;
    case Follows::kWarpRows32:
      return in_tile % 32;
    case Follows::kQueryTile:
      return in_tile;
    case Follows::kLastQueryTile:
      return query - in_tile + tile.block_m > trial.problem.seqlen_q ? 1 : 0;
    case Follows::kKvTile:
      return std::min(sees.tiles, 2);
    case Follows::kKvEdge:
      return sees.last_key < 0 ? -1 : sees.last_key % tile.block_n;
    case Follows::kKvTail:
      return trial.problem.seqlen_k % tile.block_n != 0 &&
                     sees.last_key / tile.block_n == trial.problem.seqlen_k / tile.block_n
                 ? 1
                 : 0;
    case Follows::kSplit:
      return std::min(sees.splits, 2);
    case Follows::kStays:
      return query + trial.query_shift;
    default:
      return 0;
  }
}

struct Count {
  std::int64_t right = 0, wrong = 0;
  void add(bool is_wrong, std::int64_t n = 1) { (is_wrong ? wrong : right) += n; }
  bool mostly_wrong() const { return wrong > right; }
};
using Counts = std::map<std::int64_t, Count>;  // by label

// One way of telling rows apart, counted in every trial.
struct RowRule {
  Follows follows = Follows::kUnclear;
  std::vector<Counts> by_trial;

  // Rows that are not as the other trials foretell.
  std::int64_t misses() const {
    std::int64_t missed = 0;
    for (std::size_t t = 0; t < by_trial.size(); ++t) {
      Counts learnt;
      Count all;
      for (std::size_t other = 0; other < by_trial.size(); ++other) {
        if (other == t) continue;
        for (const auto& [label, count] : by_trial[other]) {
          learnt[label].right += count.right;
          learnt[label].wrong += count.wrong;
          all.right += count.right;
          all.wrong += count.wrong;
        }
      }
      for (const auto& [label, count] : by_trial[t]) {
        const auto found = learnt.find(label);
        const bool wrong = (found == learnt.end() ? all : found->second).mostly_wrong();
        missed += wrong ? count.right : count.wrong;
      }
    }
    return missed;
  }

  std::vector<std::int64_t> wrong_labels() const {
    Counts pooled;
    for (const Counts& counts : by_trial)
      for (const auto& [label, count] : counts) {
        pooled[label].right += count.right;
        pooled[label].wrong += count.wrong;
      }
    std::vector<std::int64_t> out;
    for (const auto& [label, count] : pooled)
      if (count.mostly_wrong()) out.push_back(label);
    return out;
  }
};

constexpr std::array kCandidates = {
    Follows::kBatch,     Follows::kHead,          Follows::kWarpRows16, Follows::kWarpRows32,
    Follows::kQueryTile, Follows::kLastQueryTile, Follows::kKvTile,     Follows::kKvEdge,
    Follows::kKvTail,    Follows::kSplit,         Follows::kStays};

std::vector<RowRule> count_rows(const std::vector<TileTrial>& trials) {
  std::vector<RowRule> out;
  for (const Follows follows : kCandidates)
    out.push_back({follows, std::vector<Counts>(trials.size())});
  for (std::size_t t = 0; t < trials.size(); ++t) {
    const TileTrial& trial = trials[t];
    const Problem& p = trial.problem;
    for (std::int32_t query = 0; query < p.seqlen_q; ++query) {
      const Sight sees = sight(trial, query);
      for (std::int32_t batch = 0; batch < p.batch; ++batch)
        for (std::int32_t head = 0; head < p.heads; ++head) {
          const std::int64_t row = (std::int64_t{batch} * p.heads + head) * p.seqlen_q + query;
          const bool wrong = trial.wrong[static_cast<std::size_t>(row)] != 0;
          for (RowRule& c : out)
            c.by_trial[t][label_of(c.follows, trial, batch, head, query, sees)].add(wrong);
        }
    }
  }
  return out;
}

// "in every trial the wrong rows are those with ..."
std::string wrong_ones(Follows follows, const std::vector<std::int64_t>& labels) {
  const std::string ranges = index_ranges(labels);
  switch (follows) {
    case Follows::kBatch:
      return "the wrong rows are those of batch " + ranges;
    case Follows::kHead:
      return "the wrong rows are those of head " + ranges;
    case Follows::kWarpRows16:
      return "the wrong queries are those with q mod 16 in " + ranges;
    case Follows::kWarpRows32:
      return "the wrong queries are those with q mod 32 in " + ranges;
    case Follows::kQueryTile:
      return "the wrong queries are those at place " + ranges + " of their query tile";
    case Follows::kLastQueryTile:
      return labels == std::vector<std::int64_t>{1}
                 ? "the wrong queries are those of a query tile that is not full"
                 : "the wrong queries are those of full query tiles";
    case Follows::kKvTile:
      return labels == std::vector<std::int64_t>{2}
                 ? "the wrong queries are those that see more than one KV tile"
                 : "the wrong queries are those that see no more than one KV tile";
    case Follows::kKvEdge:
      return "the wrong queries are those whose last visible key is at place " + ranges +
             " of its KV tile";
    case Follows::kKvTail:
      return labels == std::vector<std::int64_t>{1}
                 ? "the wrong queries are those that see a KV tile that is not full"
                 : "the wrong queries are those that see full KV tiles only";
    case Follows::kSplit:
      return labels == std::vector<std::int64_t>{2}
                 ? "the wrong queries are those that see more than one split"
                 : "the wrong queries are those that see no more than one split";
    default:
      return "the wrong queries are " + ranges + " whatever the tiles";
  }
}

// Says which of the varied settings changes the numbers.
void say_what_changes(const std::vector<TileTrial>& trials, std::vector<std::string>& out) {
  const TileTrial& first = trials.front();
  struct Knob {
    const char* what;
    bool varied = false, changes = false;
  };
  Knob query_tile{"the query tile's size"}, kv_tile{"the KV tile's size"},
      splits{"the number of splits"};
  for (const TileTrial& trial : trials) {
    if (trial.changed_rows < 0) continue;
    const bool m = trial.geometry.tile.block_m != first.geometry.tile.block_m;
    const bool n = trial.geometry.tile.block_n != first.geometry.tile.block_n;
    const bool s = trial.geometry.num_splits != first.geometry.num_splits;
    if (m + n + s != 1) continue;
    Knob& knob = m ? query_tile : n ? kv_tile : splits;
    knob.varied = true;
    knob.changes |= trial.changed_rows > 0;
  }
  for (const Knob& knob : {query_tile, kv_tile, splits}) {
    if (!knob.varied) continue;
    out.push_back(knob.changes ? fmt::format("o changes with {} alone", knob.what)
                               : fmt::format("o does not change with {}", knob.what));
  }
}

}  // namespace

std::string_view name(Follows follows) {
  constexpr std::array<std::string_view, 14> kNames = {"nothing",
                                                       "every row",
                                                       "the batch",
                                                       "the head",
                                                       "groups of 16 rows",
                                                       "groups of 32 rows",
                                                       "the query tile's edge",
                                                       "the last query tile",
                                                       "the first KV tile's edge",
                                                       "the KV tile's edge",
                                                       "the last KV tile",
                                                       "the split's edge",
                                                       "the queries themselves",
                                                       "nothing that was varied"};
  return kNames[static_cast<std::size_t>(follows)];
}

TileFinding judge_tile_trials(std::vector<TileTrial> trials) {
  TileFinding finding;
  finding.trials = std::move(trials);
  std::int64_t rows = 0, wrong = 0;
  for (const TileTrial& trial : finding.trials) {
    rows += static_cast<std::int64_t>(trial.wrong.size());
    wrong += trial.wrong_rows;
  }
  const auto conclude = [&](Follows follows, double foretold) {
    finding.follows = follows;
    finding.foretold = foretold;
  };
  for (const TileTrial& trial : finding.trials)
    if (trial.wrong_rows == 0 && wrong > 0)
      finding.statements.push_back("nothing is wrong with " + trial.label);
  if (wrong == 0) {
    conclude(Follows::kNothing, 1);
  } else if (wrong == rows) {
    conclude(Follows::kEveryRow, 1);
    finding.statements.push_back("every row is wrong with every tiling");
  } else if (finding.trials.size() > 1) {
    // A rule has to be right about nearly every row, and much better than none.
    const std::int64_t without = std::min(wrong, rows - wrong);
    const RowRule* best = nullptr;
    std::int64_t fewest = 0;
    const std::vector<RowRule> candidates = count_rows(finding.trials);
    for (const RowRule& c : candidates) {
      const std::int64_t misses = c.misses();
      if (best == nullptr || misses < fewest) {
        best = &c;
        fewest = misses;
      }
    }
    const double foretold = 1.0 - static_cast<double>(fewest) / static_cast<double>(rows);
    if (foretold >= 0.97 && 3 * fewest <= without) {
      conclude(best->follows, foretold);
      finding.statements.push_back(wrong_ones(best->follows, best->wrong_labels()));
    } else {
      conclude(Follows::kUnclear, foretold);
      finding.statements.push_back(
          "no edge of a tile, warp or head tells the wrong rows in every tiling");
    }
  }
  if (wrong > 0) say_what_changes(finding.trials, finding.statements);
  return finding;
}

}  // namespace attn_diag
