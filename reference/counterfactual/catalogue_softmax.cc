// F1, F11, F15 to F17, F21, F29, F31: m, l and P.
#include <algorithm>
#include <functional>
#include <numbers>
#include <vector>

#include "reference/counterfactual/catalogue_lanes.h"
#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_rows.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

void lanes(const PredictionInputs& c, Variants& out) {
  const std::int32_t block_n = c.geometry().tile.block_n;
  const auto add_one = [&](LaneMap map, std::int32_t num_lanes, const char* what, bool with_o,
                           bool keep) {
    out.with(
        [&](Deviation& d) {
          d.softmax.lanes = map;
          d.softmax.num_lanes = num_lanes;
          d.softmax.lanes_keep_max = keep;
          d.softmax.lanes_o = with_o;
        },
        {named("lane of a key", static_cast<double>(map), what), number("lanes", num_lanes),
         named("max over", keep, keep ? "the split" : "the tile"),
         named("of", with_o, with_o ? "l and o" : "l")});
  };
  const auto add = [&](LaneMap map, std::int32_t num_lanes, const char* what) {
    if (num_lanes > block_n || (map == LaneMap::kQuad && block_n < 8)) return;
    for (const bool with_o : {false, true})
      for (const bool keep : {false, true})
        if (!keep || longest_split(c) > 1) add_one(map, num_lanes, what, with_o, keep);
  };
  for (const std::int32_t n : {2, 4, 8, 16, 32}) {
    add(LaneMap::kInterleaved, n, "j % lanes");
    if (block_n % n == 0) add(LaneMap::kBlocked, n, "j / (kBlockN / lanes)");
  }
  add(LaneMap::kQuad, 4, "j % 8 / 2");
  for (const std::int32_t n : {8, 16, 32})
    if (2 * n <= block_n) add(LaneMap::kPairs, n, "j / 2 % lanes");
  // A warp that takes every other tile, or one of four, has a max of its own from tile to tile.
  for (const std::int32_t n : {2, 4})
    for (const bool with_o : {false, true})
      if (n <= longest_split(c)) add_one(LaneMap::kTiles, n, "its tile % lanes", with_o, true);
  // With no more keys than lanes these are runs of keys.
  for (const std::int32_t n : {2, 4, 8, 16})
    if (block_n > kLanesOfWarp) add(LaneMap::kGroups, n, "j % 32 / (32 / lanes)");
}

// Adds variants for sets of the places where a kernel takes exponentials, as far as the case has them.
void exp_places(const PredictionInputs& c, Variants& out,
                const std::function<void(Deviation&)>& set,
                const std::vector<ParameterValue>& parameters, bool alpha_alone) {
  const auto add = [&](int places, const char* what) {
    std::vector<ParameterValue> values = parameters;
    values.push_back(named("in", places, what));
    out.with(
        [&](Deviation& d) {
          set(d);
          d.softmax.exp_places = static_cast<std::uint8_t>(places);
        },
        std::move(values));
  };
  const bool tiles = longest_split(c) > 1, splits = c.geometry().num_splits > 1;
  add(kExpOfProbs, "P");
  if (tiles) add(kExpOfProbs | kExpOfAlpha, "P and alpha");
  if (tiles && alpha_alone) add(kExpOfAlpha, "alpha");
  if (splits) add(kExpOfProbs | kExpOfAlpha | kExpOfMerge, "P, alpha and the merge");
  if (splits && alpha_alone) add(kExpOfMerge, "the merge");
}

void exp_bases(const PredictionInputs& c, Variants& out) {
  const std::pair<double, const char*> factors[] = {{std::numbers::ln2, "2"},
                                                    {std::numbers::log2e, "e^(log2 e)"}};
  for (const auto& [factor, base] : factors)
    exp_places(
        c, out, [factor = factor](Deviation& d) { d.softmax.exp_factor = factor; },
        {named("base", factor, base)}, true);
}

void exp_forms(const PredictionInputs& c, Variants& out) {
  struct Form {
    ExpKind kind;
    double c;
    const char* name;
  };
  const Form forms[] = {
      {ExpKind::kTaylor1, 0, "2^n (1 + r), r of [0, ln 2)"},
      {ExpKind::kTaylor2, 0, "... + r^2 / 2"},
      {ExpKind::kTaylor3, 0, "... + r^3 / 6"},
      {ExpKind::kTaylor1Nearest, 0, "2^n (1 + r), |r| <= ln 2 / 2"},
      {ExpKind::kTaylor2Nearest, 0, "..., + r^2 / 2"},
      {ExpKind::kTaylor3Nearest, 0, "..., + r^3 / 6"},
      {ExpKind::kQuadratic, 1.0 / 3, "2^n (1 + (2 f + f^2) / 3)"},
      {ExpKind::kQuadratic, 0.34, "2^n (1 + 0.66 f + 0.34 f^2)"},
      {ExpKind::kQuadratic, 0.3435, "2^n (1 + 0.6565 f + 0.3435 f^2)"},
      {ExpKind::kLimit, 16, "(1 + x / 16)^16"},
      {ExpKind::kLimit, 32, "(1 + x / 32)^32"},
      {ExpKind::kLimit, 64, "(1 + x / 64)^64"},
      {ExpKind::kLimit, 128, "(1 + x / 128)^128"},
      {ExpKind::kLimit, 256, "(1 + x / 256)^256"},
      {ExpKind::kLimit, 512, "(1 + x / 512)^512"},
      {ExpKind::kLimit, 1024, "(1 + x / 1024)^1024"},
  };
  double number = 0;
  for (const Form& form : forms)
    exp_places(
        c, out,
        [&](Deviation& d) {
          d.softmax.exp = form.kind;
          d.softmax.exp_c = form.c;
        },
        {named("terms", number++, form.name)}, true);
}

void flushed(const PredictionInputs&, Variants& out) {
  const std::pair<double, const char*> limits[] = {
      {0x1p-6, "2^-6"},   {0x1p-7, "2^-7"},   {0x1p-8, "2^-8"},   {0x1p-9, "2^-9"},
      {0x1p-10, "2^-10"}, {0x1p-11, "2^-11"}, {0x1p-12, "2^-12"}, {0x1p-14, "2^-14"},
      {0x1p-16, "2^-16"}, {0x1p-20, "2^-20"}, {0x1p-24, "2^-24"}, {1e-2, "1e-2"},
      {1e-3, "1e-3"},     {1e-4, "1e-4"},     {1e-5, "1e-5"},     {1e-6, "1e-6"}};
  for (const auto& [below, what] : limits)
    for (const bool sum : {false, true})
      out.with(
          [&, below = below](Deviation& d) {
            d.softmax.flush_below = below;
            d.softmax.flush_l = sum;
          },
          {named("below", below, what), named("in", sum, sum ? "l and P V" : "P V")});
}

void lane_maxima(const PredictionInputs& c, Variants& out) {
  const auto add = [&](LaneMap map, std::int32_t lanes, const char* what, std::int32_t steps) {
    const auto add_one = [&](bool alpha, bool sum) {
      under_both_loops(
          c, out,
          [&](Deviation& d) {
            d.softmax.max_lanes = map;
            d.softmax.num_max_lanes = lanes;
            d.softmax.max_lanes_sum = sum;
            d.softmax.max_steps = steps;
            d.softmax.max_lanes_alpha = alpha;
          },
          {named("lane of a key", static_cast<double>(map), what), number("lanes", lanes),
           named("of", alpha, alpha ? "alpha of o" : "P, l and alpha"),
           named("sum", sum, sum ? "in lane 0 only" : "in every lane"), steps_value(steps)});
    };
    add_one(false, false);
    if (steps >= 0) return;
    add_one(false, true);
    if (longest_split(c) > 1) add_one(true, false);
  };
  if (c.problem().seqlen_k < 2 || c.geometry().tile.block_n < 2) return;
  for (const std::int32_t lanes : {4, 8, 16, 32})
    add(LaneMap::kInterleaved, lanes, "j % lanes", -1);
  for (const std::int32_t steps : incomplete_butterflies(most_lanes(c)))
    add(LaneMap::kInterleaved, most_lanes(c), "j % lanes", steps);
  add(LaneMap::kQuad, 4, "j % 8 / 2", -1);
  for (const std::int32_t steps : incomplete_butterflies(4))
    add(LaneMap::kQuad, 4, "j % 8 / 2", steps);
}

void narrow_probs(const PredictionInputs& c, Variants& out) {
  const DType declared = c.arithmetic().probs;
  const auto add = [&](Narrow type, const char* name) {
    for (const bool sum : {false, true})
      out.with(
          [&](Deviation& d) {
            d.softmax.probs = type;
            d.softmax.sum_of_narrow = sum;
          },
          {named("type", static_cast<double>(type), name),
           named("in", sum, sum ? "l and P V" : "P V")});
  };
  // A type that is declared is part of the bound already.
  if (declared != DType::kFp16 && declared != DType::kBf16) add(Narrow::kFp16, "fp16");
  if (declared != DType::kBf16) add(Narrow::kBf16, "bf16");
  if (declared == DType::kFp32) add(Narrow::kTf32, "tf32");
  add(Narrow::kFp8E4m3, "fp8 e4m3");
  add(Narrow::kFp8E5m2, "fp8 e5m2");
  if (declared != DType::kBf16) add(Narrow::kFp16Cut, "fp16, cut off");
  if (declared != DType::kFp16) add(Narrow::kBf16Cut, "bf16, cut off");
  if (declared == DType::kFp32) add(Narrow::kTf32Cut, "tf32, cut off");
}

const Entry kSoftmax[] = {
    {{.id = "max-floor",
      .statement = "the row max begins with a number instead of -inf, or is clamped",
      .formula = "F11",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"c", "loop"},
      .citation = "flash-attention#2082, flashinfer#4267",
      .remedy = "the initial value of the max"},
     [](const PredictionInputs& c, Variants& out) {
       for (const double floor : {0.0, 10.0, -5e4})
         under_both_loops(c, out, [&](Deviation& d) { d.softmax.m_floor = floor; },
                          {number("c", floor)});
     }},
    {{.id = "exp-linear",
      .statement = "exp is 2^n (1 + f): the fraction enters linearly",
      .formula = "F17",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"in"},
      .citation = "",
      .remedy = "the polynomial of the approximate exp2"},
     [](const PredictionInputs& c, Variants& out) {
       exp_places(
           c, out, [](Deviation& d) { d.softmax.exp = ExpKind::kLinear; }, {}, true);
     }},
    {{.id = "exp-approximate",
      .statement = "exp is another approximation, of few terms",
      .formula = "F17",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"terms", "in"},
      .citation = "",
      .remedy = "the polynomial of the approximate exp2: its degree and its range"},
     exp_forms},
    {{.id = "max-of-other-tile",
      .statement = "the row max is that of the first tile, or of every tile alone",
      .formula = "F11",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"tile"},
      .citation = "",
      .remedy = "m = max(m, max of the tile): both of them, and where it is kept",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (longest_split(c) == 1) return;
       out.with([](Deviation& d) { d.softmax.running_max = RunningMax::kFirstTile; },
                {named("tile", 0, "the first")});
       if (c.geometry().frame == Frame::kRunning)
         out.with([](Deviation& d) { d.softmax.running_max = RunningMax::kOwnTile; },
                  {named("tile", 1, "every one alone")});
     }},
    {{.id = "max-narrow",
      .statement = "the row max is kept in a narrow type",
      .formula = "F16",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"type"},
      .citation = "",
      .remedy = "the type of m"},
     [](const PredictionInputs&, Variants& out) {
       for (const auto& [type, name] : {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}})
         out.with([&, type = type](Deviation& d) { d.softmax.max_type = type; },
                  {named("type", static_cast<double>(type), name)});
     }},
    {{.id = "exp-base",
      .statement = "exp is taken in another base, of the scores as they are; lse = m + ln l",
      .formula = "F1",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"base", "in"},
      .citation = "sglang#35045",
      .remedy = "exp or exp2 in every place, and whether log2 e is in the scores already"},
     exp_bases},
    {{.id = "max-not-shared",
      .statement = "the row max is complete in lane 0 only, and every lane goes on with its own, "
                   "in all or in alpha alone",
      .formula = "F29",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"lane of a key", "lanes", "of", "sum", "steps", "loop"},
      .citation = "",
      .remedy = "shfl_xor for shfl_down, or a shfl from lane 0 after it",
      .needs_tiles = true},
     lane_maxima},
    {{.id = "tile-sum-not-shared",
      .statement = "the sum of a tile lacks a step of its reduction: lanes go on with parts of it",
      .formula = "F29",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"steps", "lane of a key", "lanes", "sum of 0"},
      .citation = "",
      .remedy = "the steps of the shuffles: half of the lanes first, 1 last",
      .needs_tiles = true},
     incomplete_tile_sums},
    {{.id = "lanes-not-rescaled",
      .statement = "sums that lanes or warps keep relative to their own max are added as they are",
      .formula = "F15",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"lane of a key", "lanes", "max over", "of"},
      .citation = "KarhouTam/cuda-kernels#3",
      .remedy = "the merge over lanes: reduce the max first, rescale by exp(m_lane - m), then add",
      .needs_tiles = true},
     lanes},
    {{.id = "rows-mixed",
      .statement = "a reduction over lanes runs over several rows: each lane owns another one",
      .formula = "F31",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"rows", "of", "times"},
      .citation = "",
      .remedy = "the width or mask of the shuffles: only the lanes that share a row"},
     rows_mixed_in_loop},
    {{.id = "rows-mixed-at-end",
      .statement = "when the loop is over the row sum is reduced over several rows",
      .formula = "F31",
      .family = Family::kSoftmax,
      .stage = Stage::kReduce,
      .parameters = {"rows", "of", "times"},
      .citation = "",
      .remedy =
          "the width or mask of the shuffles after the loop: only the lanes that share a row"},
     rows_mixed_at_end},
    {{.id = "row-max",
      .statement = "P is relative to the max of another row of the query tile",
      .formula = "F34",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"row"},
      .citation = "",
      .remedy = "which row a fragment's element i belongs to: it depends on the lane",
      .needs_tiles = true},
     maxima_of_rows},
    {{.id = "probs-narrow",
      .statement = "P is rounded to a narrower type than declared",
      .formula = "F16, F21",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"type", "in"},
      .citation = "flash-attention#2721, flashinfer#5020",
      .remedy = "the type of the P tile, and whether l sums P before or after it is rounded"},
     narrow_probs},
    {{.id = "probs-flushed",
      .statement = "small P become 0",
      .formula = "F21",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {"below", "in"},
      .citation = "flash-attention#2721",
      .remedy = "the least number of the type that P is kept in, and a scale for it"},
     flushed},
    {{.id = "mask-missing-in-sum",
      .statement = "masked keys count in l, not in P V",
      .formula = "F7",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {},
      .citation = "",
      .remedy = "the order of mask, exp and sum"},
     [](const PredictionInputs& c, Variants& out) {
       if (c.problem().mask.kind != MaskKind::kNone)
         out.with([](Deviation& d) { d.softmax.l_counts_masked = true; });
     }},
    {{.id = "mask-missing-in-product",
      .statement = "masked keys count in P V, not in l",
      .formula = "F7",
      .family = Family::kSoftmax,
      .stage = Stage::kSoftmax,
      .parameters = {},
      .citation = "",
      .remedy = "whether P is masked where it is stored for the second product"},
     [](const PredictionInputs& c, Variants& out) {
       if (c.problem().mask.kind != MaskKind::kNone)
         out.with([](Deviation& d) { d.softmax.o_counts_masked = true; });
     }},
};

}  // namespace

std::span<const Entry> softmax_entries() { return kSoftmax; }

}  // namespace attn_diag::reference
