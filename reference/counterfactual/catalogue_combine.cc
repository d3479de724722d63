// F21 to F25b: the merge of splits.
#include <limits>
#include <numbers>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

bool merges(const Case& c) { return c.geometry().num_splits > 1; }

ParameterValue lse_value(MergedLse lse) {
  switch (lse) {
    case MergedLse::kRight:
      return named("lse", 1, "right");
    case MergedLse::kOverBase:
      return named("lse", 2, "of the same sums, in that base");
    case MergedLse::kOfLargest:
      return named("lse", 3, "of the same sums, relative to the largest");
    case MergedLse::kOfSums:
      break;
  }
  return named("lse", 0, "of the same sums");
}

void weighted(const Case& c, Variants& out, double max_factor, double o_power, double l_power,
              const std::vector<ParameterValue>& parameters = {}) {
  if (!merges(c)) return;
  for (const MergedLse lse : {MergedLse::kOfSums, MergedLse::kRight}) {
    std::vector<ParameterValue> values = parameters;
    // With l_n to the first power the sums are those of lse.
    const bool one = max_factor == 1 && l_power == 1;
    if (!one) values.push_back(lse_value(lse));
    out.with(
        [&](Deviation& d) {
          d.combine.max_factor = max_factor;
          d.combine.o_power = o_power;
          d.combine.l_power = l_power;
          d.combine.lse = lse;
        },
        std::move(values));
    if (one) break;
  }
}

// Splits that hold a tile.
std::int32_t used_splits(const Case& c) {
  return ceil_div(num_kv_tiles(c.problem(), c.geometry()), c.geometry().tiles_per_split);
}

// The frame of the merged sums: m of all splits, or of those that are not left out.
ParameterValue frame_value(bool counted) {
  return named("m", counted, counted ? "of what is merged" : "of all splits");
}

void dropped(const Case& c, Variants& out) {
  if (!merges(c)) return;
  for (std::int32_t n = 0; n < used_splits(c); ++n)
    for (const bool counted : {false, true})
      out.with(
          [&](Deviation& d) {
            d.combine.scaled_split = n;
            d.combine.factor = 0;
            d.combine.max_of_counted = counted;
          },
          {number("split", n), frame_value(counted)});
}

void doubled(const Case& c, Variants& out) {
  if (!merges(c)) return;
  for (std::int32_t n = 0; n < used_splits(c); ++n)
    out.with(
        [&](Deviation& d) {
          d.combine.scaled_split = n;
          d.combine.factor = 2;
        },
        {number("split", n)});
}

void alone(const Case& c, Variants& out) {
  // Of two splits, one alone is the other one dropped.
  if (used_splits(c) < 3 || !merges(c)) return;
  for (std::int32_t n = 0; n < used_splits(c); ++n)
    for (const bool counted : {false, true})
      out.with(
          [&](Deviation& d) {
            d.combine.only_split = n;
            d.combine.max_of_counted = counted;
          },
          {number("split", n), frame_value(counted)});
}

void maps(const Case& c, Variants& out) {
  if (!c.geometry().has_split_merge) return;
  const auto add = [&](PartialMap map, const char* name) {
    for (const bool o_only : {false, true})
      out.with(
          [&](Deviation& d) {
            d.combine.map = map;
            d.combine.map_o_only = o_only;
          },
          {named("from", static_cast<double>(map), name),
           named("of", o_only, o_only ? "o" : "m, l and o")});
  };
  const Problem& p = c.problem();
  if (merges(c)) {
    add(PartialMap::kFirstSplit, "split 0");
    // All of a permutation of splits is the right sum: only o alone shows it.
    for (const auto& [map, name] : {std::pair{PartialMap::kNextSplit, "the next split"},
                                    {PartialMap::kReversedSplits, "the splits in reverse"}})
      out.with(
          [&, map = map](Deviation& d) {
            d.combine.map = map;
            d.combine.map_o_only = true;
          },
          {named("from", static_cast<double>(map), name), named("of", 1, "o")});
  }
  if (p.heads > 1) add(PartialMap::kFirstHead, "head 0");
  if (p.batch > 1) add(PartialMap::kFirstBatch, "batch 0");
  if (p.seqlen_q > 1 && c.geometry().tile.block_m > 1)
    add(PartialMap::kFirstRow, "the query tile's first row");
}

const Entry kEntries[] = {
    {{.id = "combine-lse-base",
      .statement = "splits are weighted with e^(kappa lse): their lse is in another base",
      .formula = "F25",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"kappa", "lse"},
      .citation = "sglang#35045, vllm#28840",
      .remedy = "exp for natural lse, exp2 for lse in base 2, on both sides of the workspace",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) {
       if (!merges(c)) return;
       for (const MergedLse lse :
            {MergedLse::kRight, MergedLse::kOverBase, MergedLse::kOfLargest}) {
         Deviation d;
         d.combine.lse = lse;
         out.add_free(d,
                      {"kappa",
                       0x1p-6,
                       0x1p6,
                       {std::numbers::ln2, std::numbers::log2e, 4},
                       {{"kappa", std::numbers::ln2, "ln 2: natural lse read as base 2"},
                        {"kappa", std::numbers::log2e, "log2 e: base-2 lse read as natural"}}},
                      {lse_value(lse)});
       }
     },
     [](Deviation& d, double kappa) {
       d.combine.max_factor = kappa;
       d.combine.o_power = kappa - 1;
       d.combine.l_power = kappa;
     }},
    {{.id = "combine-mean",
      .statement = "the merge is the plain mean of the splits' outputs",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"lse"},
      .citation = "",
      .remedy = "the weights of the merge",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) { weighted(c, out, 0, -1, 0); }},
    {{.id = "combine-without-max",
      .statement = "splits are added as they are: the factor e^(m_i - m) is missing",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"lse"},
      .citation = "",
      .remedy = "the weights of the merge: e^(m_i - m), on l and on o",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) { weighted(c, out, 0, 0, 1); }},
    {{.id = "combine-max-only",
      .statement = "normalised splits are weighted with e^(m_i - m) alone: their l is missing",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"lse"},
      .citation = "",
      .remedy = "the weights of normalised partials: e^(m_i - m) l_i",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) { weighted(c, out, 1, -1, 0); }},
    {{.id = "combine-counts-l-twice",
      .statement = "the weights of splits that are not normalised hold their l",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"form", "lse"},
      .citation = "",
      .remedy = "whether partials are normalised: the writer and the merge must agree",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) {
       weighted(c, out, 1, 1, 1, {named("form", 0, "in the sum of o")});
       weighted(c, out, 1, 1, 2, {named("form", 1, "in both sums")});
       weighted(c, out, 1, 0, 2, {named("form", 2, "in the sum of l")});
     }},
    {{.id = "combine-lacks-l",
      .statement = "the merge divides by the sum of e^(m_i - m), without l",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"lse"},
      .citation = "",
      .remedy = "the denominator of the merge: sum of e^(m_i - m) l_i",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) { weighted(c, out, 1, 0, 0); }},
    {{.id = "combine-divides-by-l-twice",
      .statement = "normalised splits are merged as if they were not",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "",
      .remedy = "whether partials are normalised: the writer and the merge must agree",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) { weighted(c, out, 1, -1, 1); }},
    {{.id = "split-dropped",
      .statement = "one split is left out of the merge",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "m"},
      .citation = "",
      .remedy = "the number of splits the merge loops over, and who writes each partial",
      .needs_tiles = true,
      .needs_splits = true},
     dropped},
    {{.id = "split-doubled",
      .statement = "one split is counted twice in the merge",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split"},
      .citation = "",
      .remedy =
          "ranges of splits that overlap, and merges that begin with split 0 and add it again",
      .needs_tiles = true,
      .needs_splits = true},
     doubled},
    {{.id = "split-alone",
      .statement = "the output is that of one split",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "m"},
      .citation = "",
      .remedy = "whether the merge runs, and what it reads",
      .needs_tiles = true,
      .needs_splits = true},
     alone},
    {{.id = "partial-of-another",
      .statement = "the merge reads the partial of another split, head, batch or row",
      .formula = "F24",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"from", "of"},
      .citation = "flash-attention#2388, flash-attention#2842",
      .remedy = "strides of the workspace, in the writer and in the merge",
      .needs_tiles = true,
      .needs_splits = true},
     maps},
    {{.id = "empty-split-merged",
      .statement =
          "a split without keys takes part in the merge, with o = 0 and an lse that is not -inf",
      .formula = "F22",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"lse"},
      .citation = "vllm#15492, vllm#49294",
      .remedy = "what an empty split writes: lse = -inf",
      .needs_splits = true},
     [](const Case& c, Variants& out) {
       if (!c.geometry().has_split_merge) return;
       for (const double lse : {0.0, std::numeric_limits<double>::infinity()})
         out.with(
             [&](Deviation& d) {
               d.combine.extra = ExtraSplit::kEmpty;
               d.combine.extra_lse = lse;
             },
             {number("lse", lse)});
     }},
    {{.id = "sink-counted",
      .statement = "attention sinks are counted that are not there, or too often",
      .formula = "F23",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"n"},
      .citation = "",
      .remedy = "who adds the sink: one split of one row, once"},
     [](const Case& c, Variants& out) {
       FreeParameter n{"n", 0x1p-20, 0x1p20, {1, 2, 16}, {}};
       n.named = {{"n", 1, "1"}, {"n", 2, "2"}};
       if (merges(c) && c.geometry().num_splits > 2)
         n.named.push_back({"n", static_cast<double>(c.geometry().num_splits), "num_splits"});
       out.add_free({}, n);
     },
     [](Deviation& d, double n) { d.combine.sinks = n; }},
    {{.id = "partials-narrow",
      .statement = "accumulators are rounded to a narrow type between the two kernels",
      .formula = "F21",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"type"},
      .citation = "flashinfer#5020",
      .remedy = "the type of the workspace",
      .needs_tiles = true,
      .needs_splits = true},
     [](const Case& c, Variants& out) {
       if (!c.geometry().has_split_merge) return;
       const DType declared = c.arithmetic().partial;
       if (declared == DType::kFp32)
         out.with([](Deviation& d) { d.combine.partial = Narrow::kFp16; },
                  {named("type", 1, "fp16")});
       if (declared != DType::kBf16)
         out.with([](Deviation& d) { d.combine.partial = Narrow::kBf16; },
                  {named("type", 3, "bf16")});
     }},
};

}  // namespace

std::span<const Entry> combine_entries() { return kEntries; }

}  // namespace attn_diag::reference
