// F12b, F13, F16, F32: alphas of another power or tile, frames of P, the type of l, tiles that two splits share.
#include <numbers>

#include "reference/counterfactual/catalogue_alphas.h"
#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_sums.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

// Any power that is not the right one marks the sums whose alpha is free.
void powers(const PredictionInputs& c, Variants& out) {
  if (longest_split(c) == 1) return;
  const FreeParameter p{"p",
                        0.0625,
                        16,
                        {0.5, 2},
                        {{"p", 2, "2: it is applied twice"},
                         {"p", 0.5, "0.5"},
                         {"p", std::numbers::ln2, "ln 2: exp2 for exp"},
                         {"p", std::numbers::log2e, "log2 e: exp for exp2"}}};
  for (const auto& [l, o] : kSums) {
    Deviation d;
    if (l) d.recurrence.alpha_power_l = 2;
    if (o) d.recurrence.alpha_power_o = 2;
    out.add_free(d, p, {of(l, o)});
  }
}

void late(const PredictionInputs& c, Variants& out) {
  // With two tiles this is a rescale that is missing, or a state that is reset.
  if (longest_split(c) < 3) return;
  for (const auto& [l, o] : kSums)
    for (const double first : {0.0, 1.0})
      under_both_loops(c, out,
                       [&, l = l, o = o](Deviation& d) {
                         d.recurrence.alpha_late_l = l;
                         d.recurrence.alpha_late_o = o;
                         d.recurrence.first_alpha = first;
                       },
                       {of(l, o), number("first", first)});
}

void shared_tiles(const PredictionInputs& c, Variants& out) {
  if (!merges(c) || used_splits(c) < 2) return;
  const auto add = [&](std::int32_t before, std::int32_t after, const char* what) {
    if (after < 0 && longest_split(c) == 1) return;  // the split would be empty: it is dropped
    out.with(
        [&](Deviation& d) {
          d.recurrence.tiles_before = before;
          d.recurrence.tiles_after = after;
        },
        {named("tile", before * 3 + after + 1, what)});
  };
  add(0, 1, "the first of the next split, counted twice");
  add(1, 0, "the last of the split before, counted twice");
  add(0, -1, "the last of every split but the last, left out");
}

const Entry kRescale[] = {
    {{.id = "alpha-power",
      .statement = "sums are multiplied by a power of alpha",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"of", "p"},
      .citation = "",
      .remedy = "alpha: its base, and that it is applied once",
      .needs_tiles = true},
     powers,
     [](Deviation& d, double p) {
       if (d.recurrence.alpha_power_l != 1) d.recurrence.alpha_power_l = p;
       if (d.recurrence.alpha_power_o != 1) d.recurrence.alpha_power_o = p;
     }},
    {{.id = "alpha-late",
      .statement = "sums are rescaled with the alpha of the tile before",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"of", "first", "loop"},
      .citation = "",
      .remedy = "when alpha is written and when it is read, where different warps do so",
      .needs_tiles = true},
     late},
    {{.id = "probs-in-previous-frame",
      .statement =
          "P is relative to the max before the tile, the sums to the one after it, which small "
          "rises may leave as it was",
      .formula = "F32",
      .family = Family::kRecurrence,
      .stage = Stage::kSoftmax,
      .parameters = {"of", "below"},
      .citation = "",
      .remedy = "P = exp(S - m_new): whether m is the new one there",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (longest_split(c) == 1) return;
       for (const auto& [l, o] : kSums)
         out.with(
             [&, l = l, o = o](Deviation& d) {
               d.recurrence.previous_frame_l = l;
               d.recurrence.previous_frame_o = o;
             },
             {of(l, o)});
       kept_maxima_of_small_rises(c, out, true);
     }},
    {{.id = "sum-narrow",
      .statement = "the row sum is kept in a narrow type from tile to tile",
      .formula = "F16",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"type"},
      .citation = "",
      .remedy = "the type of l",
      .needs_tiles = true},
     [](const PredictionInputs&, Variants& out) {
       for (const auto& [type, name] :
            {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}, {Narrow::kTf32, "tf32"}})
         out.with([&, type = type](Deviation& d) { d.recurrence.sum = type; },
                  {named("type", static_cast<double>(type), name)});
     }},
    {{.id = "alpha-narrow",
      .statement = "alpha is rounded to a narrow type",
      .formula = "F16",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {"type", "of"},
      .citation = "",
      .remedy = "the type of alpha",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (longest_split(c) == 1) return;
       for (const auto& [type, name] : {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}})
         for (const auto& [l, o] : kSums)
           out.with(
               [&, type = type, l = l, o = o](Deviation& d) {
                 d.recurrence.alpha_type = type;
                 d.recurrence.alpha_type_l = l;
                 d.recurrence.alpha_type_o = o;
               },
               {named("type", static_cast<double>(type), name), of(l, o)});
     }},
    {{.id = "splits-share-tiles",
      .statement = "the KV tiles at the ends of splits are counted twice, or by none",
      .formula = "F12b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"tile"},
      .citation = "",
      .remedy = "the first and last tile of a split: rounding of tiles per split, <= for <",
      .needs_tiles = true,
      .needs_splits = true},
     shared_tiles},
};

}  // namespace

std::span<const Entry> rescale_entries() { return kRescale; }

}  // namespace attn_diag::reference
