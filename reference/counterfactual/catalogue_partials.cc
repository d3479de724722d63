// F21 to F24: what the merge of splits reads, and what takes part in it besides them.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

// What of a partial is another's.
enum class Of { kAll, kO, kSums };

void set_of(CombineChange& change, Of of) {
  change.map_o_only = of == Of::kO;
  change.map_sums_only = of == Of::kSums;
}

ParameterValue of_value(Of of) {
  return named("of", static_cast<double>(of),
               of == Of::kAll ? "m, l and o"
               : of == Of::kO ? "o"
                              : "m and l");
}

void maps(const Case& c, Variants& out) {
  if (!c.geometry().has_split_merge) return;
  const auto add_of = [&](PartialMap map, const char* name, std::initializer_list<Of> parts) {
    for (const Of of : parts)
      out.with(
          [&](Deviation& d) {
            d.combine.map = map;
            set_of(d.combine, of);
          },
          {named("from", static_cast<double>(map), name), of_value(of)});
  };
  const auto add = [&](PartialMap map, const char* name) {
    add_of(map, name, {Of::kAll, Of::kO, Of::kSums});
  };
  const Problem& p = c.problem();
  if (merges(c)) {
    add(PartialMap::kFirstSplit, "split 0");
    // All of a permutation of splits is the right sum; of a permutation that undoes itself, o alone and the
    // sums alone are the same.
    add_of(PartialMap::kNextSplit, "the next split", {Of::kO});
    if (c.geometry().num_splits > 2) {
      add_of(PartialMap::kNextSplit, "the next split", {Of::kSums});
      add_of(PartialMap::kReversedSplits, "the splits in reverse", {Of::kO});
    }
  }
  if (p.heads > 1) add(PartialMap::kFirstHead, "head 0");
  if (p.batch > 1) add(PartialMap::kFirstBatch, "batch 0");
  if (p.seqlen_q > 1 && c.geometry().tile.block_m > 1)
    add(PartialMap::kFirstRow, "the query tile's first row");
  if (p.seqlen_q > c.geometry().tile.block_m) add(PartialMap::kFirstQuery, "query 0");
  if (p.heads > 1) add(PartialMap::kNextHead, "the next head");
  if (p.batch > 1) add(PartialMap::kNextBatch, "the next batch");
  if (p.seqlen_q > 1) add(PartialMap::kNextQuery, "the next query");
}

// Written in one order of axes and read in another.
void orders(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  if (!merges(c) || p.seqlen_q == 1) return;
  std::vector<std::pair<PartialOrder, const char*>> different = {
      {PartialOrder::kBhqn, "[b][h][q][n]"}, {PartialOrder::kBhnq, "[b][h][n][q]"}};
  if (p.heads > 1) different.emplace_back(PartialOrder::kBnhq, "[b][n][h][q]");
  if (p.batch > 1) different.emplace_back(PartialOrder::kNbhq, "[n][b][h][q]");
  for (const auto& [written, as] : different)
    for (const auto& [read, where] : different) {
      if (written == read) continue;
      for (const Of of : {Of::kAll, Of::kO, Of::kSums})
        out.with(
            [&, to = written, from = read](Deviation& d) {
              d.combine.written = to;
              d.combine.read = from;
              set_of(d.combine, of);
            },
            {named("from", static_cast<double>(written) * 4 + static_cast<double>(read),
                   std::string("the place in ") + where + ", written in " + as),
             of_value(of)});
    }
}

void partials_of_another(const Case& c, Variants& out) {
  maps(c, out);
  orders(c, out);
}

// e^lse keys that add nothing to o, and n sinks, are the same function: each has the values that are its own
// fixed, and knows the other's by name.
void empty_splits(const Case& c, Variants& out) {
  if (!c.geometry().has_split_merge) return;
  const auto add = [&](ExtraSplit extra, const char* which) {
    Deviation d;
    d.combine.extra = extra;
    const ParameterValue split = named("split", static_cast<double>(extra), which);
    for (const double lse : {0.0, 1.0, std::numeric_limits<double>::infinity()}) {
      d.combine.extra_lse = lse;
      out.add(d, {split, number("lse", lse)});
    }
    const double n = c.geometry().num_splits;
    d.combine.extra_lse = 0;
    out.add_free(d,
                 {"lse",
                  -40,
                  40,
                  {-1.0, 0.0, 1.0},
                  {{"lse", std::numbers::ln2, "ln 2"}, {"lse", std::log(n), "ln(num_splits)"}}},
                 {split});
  };
  add(ExtraSplit::kEmpty, "one more");
  if (merges(c) && (masked(c) || used_splits(c) < c.geometry().num_splits))
    add(ExtraSplit::kEachEmpty, "those without keys");
}

void sinks(const Case& c, Variants& out) {
  std::set<std::int32_t> counts = {2};
  if (merges(c)) counts.insert(c.geometry().num_splits);
  for (const std::int32_t n : counts)
    out.with([&](Deviation& d) { d.combine.sinks = n; }, {number("n", n)});
  out.add_free({}, {"n",
                    0x1p-20,
                    0x1p20,
                    {1, 2, 16},
                    {{"n", 1, "1"},
                     {"n", std::numbers::e, "e"},
                     {"n", static_cast<double>(c.problem().heads), "heads"},
                     {"n", static_cast<double>(num_kv_tiles(c.problem(), c.geometry())),
                      "the number of KV tiles"}}});
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
     partials_of_another},
    {{.id = "empty-split-merged",
      .statement =
          "a split without keys takes part in the merge, with o = 0 and an lse that is not -inf",
      .formula = "F22",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "lse"},
      .citation = "vllm#15492, vllm#49294",
      .remedy = "what an empty split writes: lse = -inf",
      .needs_tiles = true,
      .needs_splits = true},
     empty_splits,
     [](Deviation& d, double lse) { d.combine.extra_lse = lse; }},
    {{.id = "sink-counted",
      .statement = "attention sinks are counted that are not there, or too often",
      .formula = "F23",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"n"},
      .citation = "",
      .remedy = "who adds the sink: one split of one row, once"},
     sinks,
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
