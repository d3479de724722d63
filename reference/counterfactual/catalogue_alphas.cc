// F13, F14: alphas that are missing on some tiles, in some places, or where the max rises but little.
#include "reference/counterfactual/catalogue_alphas.h"

#include <algorithm>
#include <numbers>
#include <string>
#include <utility>

#include "reference/counterfactual/catalogue_loops.h"

namespace attn_diag::reference {
namespace {

constexpr int kTilesTried = 9;

// Sums that are not rescaled on some tiles.
void not_rescaled(const PredictionInputs& c, Variants& out, const SomeTiles& tiles,
                  const ParameterValue& where) {
  each(out, [&](bool l, bool o, const ParameterValue& what, Variants& list) {
    under_loops(c, list, tiles,
                [&](Deviation& d) {
                  if (l) d.recurrence.alpha_l = Rescale::kMissing;
                  if (o) d.recurrence.alpha_o = Rescale::kMissing;
                  d.recurrence.alpha_tiles = tiles;
                },
                {where, what});
  });
}

void alphas_at_some_tiles(const PredictionInputs& c, Variants& out) {
  // With two tiles it is the same as everywhere.
  const std::int32_t all = longest_split(c), tiles = std::min(all, kTilesTried);
  if (tiles < 3) return;
  for (std::int32_t tile = 1; tile < tiles; ++tile)
    not_rescaled(c, out, {TileChoice::kOne, tile}, named("tile", tile, std::to_string(tile)));
  for (std::int32_t tile = 2; tile < tiles; ++tile)
    if (tile + 1 < all)
      not_rescaled(c, out, {TileChoice::kFrom, tile},
                   named("tile", 100 + tile, "from " + std::to_string(tile) + " on"));
  for (const NamedTiles& apart : tiles_treated_apart(c))
    not_rescaled(c, out, apart.tiles, tiles_value("tile", apart));
}

}  // namespace

void alphas_of_some_tiles(const PredictionInputs& c, Variants& out) {
  // Counted over the whole sequence, within which splits and windows begin anywhere.
  const bool counts_alike =
      c.geometry().num_splits == 1 && c.problem().mask.kind != MaskKind::kWindow;
  const std::int32_t all = num_kv_tiles(c.problem(), c.geometry());
  for (std::int32_t tile = 1; !counts_alike && tile < std::min(all, kTilesTried); ++tile) {
    if (tile % c.geometry().tiles_per_split == 0) continue;  // nothing is there to rescale
    each(out, [&](bool l, bool o, const ParameterValue& what, Variants& list) {
      list.with(
          [&](Deviation& d) {
            if (l) d.recurrence.alpha_l = Rescale::kMissing;
            if (o) d.recurrence.alpha_o = Rescale::kMissing;
            d.recurrence.alpha_tiles = {TileChoice::kOne, tile};
            d.recurrence.tile_of_sequence = true;
          },
          {named("tile", tile, std::to_string(tile) + " of the sequence"), what});
    });
  }
  alphas_at_some_tiles(c, out);
}

namespace {

// Rises of the max below which kernels leave the state as it is.
constexpr std::pair<double, const char*> kRises[] = {{0.1, ""},
                                                     {0.25, ""},
                                                     {0.5, ""},
                                                     {std::numbers::ln2, "ln 2"},
                                                     {1, ""},
                                                     {2 * std::numbers::ln2, "2 ln 2"},
                                                     {1.5, ""},
                                                     {2, ""},
                                                     {4 * std::numbers::ln2, "4 ln 2"},
                                                     {3, ""},
                                                     {4, ""},
                                                     {5, ""},
                                                     {8 * std::numbers::ln2, "8 ln 2"},
                                                     {6, ""},
                                                     {8, ""},
                                                     {10, ""}};

}  // namespace

void alphas_of_small_rises(const PredictionInputs& c, Variants& out) {
  if (one_tile(c)) return;
  struct Frames {
    bool sums, probs;
    const char* name;
  };
  for (const Frames& old :
       {Frames{true, false, "of the sums"}, {false, true, "of P"}, {true, true, "of both"}})
    for (const auto& [below, text] : kRises)
      for (const auto& [l, o] : kSums) {
        // Both sums have the P of one frame where alpha is not computed at all.
        if (old.sums && old.probs && !(l && o)) continue;
        out.with(
            [&, below = below, l = l, o = o](Deviation& d) {
              d.recurrence.skip_below = below;
              d.recurrence.skip_l = l;
              d.recurrence.skip_o = o;
              d.recurrence.skip_alpha = old.sums;
              d.recurrence.skip_beta = old.probs;
            },
            {named("below", below, text), of(l, o),
             named("old frame", old.sums + 2 * old.probs, old.name)});
      }
}

void kept_maxima_of_small_rises(const PredictionInputs& c, Variants& out, bool old_probs) {
  if (one_tile(c)) return;
  for (const auto& [below, text] : kRises)
    out.with(
        [&, below = below](Deviation& d) {
          d.recurrence.skip_below = below;
          d.recurrence.skip_keeps_m = true;
          d.recurrence.skip_old_probs = old_probs;
        },
        {named("below", below, text)});
}

void alphas_in_part(const PredictionInputs& c, Variants& out) {
  if (one_tile(c)) return;
  const auto add = [&](const Half& half, bool columns) {
    const std::string what = std::string(half.odd ? "odd" : "even") + " runs of " +
                             std::to_string(half.size) + (columns ? " columns" : " rows");
    for (const auto& [l, o] : kSums) {
      if (columns && l) continue;
      out.with(
          [&, l = l, o = o](Deviation& d) {
            if (l) d.recurrence.alpha_l = Rescale::kMissing;
            if (o) d.recurrence.alpha_o = Rescale::kMissing;
            (columns ? d.recurrence.alpha_columns : d.recurrence.alpha_rows) = half;
          },
          {named("where", half.size * 4 + half.odd * 2 + columns, what), of(l, o)});
    }
  };
  for (const HalfIn& half : halves_of(c)) add(half.half, half.columns);
}

}  // namespace attn_diag::reference
