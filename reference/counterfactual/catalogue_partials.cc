// F21 to F24: what the merge of splits reads, and what takes part in it besides them.
#include <limits>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

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

std::span<const Entry> partial_entries() { return kEntries; }

}  // namespace attn_diag::reference
