// F13, F14, F16, F18, F32, F34: from tile to tile.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "reference/counterfactual/catalogue_alphas.h"
#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_rows.h"
#include "reference/counterfactual/catalogue_sums.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

void alphas(const PredictionInputs& c, Variants& out, Rescale l, Rescale o) {
  if (one_tile(c)) return;
  out.with([&](Deviation& d) {
    d.recurrence.alpha_l = l;
    d.recurrence.alpha_o = o;
  });
}

void inverted(const PredictionInputs& c, Variants& out) {
  if (one_tile(c)) return;
  each(out, [](bool l, bool o, const ParameterValue& what, Variants& list) {
    list.with(
        [&](Deviation& d) {
          if (l) d.recurrence.alpha_l = Rescale::kInverted;
          if (o) d.recurrence.alpha_o = Rescale::kInverted;
        },
        {what});
  });
}

void reset(const PredictionInputs& c, Variants& out) {
  if (one_tile(c)) return;
  each(out, [&](bool l, bool o, const ParameterValue& what, Variants& list) {
    // Where l alone is reset it is 0 in a split whose last tile shows the row nothing, and A is not.
    const bool zero_l = l && !o && merges(c) && masked(c);
    for (const bool skips : {false, true}) {
      if (skips && !zero_l) continue;
      std::vector<ParameterValue> parameters = {what};
      if (zero_l)
        parameters.push_back(named("splits without l", skips, skips ? "left out" : "merged"));
      under_both_loops(
          c, list,
          [&](Deviation& d) {
            if (l) d.recurrence.alpha_l = Rescale::kZero;
            if (o) d.recurrence.alpha_o = Rescale::kZero;
            d.combine.skips_zero_l = skips;
          },
          std::move(parameters));
    }
  });
}

void normalised(const PredictionInputs& c, Variants& out) {
  if (one_tile(c)) return;
  const auto add = [&](Normalise how, double l_power, const char* what) {
    const auto set = [&](Deviation& d) {
      d.recurrence.normalise = how;
      d.finish.l_power = l_power;
    };
    std::vector<ParameterValue> value = {named("by", static_cast<double>(how) * 2 + l_power, what)};
    // A product of nothing stays 0, whatever it is divided by.
    if (how != Normalise::kRunningSum) return out.with(set, std::move(value));
    under_both_loops(c, out, set, std::move(value));
  };
  add(Normalise::kTileSum, 1, "the tile's l, and by l at the end");
  add(Normalise::kTileSum, 0, "the tile's l, not at the end");
  add(Normalise::kRunningSum, 1, "the running l, and by l at the end");
  add(Normalise::kRunningSum, 0, "the running l, not at the end");
  add(Normalise::kTileByRunningSum, 1, "the running l, P V alone, and by l at the end");
  add(Normalise::kTileByRunningSum, 0, "the running l, P V alone, not at the end");
  out.with(
      [](Deviation& d) {
        d.recurrence.normalise = Normalise::kRunningSum;
        d.recurrence.normalised_tiles = {TileChoice::kOne, 0};
      },
      {named("by", 10, "l after the first tile alone, and by l at the end")});
}

void tile_frames(const PredictionInputs& c, Variants& out) {
  if (one_tile(c)) return;
  const auto add = [&](bool l, bool o, const SomeTiles& tiles,
                       std::vector<ParameterValue> parameters) {
    under_loops(
        c, out, tiles,
        [&](Deviation& d) {
          d.recurrence.tile_frame_l = l;
          d.recurrence.tile_frame_o = o;
          d.recurrence.frame_tiles = tiles;
        },
        std::move(parameters));
  };
  each(out, [&](bool l, bool o, const ParameterValue& what, Variants&) {
    add(l, o, {}, {what, named("on", 0, "every tile")});
    // One P serves both sums; it is l that may be brought to another frame after all.
    for (const NamedTiles& apart : tiles_treated_apart(c))
      if (o) add(l, o, apart.tiles, {what, tiles_value("on", apart)});
  });
}

// m alone changes neither o nor lse.
constexpr std::pair<int, const char*> kCarried[] = {
    {kCarryO, "the accumulator"},
    {kCarryM | kCarryL | kCarryO, "m, l and the accumulator"},
    {kCarryM | kCarryL, "m and l"},
    {kCarryL, "l"},
    {kCarryL | kCarryO, "l and the accumulator"},
    {kCarryM | kCarryO, "m and the accumulator"},
    {kCarryM, "m"}};

void carried_over(const PredictionInputs& c, Variants& out) {
  if (c.geometry().num_splits > 1) return;
  const auto add = [&](std::int32_t distance, ItemOrder order, const char* what) {
    // Most kernels clear all of it in one place, or two.
    const bool often = order == ItemOrder::kTiles && (distance & (distance - 1)) == 0;
    for (const auto& [carried, which] : kCarried) {
      if (!often && carried != kCarryO && carried != (kCarryM | kCarryL | kCarryO)) continue;
      out.with(
          [&, carried = carried](Deviation& d) {
            d.recurrence.carry_over = static_cast<std::uint8_t>(carried);
            d.recurrence.carry_distance = distance;
            d.recurrence.carry_order = order;
          },
          {named("what", carried, which), number("distance", distance),
           named("order", static_cast<double>(order), what)});
    }
  };
  // The distance is how many blocks share the tiles.
  const std::int32_t tiles = ceil_div(c.problem().seqlen_q, c.geometry().tile.block_m);
  for (std::int32_t distance = 1; distance < tiles; ++distance) {
    add(distance, ItemOrder::kTiles, "query tiles");
    const bool usual = distance == ceil_div(tiles, 2) || (distance & (distance - 1)) == 0;
    if (usual) add(distance, ItemOrder::kTilesReversed, "query tiles, the last first");
  }
  for (std::int32_t distance = 1; distance < c.problem().heads; distance *= 2)
    add(distance, ItemOrder::kHeads, "heads");
}

const Entry kRecurrence[] = {
    {{.id = "alpha-missing-l",
      .statement = "the row sum is not rescaled when the row max grows",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "flash-attention#991",
      .remedy = "l = alpha * l + sum(P): the alpha",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       alphas(c, out, Rescale::kMissing, Rescale::kRight);
     }},
    {{.id = "alpha-missing-o",
      .statement = "the accumulator is not rescaled when the row max grows",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "flash-attention#991, TileFusion#31",
      .remedy = "o = alpha * o + P V: the alpha, on every fragment of o",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       alphas(c, out, Rescale::kRight, Rescale::kMissing);
     }},
    {{.id = "alpha-missing",
      .statement = "neither row sum nor accumulator is rescaled when the row max grows",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "flash-attention#991",
      .remedy = "alpha = exp(m_old - m_new): whether m_old is still the old one",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       alphas(c, out, Rescale::kMissing, Rescale::kMissing);
     }},
    {{.id = "alpha-inverted",
      .statement = "sums are multiplied by exp(m_new - m_old) where exp(m_old - m_new) is right",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"of"},
      .citation = "flash-attention#991",
      .remedy = "the sign in alpha",
      .needs_tiles = true},
     inverted},
    {{.id = "state-reset",
      .statement = "the state begins anew with every tile: only the last one is kept",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"of", "splits without l", "loop"},
      .citation = "TileFusion#31",
      .remedy = "initialisation inside the loop; = for +=; a fill of the accumulator fragment",
      .needs_tiles = true},
     reset},
    {{.id = "alpha-missing-on-one-tile",
      .statement = "sums are not rescaled on one or some tiles of the loop",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"tile", "of", "loop"},
      .citation = "TileFusion#31",
      .remedy = "first and last iterations that were peeled off the loop",
      .needs_tiles = true},
     alphas_of_some_tiles},
    {{.id = "alpha-missing-in-part",
      .statement = "the sums of some rows or columns are not rescaled",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"where", "of"},
      .citation = "TileFusion#31",
      .remedy = "the loop over an accumulator's fragments and registers, where it is rescaled",
      .needs_tiles = true},
     alphas_in_part},
    {{.id = "alpha-after-product",
      .statement = "sums are rescaled after the tile's own was added",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"of", "first"},
      .citation = "",
      .remedy = "the order of the rescaling and the second product",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (one_tile(c)) return;
       for (const auto& [l, o] : kSums)
         for (const double first : {1.0, 0.0})
           out.with(
               [&, l = l, o = o](Deviation& d) {
                 d.recurrence.alpha_after = o;
                 d.recurrence.alpha_after_l = l;
                 d.recurrence.first_alpha = first;
               },
               {of(l, o), number("first", first)});
     }},
    {{.id = "alpha-times-l",
      .statement = "the accumulator is multiplied by the old row sum too, as if it were normalised",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"loop"},
      .citation = "",
      .remedy = "whether the accumulator is divided by l within the loop: one convention",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!one_tile(c))
         under_both_loops(c, out, [](Deviation& d) { d.recurrence.alpha_times_l = true; });
     }},
    {{.id = "rescale-skipped",
      .statement =
          "small rises of the max leave the sums in the old frame and P is in the new one, or the "
          "reverse, or both stay and m does not",
      .formula = "F14",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"below", "of", "old frame"},
      .citation = "rocm-libraries#6498",
      .remedy = "the branch that skips the rescaling: it must keep the old max for P",
      .needs_tiles = true},
     alphas_of_small_rises},
    {{.id = "rescale-skipped-max-kept",
      .statement =
          "small rises of the max leave the state and its max in the old frame, but P is in the "
          "new one",
      .formula = "F14",
      .family = Family::kRecurrence,
      .stage = Stage::kSoftmax,
      .parameters = {"below"},
      .citation = "rocm-libraries#6498",
      .remedy = "the branch that skips the rescaling: P must be relative to the max that is kept",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) { kept_maxima_of_small_rises(c, out, false); }},
    {{.id = "rescale-decided-by-rows",
      .statement =
          "a row's sums are rescaled only where the max of another row of the query tile rises, "
          "or that of every row of a group",
      .formula = "F14",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"row", "of"},
      .citation = "",
      .remedy = "the branch around the rescaling: every row that a thread holds, or a vote of any",
      .needs_tiles = true},
     rescales_of_rows},
    {{.id = "tile-frame",
      .statement = "P relative to the tile's max is added to sums relative to the running max",
      .formula = "F32",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"of", "on", "loop"},
      .citation = "",
      .remedy = "which max is subtracted in exp(S - m), or the factor exp(m_tile - m)",
      .needs_tiles = true},
     tile_frames},
    {{.id = "normalised-every-tile",
      .statement =
          "the accumulator, or what is added to it, is divided by a row sum with every tile",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"by", "loop"},
      .citation = "flash-attention#991",
      .remedy = "the division by l: once, after the loop",
      .needs_tiles = true},
     normalised},
    {{.id = "state-carried-over",
      .statement = "a query tile begins with what the block's last one left",
      .formula = "F18",
      .family = Family::kRecurrence,
      .stage = Stage::kSoftmax,
      .parameters = {"what", "distance", "order"},
      .citation = "flashinfer#5029",
      .remedy = "initialisation of m, l and the accumulator for every work item",
      .needs_tiles = true},
     carried_over},
    {{.id = "columns-not-carried",
      .statement =
          "only the first of every n columns of the accumulator is carried from tile to tile",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"n", "loop"},
      .citation = "",
      .remedy = "the loop over a thread's accumulator",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (one_tile(c)) return;
       for (const std::int32_t n : {2, 4, 8, 16, 32})
         if (n <= c.problem().head_dim_v)
           under_both_loops(c, out, [&](Deviation& d) { d.recurrence.carried_column = n; },
                            {number("n", n)});
     }},
    {{.id = "fragment-row-alpha",
      .statement =
          "a row's sums are rescaled with the alpha of another row of the query tile, or with the "
          "largest of several",
      .formula = "F31, F34",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"row", "of"},
      .citation = "",
      .remedy = "which row a fragment's element i belongs to: it depends on the lane",
      .needs_tiles = true},
     alphas_of_rows},
    {{.id = "accumulator-narrow",
      .statement = "the accumulator is kept in a narrow type from tile to tile",
      .formula = "F16",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"type"},
      .citation = "ik_llama.cpp#1196",
      .remedy = "the type of the accumulator",
      .needs_tiles = true},
     [](const PredictionInputs&, Variants& out) {
       const auto add = [&](Narrow type, const char* name) {
         out.with([&](Deviation& d) { d.recurrence.accumulator = type; },
                  {named("type", static_cast<double>(type), name)});
       };
       add(Narrow::kFp16, "fp16");
       add(Narrow::kFp16Saturated, "fp16, saturated");
       add(Narrow::kBf16, "bf16");
       add(Narrow::kBf16Cut, "bf16, cut off");
       add(Narrow::kTf32, "tf32");
       add(Narrow::kTf32Cut, "tf32, cut off");
     }},
};

}  // namespace

std::span<const Entry> recurrence_entries() { return kRecurrence; }

}  // namespace attn_diag::reference
