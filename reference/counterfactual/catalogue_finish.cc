// F2, F11, F29, F30, F34: the last division, factors of the output, lse.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "reference/counterfactual/catalogue_lanes.h"
#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_rows.h"
#include "reference/counterfactual/catalogue_sums.h"
#include "reference/counterfactual/entry.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

void gains(const PredictionInputs& c, Variants& out) {
  const double scale = c.problem().softmax_scale;
  FreeParameter g{"g", 0x1p-14, 0x1p14, {0.25, 1, 4}, {}};
  g.named = {{"g", scale, "softmax_scale"}, {"g", 1 / scale, "1 / softmax_scale"}};
  for (const int n : {2, 4, 8, 16, 32}) {
    g.named.push_back({"g", static_cast<double>(n), std::to_string(n)});
    g.named.push_back({"g", 1.0 / n, "1 / " + std::to_string(n)});
  }
  out.add_free({}, g);
}

// The merge sums l over lanes that have a split each: down to lane 0, with a step missing, or not at all.
void sums_of_splits(const PredictionInputs& c, Variants& out) {
  const std::int32_t lanes = kLanesOfWarp;
  if (used_splits(c) < 2 || used_splits(c) > lanes) return;
  const auto add = [&](LaneSum sum, std::int32_t steps) {
    for (const bool guard : {true, false}) {
      out.with(
          [&](Deviation& d) {
            d.finish.lanes_of_splits = true;
            d.finish.lane_sum = sum;
            d.finish.lane_steps = std::max(steps, 0);
            d.finish.lanes = lanes;
            d.finish.lse_of_lane = true;
            d.finish.lane_guard = guard;
          },
          {steps_value(steps), named("lane of a key", 100, "its split"), number("lanes", lanes),
           named("lse", 1, "of lane 0"), named("sum of 0", guard, guard ? "o = 0" : "o = inf")});
    }
  };
  add(LaneSum::kShuffleDown, -1);
  add(LaneSum::kButterfly, 0);
  for (std::int32_t step = 1; step < lanes; step *= 2) add(LaneSum::kButterfly, lanes - 1 - step);
}

// In the loop, a tile's sum is the one that lane 0 has; after it, lse alone may come from lane 0.
void incomplete_sums(const PredictionInputs& c, Variants& out, bool in_loop) {
  const std::int32_t block_n = c.geometry().tile.block_n;
  const auto add = [&](LaneMap map, const char* what, std::int32_t lanes, std::int32_t steps) {
    for (const bool of_lane : {true, false})
      for (const bool guard : {true, false}) {
        // Where shuffles go down, lane 0 has the right sum.
        if ((steps < 0 || in_loop) && of_lane) continue;
        // Without a mask every lane has keys; a merge has what lane 0 writes.
        if (guard && (merges(c) || c.problem().mask.kind == MaskKind::kNone)) continue;
        std::vector<ParameterValue> values = {
            steps_value(steps), named("lane of a key", static_cast<double>(map), what),
            number("lanes", lanes)};
        if (!in_loop) values.push_back(named("lse", of_lane, of_lane ? "of lane 0" : "right"));
        values.push_back(named("sum of 0", guard, guard ? "o = 0" : "o = inf"));
        out.with(
            [&](Deviation& d) {
              d.finish.lane_sum = steps < 0 ? LaneSum::kShuffleDown : LaneSum::kButterfly;
              d.finish.lane_steps = std::max(steps, 0);
              d.finish.lane_map = map;
              d.finish.lanes = lanes;
              d.finish.lane_sum_in_loop = in_loop;
              d.finish.lse_of_lane = of_lane;
              d.finish.lane_guard = guard;
            },
            std::move(values));
      }
  };
  const auto add_all = [&](LaneMap map, const char* what, std::int32_t lanes) {
    for (const std::int32_t steps : incomplete_butterflies(lanes)) add(map, what, lanes, steps);
  };
  if (merges(c) && !in_loop) return sums_of_splits(c, out);
  const std::int32_t most = most_lanes(c);
  for (std::int32_t lanes = 4; lanes <= most && !in_loop; lanes *= 2)
    add(LaneMap::kInterleaved, "j % lanes", lanes, -1);
  add_all(LaneMap::kInterleaved, "j % lanes", most);
  if (block_n >= 8) add_all(LaneMap::kQuad, "j % 8 / 2", 4);
  if (block_n >= 8 && !in_loop) add(LaneMap::kQuad, "j % 8 / 2", 4, -1);
  for (const std::int32_t warps : {8, 4, 2})
    if (block_n % warps == 0 && c.problem().head_dim_v % warps == 0)
      return add_all(LaneMap::kBlocked, "j / (kBlockN / lanes)", warps);
}

void repeated_tile_sums(const PredictionInputs& c, Variants& out) {
  if (longest_split(c) == 1) return;
  std::vector<NamedTiles> apart = tiles_treated_apart(c);
  apart.push_back({{TileChoice::kOne, 0}, "the first"});
  apart.push_back({{TileChoice::kFrom, 1}, "all but the first"});
  for (const NamedTiles& some : apart)
    for (const double n : {2, 4, 8, 16, 32})
      under_loops(c, out, some.tiles,
                  [&](Deviation& d) {
                    d.recurrence.tile_l_times = n;
                    d.recurrence.tile_l_tiles = some.tiles;
                  },
                  {number("n", n), tiles_value("on", some)});
}

void divisors(const PredictionInputs& c, Variants& out) {
  const std::pair<Divisor, const char*> forms[] = {
      {Divisor::kLse, "lse"},      {Divisor::kExpOfLse, "e^lse"}, {Divisor::kM, "m"},
      {Divisor::kExpOfM, "e^m"},   {Divisor::kLogOfL, "ln l"},    {Divisor::kLTimesM, "l m"},
      {Divisor::kLPlusM, "l + m"},
  };
  for (const auto& [form, what] : forms)
    out.with([&, form = form](Deviation& d) { d.finish.divisor = form; },
             {named("divisor", static_cast<double>(form), what)});
  // To the powers 0 and 2 it has hypotheses of its own.
  for (const auto& [power, what] : {std::pair{0.5, "l^(1 / 2)"}, {-1.0, "1 / l"}, {3.0, "l^3"}})
    out.with([&, power = power](Deviation& d) { d.finish.l_power = power; },
             {named("divisor", 20 + power, what)});
  const auto add = [&](const Half& half, bool columns) {
    const std::string where = std::string(half.odd ? "odd" : "even") + " runs of " +
                              std::to_string(half.size) + (columns ? " columns" : " rows");
    for (const double power : {0.0, 2.0})
      out.with(
          [&](Deviation& d) {
            d.finish.l_power = power;
            (columns ? d.finish.columns : d.finish.rows) = half;
          },
          {named("divisor", 100 + half.size * 4 + half.odd * 2 + columns,
                 std::string(power == 0 ? "1" : "l^2") + " in " + where)});
  };
  for (const HalfIn& half : halves_of(c)) add(half.half, half.columns);
}

void narrow_outputs(const PredictionInputs& c, Variants& out) {
  const DType stored = c.arithmetic().output;
  const auto add = [&](Narrow type, const char* name) {
    out.with([&](Deviation& d) { d.finish.o_type = type; },
             {named("of", 0, "o"), named("type", static_cast<double>(type), name)});
  };
  if (stored != DType::kBf16) add(Narrow::kBf16, "bf16");
  if (stored == DType::kFp32) {
    add(Narrow::kFp16, "fp16");
    add(Narrow::kTf32, "tf32");
  }
  if (stored != DType::kBf16) add(Narrow::kFp16Cut, "fp16, cut off");
  if (stored != DType::kFp16) add(Narrow::kBf16Cut, "bf16, cut off");
  add(Narrow::kFp8E4m3, "fp8 e4m3");
  for (const auto& [type, name] : {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}})
    out.with([&, type = type](Deviation& d) { d.finish.lse_type = type; },
             {named("of", 1, "lse"), named("type", static_cast<double>(type), name)});
}

void lse_forms(const PredictionInputs& c, Variants& out) {
  const std::pair<LseForm, const char*> forms[] = {
      {LseForm::kBase2, "lse log2 e: in base 2"},
      {LseForm::kTimesLn2, "lse ln 2: converted twice"},
      {LseForm::kWithoutMax, "ln l"},
      {LseForm::kWithoutLog, "m"},
      {LseForm::kLogOfBase2, "m + log2 l"},
      {LseForm::kSum, "m + l"},
      {LseForm::kMaxUnscaled, "m / softmax_scale + ln l"},
      {LseForm::kMaxTwice, "m softmax_scale + ln l"},
      {LseForm::kNegated, "ln l - m"},
      {LseForm::kMaxOfBase2, "m log2 e + ln l"},
      {LseForm::kMaxTimesLn2, "m ln 2 + ln l"},
      {LseForm::kLogTimesLn2, "m + ln 2 ln l"},
  };
  const std::pair<LseForm, const char*> of_empty[] = {
      {LseForm::kEmptyInfinite, "+inf where a row sees no key"},
      {LseForm::kEmptyZero, "0 where a row sees no key"},
      {LseForm::kEmptyNan, "NaN where a row sees no key"},
      {LseForm::kEmptyLowest, "-FLT_MAX where a row sees no key"},
  };
  bool has_empty = false;
  for (std::int32_t query = 0; query < c.problem().seqlen_q; ++query)
    has_empty = has_empty || visible_keys(c.problem(), query).empty();
  for (const auto& [form, what] : of_empty)
    if (has_empty)
      out.with([&, form = form](Deviation& d) { d.finish.lse = form; },
               {named("form", static_cast<double>(form), what)});
  for (const auto& [form, what] : forms) {
    const bool scaled = form == LseForm::kMaxUnscaled || form == LseForm::kMaxTwice;
    if (scaled && c.problem().softmax_scale == 1) continue;
    out.with([&, form = form](Deviation& d) { d.finish.lse = form; },
             {named("form", static_cast<double>(form), what)});
  }
}

const Entry kFinish[] = {
    {{.id = "l-missing",
      .statement = "the output is not divided by the row sum",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "",
      .remedy = "the final division by l"},
     [](const PredictionInputs&, Variants& out) {
       out.with([](Deviation& d) { d.finish.l_power = 0; });
     }},
    {{.id = "l-twice",
      .statement = "the output is divided by the row sum twice",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "",
      .remedy = "who divides by l: the partials or the end, not both"},
     [](const PredictionInputs&, Variants& out) {
       out.with([](Deviation& d) { d.finish.l_power = 2; });
     }},
    {{.id = "gain",
      .statement = "the output is multiplied by a constant",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"g"},
      .citation = "",
      .remedy =
          "factors after the softmax: softmax_scale, a scale of v, a sum over warps or lanes"},
     gains,
     [](Deviation& d, double g) { d.finish.gain = g; }},
    {{.id = "l-times-n",
      .statement = "the row sum, already the same in all lanes or warps, is summed over them again",
      .formula = "F30",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"n"},
      .citation = "",
      .remedy = "reductions of a value that every lane has"},
     [](const PredictionInputs&, Variants& out) {
       for (const double n : {2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256})
         out.with([&](Deviation& d) { d.finish.l_factor = n; }, {number("n", n)});
     }},
    {{.id = "tile-sum-times-n",
      .statement =
          "the sum of some tiles, already the same in all lanes, is summed over the lanes again",
      .formula = "F30",
      .family = Family::kFinish,
      .stage = Stage::kSoftmax,
      .parameters = {"n", "on", "loop"},
      .citation = "",
      .remedy = "reductions of a value that every lane has, in iterations that were peeled off",
      .needs_tiles = true},
     repeated_tile_sums},
    {{.id = "l-seeded",
      .statement = "a constant is added to the row sum, or it begins with one",
      .formula = "F11",
      .family = Family::kFinish,
      .stage = Stage::kSoftmax,
      .parameters = {"l0", "m begins with"},
      .citation = "flashinfer#4267",
      .remedy = "the initial value of l, and an epsilon that guards the division"},
     [](const PredictionInputs& c, Variants& out) {
       out.add_free({}, {"l0",
                         0x1p-24,
                         0x1p12,
                         {0.001, 1},
                         {{"l0", 1, "1"}, {"l0", 1e-3, "1e-3"}, {"l0", 1e-6, "1e-6"}}});
       // Every split begins as if it had seen a key of score 0.
       for (const auto& [floor, place, name] : {std::tuple{0.0, 1, "0"}, std::tuple{10.0, 3, "10"}})
         out.with(
             [first_m = floor](Deviation& d) {
               d.softmax.m_floor = first_m;
               d.recurrence.first_l = 1;
             },
             {number("l0", 1), named("m begins with", place, name)});
       // ... or the max of its first tile with a key.
       if (longest_split(c) > 1 || merges(c))
         for (const double l : {1, 2, 4, 8, 16, 32})
           out.with([&](Deviation& d) { d.recurrence.first_l = l; },
                    {number("l0", l), named("m begins with", 2, "that of the first tile")});
     },
     [](Deviation& d, double l0) { d.finish.l_added = l0; }},
    {{.id = "lane-sum-not-shared",
      .statement =
          "lanes divide by a partial row sum: the reduction is incomplete or not broadcast",
      .formula = "F29",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"steps", "lane of a key", "lanes", "lse", "sum of 0"},
      .citation = "",
      .remedy = "shfl_xor for shfl_down, or a shfl from lane 0 after it",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) { incomplete_sums(c, out, false); }},
    {{.id = "fragment-row-l",
      .statement = "a row is divided by the l of another row of the query tile",
      .formula = "F31, F34",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"row", "what"},
      .citation = "",
      .remedy = "which row a fragment's element i belongs to: it depends on the lane",
      .needs_tiles = true},
     sums_of_rows},
    {{.id = "divided-by-another",
      .statement = "the accumulator is divided by another function of m and l than l",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"divisor"},
      .citation = "",
      .remedy = "the final division: by l, once, in every row and column"},
     divisors},
    {{.id = "inverse-narrow",
      .statement = "1 / l is rounded to a narrow type",
      .formula = "F16",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"type"},
      .citation = "",
      .remedy = "the type of the factor that normalises o"},
     [](const PredictionInputs&, Variants& out) {
       for (const auto& [type, name] : {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}})
         out.with([&, type = type](Deviation& d) { d.finish.inverse_type = type; },
                  {named("type", static_cast<double>(type), name)});
     }},
    {{.id = "output-narrow",
      .statement = "o or lse is rounded to a narrower type than it is stored in, or cut off",
      .formula = "F16",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"of", "type"},
      .citation = "",
      .remedy = "conversions of the result: the type, and that it rounds to nearest"},
     narrow_outputs},
    {{.id = "lse-form",
      .statement = "lse is another function of m and l; o is right",
      .formula = "F25",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"form"},
      .citation = "FlashMLA#106, sglang#35045",
      .remedy = "lse = m + ln l, natural, with m scaled"},
     lse_forms},
};

}  // namespace

void incomplete_tile_sums(const PredictionInputs& c, Variants& out) {
  incomplete_sums(c, out, true);
}

std::span<const Entry> finish_entries() { return kFinish; }

}  // namespace attn_diag::reference
