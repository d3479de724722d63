// F20, F21b: the second product.
#include <algorithm>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_maps.h"
#include "reference/counterfactual/catalogue_rows.h"
#include "reference/counterfactual/catalogue_sums.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

const Entry kPv[] = {
    {{.id = "probs-fragment",
      .statement = "elements of P change places within the 16x16 fragments of the second product",
      .formula = "F20",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"elements"},
      .citation = "imp#352",
      .remedy = "accumulator registers reused as the A operand: their order",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       const TileShape tile = c.geometry().tile;
       for (const NamedMap& map : kFragmentMaps) {
         if (map.rows && (tile.block_m < 16 || c.problem().seqlen_q < 9)) continue;
         if (tile.block_n < (map.map == FragmentMap::kPairsSwapped ? 2 : 9)) continue;
         out.with([&](Deviation& d) { d.pv.probs = map.map; },
                  {named("elements", static_cast<double>(map.map), map.name)});
       }
     }},
    {{.id = "product-not-cleared",
      .statement = "the accumulator of a tile's P V goes on from that of the tile before",
      .formula = "F18",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"loop"},
      .citation = "",
      .remedy = "the accumulator of the second product: cleared before every tile",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (longest_split(c) > 1)
         under_both_loops(c, out, [](Deviation& d) { d.pv.accumulates = true; });
     }},
    {{.id = "row-probs",
      .statement = "P V takes the P of another row of the query tile",
      .formula = "F34",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"row"},
      .citation = "",
      .remedy = "which row a fragment's element i belongs to: it depends on the lane",
      .needs_tiles = true},
     probs_of_rows},
    {{.id = "product-narrow",
      .statement = "P V of a tile is accumulated in or rounded to a narrow type",
      .formula = "F16",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"type", "every"},
      .citation = "ik_llama.cpp#1196",
      .remedy = "the accumulator type of the second product",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       const auto set = [](Deviation& d, Narrow type, std::int32_t every) {
         d.pv.type = type;
         d.pv.rounded_every = every;
       };
       narrow_sums(std::min(c.geometry().tile.block_n, c.problem().seqlen_k), out, set);
       narrow_sum(Narrow::kTf32, "tf32", 0, out, set);
     }},
    {{.id = "probs-stale",
      .statement = "P V takes the P of the tile before: it is not waited for",
      .formula = "F18",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"loop"},
      .citation = "",
      .remedy = "the barrier between the writers of the P tile and the second product",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (longest_split(c) > 1)
         under_both_loops(c, out, [](Deviation& d) { d.pv.probs_late = true; });
     }},
    {{.id = "product-times-n",
      .statement = "P V is added by n warps that each computed all of it",
      .formula = "F21b",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"n"},
      .citation = "",
      .remedy = "how the second product is dealt out to warps, and who adds it"},
     [](const PredictionInputs&, Variants& out) {
       for (const double n : {2, 3, 4, 8, 16, 32})
         out.with([&](Deviation& d) { d.pv.factor = n; }, {number("n", n)});
     }},
    {{.id = "product-left-out",
      .statement = "P V of some tiles is not added, and their keys count in l",
      .formula = "F12b",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"of"},
      .citation = "",
      .remedy = "the bounds of the loop over the second product: those of the first",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       double number = 0;
       for (const NamedPlace& place : tile_places(c.problem(), c.geometry()))
         out.with(
             [&](Deviation& d) {
               d.pv.factor = 0;
               d.place = place.place;
             },
             {named("of", ++number, place.name)});
     }},
    {{.id = "product-overlaps",
      .statement = "every warp adds P V of all columns from its own first one on",
      .formula = "F21b",
      .family = Family::kPv,
      .stage = Stage::kPv,
      .parameters = {"warps"},
      .citation = "",
      .remedy = "the step of the loop over columns: that of all warps together"},
     [](const PredictionInputs& c, Variants& out) {
       for (const std::int32_t warps : {2, 4, 8}) {
         // With more warps than blocks of columns it is the same as with as many.
         if ((warps / 2) * 16 >= c.problem().head_dim_v) break;
         out.with([&](Deviation& d) { d.pv.staircase = warps; }, {number("warps", warps)});
       }
     }},
};

}  // namespace

std::span<const Entry> pv_entries() { return kPv; }

}  // namespace attn_diag::reference
