#include "attn_diag/harness/tile_trials.h"

#include <algorithm>
#include <functional>
#include <string>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using IsWrong = std::function<bool(const TileTrial&, int b, int h, int q)>;

TileTrial trial(std::int32_t block_m, std::int32_t block_n, int shift, const IsWrong& is_wrong) {
  TileTrial t;
  t.problem.batch = 2;
  t.problem.heads = 3;
  t.problem.kv_heads = 3;
  t.problem.seqlen_q = t.problem.seqlen_k = 200 - shift;
  t.problem.head_dim = t.problem.head_dim_v = 8;
  t.problem.mask.kind = MaskKind::kCausal;
  t.geometry.tile = {block_m, block_n};
  t.geometry.tiles_per_split = 2;
  t.geometry.num_splits = (200 / block_n + 1) / 2;
  t.query_shift = t.key_shift = shift;
  t.label = std::to_string(block_m) + "x" + std::to_string(block_n) + " tiles";
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 3; ++h)
      for (int q = 0; q < t.problem.seqlen_q; ++q) t.wrong.push_back(is_wrong(t, b, h, q) ? 1 : 0);
  t.wrong_rows = std::count(t.wrong.begin(), t.wrong.end(), 1);
  return t;
}

TileFinding judge(const IsWrong& is_wrong) {
  return judge_tile_trials({trial(64, 64, 0, is_wrong), trial(32, 64, 0, is_wrong),
                            trial(64, 32, 0, is_wrong), trial(64, 64, 33, is_wrong)});
}

bool says(const TileFinding& finding, const std::string& text) {
  for (const std::string& statement : finding.statements)
    if (statement.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("a wrong set is traced to the edge it moves with") {
  struct Planted {
    Follows follows;
    IsWrong is_wrong;
    std::string statement;
  };
  const std::vector<Planted> planted = {
      {Follows::kHead, [](const TileTrial&, int, int h, int) { return h == 1; }, "of head 1"},
      {Follows::kBatch, [](const TileTrial&, int b, int, int) { return b == 1; }, "of batch 1"},
      {Follows::kWarpRows16,
       [](const TileTrial& t, int, int, int q) { return q % t.geometry.tile.block_m % 16 >= 8; },
       "q mod 16 in 8-15"},
      {Follows::kQueryTile,
       [](const TileTrial& t, int, int, int q) { return q % t.geometry.tile.block_m >= 48; },
       "at place 48-63 of their query tile"},
      {Follows::kKvTile,
       [](const TileTrial& t, int, int, int q) { return q >= t.geometry.tile.block_n; },
       "see more than one KV tile"},
      {Follows::kSplit,
       [](const TileTrial& t, int, int, int q) { return q >= 2 * t.geometry.tile.block_n; },
       "see more than one split"},
      {Follows::kKvEdge,
       [](const TileTrial& t, int, int, int q) { return q % t.geometry.tile.block_n == 0; },
       "at place 0 of its KV tile"},
      {Follows::kStays, [](const TileTrial& t, int, int, int q) { return q + t.query_shift >= 77; },
       "77-199 whatever the tiles"},
  };
  for (const Planted& p : planted) {
    const TileFinding finding = judge(p.is_wrong);
    CAPTURE(name(p.follows), name(finding.follows), finding.foretold);
    CHECK(finding.follows == p.follows);
    CHECK(says(finding, p.statement));
  }
}

TEST_CASE("rows that are right by luck do not hide what the others follow") {
  const TileFinding finding = judge([](const TileTrial& t, int b, int h, int q) {
    return q >= t.geometry.tile.block_n && (q * 7 + b + h) % 97 != 0;
  });
  CHECK(finding.follows == Follows::kKvTile);
  CHECK(finding.foretold < 1);
}

TEST_CASE("wrong rows without a rule are not given one") {
  std::uint32_t state = 1;
  const TileFinding finding = judge([&](const TileTrial&, int, int, int) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % 2 == 0;
  });
  CHECK(finding.follows == Follows::kUnclear);
  CHECK(judge([](const TileTrial&, int, int, int) { return true; }).follows == Follows::kEveryRow);
  CHECK(judge([](const TileTrial&, int, int, int) { return false; }).follows == Follows::kNothing);
}

TEST_CASE("what was varied alone is said to change o, or not to") {
  const auto all = [](const TileTrial&, int, int, int) { return true; };
  std::vector<TileTrial> trials = {trial(64, 64, 0, all), trial(32, 64, 0, all),
                                   trial(64, 32, 0, all)};
  for (TileTrial& t : trials) t.geometry.num_splits = 1;
  trials[0].changed_rows = trials[1].changed_rows = 0;
  trials[2].changed_rows = 5;
  const TileFinding finding = judge_tile_trials(std::move(trials));
  CHECK(says(finding, "o does not change with the query tile's size"));
  CHECK(says(finding, "o changes with the KV tile's size alone"));
}

}  // namespace attn_diag
