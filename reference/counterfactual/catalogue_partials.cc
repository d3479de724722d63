// F21 to F24: what the merge of splits reads, and what takes part in it besides them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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

// Which part of a partial is another's.
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

// Every permutation of few splits, rotations and exchanges of more, and every constant.
void split_maps(const PredictionInputs& c, Variants& out) {
  const std::int32_t n =
      std::min(c.geometry().num_splits, static_cast<std::int32_t>(kWeightedSplits));
  if (n < c.geometry().num_splits) return;
  using Map = std::vector<std::int32_t>;
  std::set<Map> seen;
  const auto add = [&](const Map& map, std::initializer_list<Of> parts) {
    std::string text = "splits";
    bool right = true;
    for (std::int32_t i = 0; i < n; ++i) {
      const std::int32_t from = map[static_cast<std::size_t>(i)];
      text += ' ' + std::to_string(from);
      right = right && from == i;
    }
    if (right || !seen.insert(map).second) return;
    for (const Of of : parts)
      out.with(
          [&](Deviation& d) {
            d.combine.map = PartialMap::kSplits;
            for (std::size_t i = 0; i < map.size() && i < kWeightedSplits; ++i)
              d.combine.split_map[i] = static_cast<std::uint8_t>(map[i]);
            set_of(d.combine, of);
          },
          {named("from", 2000 + static_cast<double>(seen.size()), text), of_value(of)});
  };
  const auto made = [&](const auto& from) {
    Map map;
    for (std::int32_t i = 0; i < n; ++i) map.push_back(from(i));
    return map;
  };
  // Those that maps() has by name.
  seen.insert(made([](std::int32_t) { return 0; }));
  seen.insert(made([&](std::int32_t i) { return (i + 1) % n; }));
  seen.insert(made([&](std::int32_t i) { return n - 1 - i; }));
  for (std::int32_t k = 1; k < n; ++k)
    add(made([&](std::int32_t) { return k; }), {Of::kAll, Of::kO, Of::kSums});
  add(made([&](std::int32_t i) { return std::min(i + 1, n - 1); }), {Of::kAll, Of::kO, Of::kSums});
  add(made([](std::int32_t i) { return std::max(i - 1, 0); }), {Of::kAll, Of::kO, Of::kSums});
  add(made([](std::int32_t i) { return i / 2; }), {Of::kAll, Of::kO, Of::kSums});
  // A permutation of the sums alone is the inverse one of o alone.
  for (std::int32_t k = 2; k < n; ++k)
    add(made([&](std::int32_t i) { return (i + k) % n; }), {Of::kO});
  for (std::int32_t a = 0; a < n; ++a)
    for (std::int32_t b = a + 1; b < n; ++b)
      add(made([&](std::int32_t i) { return i == a ? b : i == b ? a : i; }), {Of::kO});
  add(made([&](std::int32_t i) { return (i ^ 1) < n ? i ^ 1 : i; }), {Of::kO});
  if (n > 4) return;
  Map order = made([](std::int32_t i) { return i; });
  while (std::next_permutation(order.begin(), order.end())) add(order, {Of::kO});
}

void maps(const PredictionInputs& c, Variants& out) {
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
    // A permutation of whole partials gives the right sum; if it undoes itself, permuting o alone or the sums alone
    // is the same.
    add_of(PartialMap::kNextSplit, "the next split", {Of::kO});
    if (c.geometry().num_splits > 2) {
      add_of(PartialMap::kNextSplit, "the next split", {Of::kSums});
      add_of(PartialMap::kReversedSplits, "the splits in reverse", {Of::kO});
    }
  }
  if (merges(c)) split_maps(c, out);
  struct Named {
    PartialMap map;
    const char* name;
  };
  for (const auto& [map, name] :
       std::initializer_list<Named>{{PartialMap::kFirstHead, "head 0"},
                                    {PartialMap::kNextHead, "the next head"},
                                    {PartialMap::kPreviousHead, "the head before"},
                                    {PartialMap::kReversedHeads, "heads in reverse"},
                                    {PartialMap::kLastHead, "the last head"},
                                    {PartialMap::kHeadPairs, "head ^ 1"}}) {
    // With two heads, all maps but the first and the last read the other one.
    const bool constant = map == PartialMap::kFirstHead || map == PartialMap::kLastHead;
    if (p.heads > 2 || (p.heads == 2 && (constant || map == PartialMap::kNextHead))) add(map, name);
  }
  if (p.heads != p.kv_heads) {
    if (p.kv_heads > 1) add(PartialMap::kKvHead, "head / group");
    if (p.kv_heads > 1) add(PartialMap::kHeadModulo, "head % kv_heads");
    if (p.kv_heads > 1) add(PartialMap::kHeadOfGroup, "the first of the head's group");
  }
  for (const auto& [map, name] :
       std::initializer_list<Named>{{PartialMap::kFirstBatch, "batch 0"},
                                    {PartialMap::kNextBatch, "the next batch"},
                                    {PartialMap::kLastBatch, "the last batch"},
                                    {PartialMap::kPreviousBatch, "the batch before"},
                                    {PartialMap::kReversedBatches, "batches in reverse"}}) {
    const bool other = map == PartialMap::kPreviousBatch || map == PartialMap::kReversedBatches;
    if (p.batch > (other ? 2 : 1)) add(map, name);
  }
  if (p.seqlen_q == 1) return;
  if (c.geometry().tile.block_m > 1) add(PartialMap::kFirstRow, "the query tile's first row");
  if (p.seqlen_q > c.geometry().tile.block_m) add(PartialMap::kFirstQuery, "query 0");
  add(PartialMap::kNextQuery, "the next query");
  if (p.seqlen_q < 3) return;
  add(PartialMap::kPreviousQuery, "the query before");
  add(PartialMap::kReversedQueries, "queries in reverse");
  add(PartialMap::kLastQuery, "the last query");
  add(PartialMap::kQueryPairs, "query ^ 1");
  if (p.seqlen_q > 8) add(PartialMap::kQueryOfFragment, "query ^ 8");
}

// Written in one order of axes and read in another.
void orders(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  if (!c.geometry().has_split_merge) return;
  struct Order {
    PartialOrder order;
    const char* axes;  // the slowest first
    bool usual;        // of workspaces
  };
  const Order all[] = {{PartialOrder::kBhqn, "bhqn", true},  {PartialOrder::kBhnq, "bhnq", true},
                       {PartialOrder::kBnhq, "bnhq", true},  {PartialOrder::kNbhq, "nbhq", true},
                       {PartialOrder::kHbqn, "hbqn", false}, {PartialOrder::kHbnq, "hbnq", false},
                       {PartialOrder::kBqhn, "bqhn", false}, {PartialOrder::kQbhn, "qbhn", false},
                       {PartialOrder::kNbqh, "nbqh", false}, {PartialOrder::kNhbq, "nhbq", false},
                       {PartialOrder::kBqnh, "bqnh", false}};
  // Axes with one element do not matter.
  const auto effective = [&](const char* axes) {
    std::string text;
    for (const char axis : std::string(axes))
      if ((axis == 'b' && p.batch > 1) || (axis == 'h' && p.heads > 1) ||
          (axis == 'q' && p.seqlen_q > 1) || (axis == 'n' && merges(c)))
        text += axis;
    return text;
  };
  const auto bracketed = [](const char* axes) {
    std::string text;
    for (const char axis : std::string(axes)) text += std::string("[") + axis + ']';
    return text;
  };
  std::set<std::pair<std::string, std::string>> seen;
  for (const Order& written : all)
    for (const Order& read : all) {
      // Ours are the first and the fourth: of these every other one is tried.
      const bool first =
          written.order == PartialOrder::kBhqn || written.order == PartialOrder::kNbhq;
      if (!written.usual || (!read.usual && !first)) continue;
      const std::string to = effective(written.axes), from = effective(read.axes);
      if (to == from || !seen.emplace(to, from).second) continue;
      for (const Of of : {Of::kAll, Of::kO, Of::kSums})
        out.with(
            [&](Deviation& d) {
              d.combine.written = written.order;
              d.combine.read = read.order;
              set_of(d.combine, of);
            },
            {named("from",
                   static_cast<double>(written.order) * 16 + static_cast<double>(read.order),
                   "the place in " + bracketed(read.axes) + ", written in " +
                       bracketed(written.axes)),
             of_value(of)});
    }
}

// Looked for with the extents of another shape, or a cell early or late.
void shapes(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const Geometry& g = c.geometry();
  if (!g.has_split_merge) return;
  const auto add = [&](const auto& set, const std::string& what, PartialOrder order) {
    for (const Of of : {Of::kAll, Of::kO, Of::kSums})
      out.with(
          [&](Deviation& d) {
            set(d.combine);
            d.combine.written = d.combine.read = order;
            set_of(d.combine, of);
          },
          {named("from", 1000, what), of_value(of)});
  };
  const bool rows = p.batch * p.heads * p.seqlen_q > 1;
  for (const std::int32_t n : {g.num_splits - 1, g.num_splits + 1})
    if (n > 0 && rows)
      add([&](CombineChange& x) { x.read_splits = n; },
          "the place with " + std::to_string(n) + " splits", PartialOrder::kBhqn);
  const std::int32_t padded = ceil_div(p.seqlen_q, g.tile.block_m) * g.tile.block_m;
  for (const std::int32_t queries : std::set{p.seqlen_k, padded})
    for (const auto& [order, axes] : {std::pair{PartialOrder::kBhqn, "[b][h][q][n]"},
                                      {PartialOrder::kNbhq, "[n][b][h][q]"},
                                      {PartialOrder::kBhnq, "[b][h][n][q]"}})
      if (queries != p.seqlen_q)
        add([&](CombineChange& x) { x.read_queries = queries; },
            "the place with " + std::to_string(queries) + " queries, in " + axes, order);
  for (const auto& [order, axes] :
       {std::pair{PartialOrder::kBhqn, "[b][h][q][n]"}, {PartialOrder::kNbhq, "[n][b][h][q]"}})
    if (p.kv_heads != p.heads)
      add([&](CombineChange& x) { x.read_heads = p.kv_heads; },
          std::string("the place with kv_heads heads, in ") + axes, order);
  if (!merges(c)) return;
  for (const std::int32_t shift : {1, -1})
    add([&](CombineChange& x) { x.read_shift = shift; },
        shift > 0 ? "the place after it" : "the place before it", PartialOrder::kBhqn);
}

void partials_of_another(const PredictionInputs& c, Variants& out) {
  maps(c, out);
  orders(c, out);
  shapes(c, out);
}

// e^lse keys that add nothing to o, and n sinks, are the same function: each has the values that are its own
// fixed, and knows the other's by name.
void empty_splits(const PredictionInputs& c, Variants& out) {
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
  Deviation nan;
  nan.combine.extra = ExtraSplit::kEmpty;
  nan.combine.extra_lse = std::numeric_limits<double>::infinity();
  nan.combine.nan_of_infinite = true;
  out.add(nan, {named("split", 1, "one more"), named("lse", 1, "inf, o = NaN")});
  add(ExtraSplit::kEmpty, "one more");
  if (merges(c) && (masked(c) || used_splits(c) < c.geometry().num_splits))
    add(ExtraSplit::kEachEmpty, "those without keys");
}

// What such a split has for o is what stood there before: that of another split, say.
void stale_splits(const PredictionInputs& c, Variants& out) {
  if (!merges(c)) return;
  const auto add = [&](ExtraSplit extra, const char* which) {
    for (std::int32_t n = 0; n < used_splits(c); ++n)
      for (const bool divided : {true, false}) {
        Deviation d;
        d.combine.extra = extra;
        d.combine.stale_split = n;
        d.combine.stale_divided = divided;
        const std::vector<ParameterValue> values = {
            named("split", static_cast<double>(extra), which),
            named("o", n * 2 + divided,
                  "that of split " + std::to_string(n) + (divided ? ", divided" : ""))};
        for (const double lse : {0.0, 1.0, std::numeric_limits<double>::infinity()}) {
          d.combine.extra_lse = lse;
          std::vector<ParameterValue> fixed = values;
          fixed.push_back(number("lse", lse));
          out.add(d, std::move(fixed));
        }
        d.combine.extra_lse = 0;
        out.add_free(d, {"lse", -40, 40, {0.0}, {}}, values);
      }
  };
  add(ExtraSplit::kEmpty, "one more");
  if (masked(c) || used_splits(c) < c.geometry().num_splits)
    add(ExtraSplit::kEachEmpty, "those without keys");
}

void sinks(const PredictionInputs& c, Variants& out) {
  // Without a mask that is as many sinks as there are tiles.
  if (masked(c))
    under_both_loops(c, out, [](Deviation& d) { d.recurrence.tile_sinks = 1; },
                     {named("n", 0, "1 with every tile")});
  // Without a mask every split has keys for every row.
  if (merges(c) && masked(c))
    out.with(
        [](Deviation& d) {
          d.combine.sinks = 1;
          d.combine.sinks_of_splits = true;
        },
        {named("n", 0, "1 with every split that has keys")});
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

const Entry kPartial[] = {
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
    {{.id = "stale-split-merged",
      .statement = "a split without keys takes part in the merge, with the o of another split",
      .formula = "F22",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "o", "lse"},
      .citation = "vllm#49294",
      .remedy = "what an empty split writes: lse = -inf, and o = 0",
      .needs_tiles = true,
      .needs_splits = true},
     stale_splits,
     [](Deviation& d, double lse) { d.combine.extra_lse = lse; }},
    {{.id = "sink-counted",
      .statement = "attention sinks are counted that are not there, or too often",
      .formula = "F23",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"n", "loop"},
      .citation = "",
      .remedy = "who adds the sink: one split of one row, once"},
     sinks,
     [](Deviation& d, double n) { d.combine.sinks = n; }},
    {{.id = "partials-narrow",
      .statement = "partials are rounded to a narrow type between the two kernels",
      .formula = "F21",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"type", "of"},
      .citation = "flashinfer#5020",
      .remedy = "the type of the workspace",
      .needs_tiles = true,
      .needs_splits = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!c.geometry().has_split_merge) return;
       const DType declared = c.arithmetic().partial;
       for (const auto& [type, name] :
            {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}}) {
         const auto add = [&, type = type, name = name](const char* what, int number,
                                                        const auto& set) {
           out.with([&](Deviation& d) { set(d.combine, type); },
                    {named("type", static_cast<double>(type), name), named("of", number, what)});
         };
         add("lse", 2, [](CombineChange& x, Narrow to) { x.partial_lse = to; });
         add("l", 3, [](CombineChange& x, Narrow to) { x.partial_l = to; });
         add("m", 5, [](CombineChange& x, Narrow to) { x.partial_m = to; });
         if (declared == DType::kBf16 || (declared == DType::kFp16 && type == Narrow::kFp16))
           continue;
         add("o", 0, [](CombineChange& x, Narrow to) { x.partial = to; });
         add("o, divided by l", 1, [](CombineChange& x, Narrow to) {
           x.partial = to;
           x.partial_divided = true;
         });
         add("o, divided by l, and lse", 4, [](CombineChange& x, Narrow to) {
           x.partial = x.partial_lse = to;
           x.partial_divided = true;
         });
         add("o and l", 5, [](CombineChange& x, Narrow to) { x.partial = x.partial_l = to; });
       }
     }},
};

}  // namespace

std::span<const Entry> partial_entries() { return kPartial; }

}  // namespace attn_diag::reference
