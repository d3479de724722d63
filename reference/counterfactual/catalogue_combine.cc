// F25, F25b: the weights of the merge of splits.
#include <algorithm>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

ParameterValue lse_value(MergedLse lse) {
  switch (lse) {
    case MergedLse::kRight:
      return named("lse", 1, "right");
    case MergedLse::kOverBase:
      return named("lse", 2, "of the same sums, in that base");
    case MergedLse::kOfLargest:
      return named("lse", 3, "of the same sums, relative to the largest");
    case MergedLse::kOfWeights:
      return named("lse", 4, "of the sum of the weights");
    case MergedLse::kOfSums:
      break;
  }
  return named("lse", 0, "of the same sums");
}

// The first or the last split alone has other weights.
void of_one_split(const PredictionInputs& c, Variants& out, double max_factor, double o_power) {
  if (!merges(c)) return;
  const std::int32_t last = used_splits(c) - 1;
  if (last < 1 || last > 31) return;
  for (const std::int32_t split : {0, last})
    out.with(
        [&](Deviation& d) {
          d.combine.max_factor = max_factor;
          d.combine.o_power = o_power;
          d.combine.only_splits = 1u << split;
        },
        {named("split", split, split == 0 ? "the first alone" : "the last alone")});
}

void weighted(const PredictionInputs& c, Variants& out, double max_factor, double o_power,
              double l_power, const std::vector<ParameterValue>& parameters = {},
              bool skips_zero_l = false) {
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
          d.combine.skips_zero_l = skips_zero_l;
        },
        std::move(values));
    if (one) break;
  }
}

// The frame of the merged sums: m of all splits, or of those that are not left out.
ParameterValue frame_value(bool counted) {
  return named("m", counted, counted ? "of what is merged" : "of all splits");
}

std::string splits_of(std::uint32_t set) {
  std::string text;
  for (std::int32_t n = 0; set >> n != 0 && n < 32; ++n)
    if ((set >> n & 1) != 0) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return text;
}

void set_base(Deviation& d, double kappa) {
  d.combine.max_factor = kappa;
  d.combine.o_power = kappa - 1;
  d.combine.l_power = kappa;
}

void bases(const PredictionInputs& c, Variants& out) {
  if (!merges(c)) return;
  for (const MergedLse lse : {MergedLse::kRight, MergedLse::kOfSums, MergedLse::kOverBase,
                              MergedLse::kOfLargest, MergedLse::kOfWeights})
    for (const auto& [kappa, what] :
         {std::pair{std::numbers::ln2, "ln 2: natural lse read as base 2"},
          {std::numbers::log2e, "log2 e: base-2 lse read as natural"}})
      out.with(
          [&, base = kappa](Deviation& d) {
            set_base(d, base);
            d.combine.lse = lse;
          },
          {named("kappa", kappa, what), lse_value(lse)});
  // One split's lse is of another base than the others', or all but the first's or the last's.
  const std::int32_t splits = used_splits(c);
  if (splits > 1 && splits <= 32) {
    const std::uint32_t all = splits < 32 ? (1u << splits) - 1 : ~0u;
    std::vector<std::uint32_t> sets;
    for (std::int32_t n = 0; n < splits; ++n) sets.push_back(1u << n);
    if (splits > 2) sets.insert(sets.end(), {all & ~1u, all >> 1});
    for (const std::uint32_t set : sets)
      for (const MergedLse lse : {MergedLse::kOfSums, MergedLse::kRight})
        for (const auto& [kappa, what] :
             {std::pair{std::numbers::ln2, "ln 2"}, {std::numbers::log2e, "log2 e"}})
          out.with(
              [&, base = kappa](Deviation& d) {
                set_base(d, base);
                d.combine.only_splits = set;
                d.combine.lse = lse;
              },
              {named("kappa", kappa, what), named("splits", set, splits_of(set)), lse_value(lse)});
  }
  // At 1 the weights are right: that is no bug.
  for (const MergedLse lse : {MergedLse::kRight, MergedLse::kOfSums})
    for (const auto& [low, high] : {std::pair{0x1p-6, 0.95}, {1.05, 0x1p6}}) {
      Deviation d;
      d.combine.lse = lse;
      out.add_free(d, {"kappa", low, high, {low < 1 ? 0.5 : 4}, {}},
                   {lse_value(lse), named("range", low > 1, low > 1 ? "above 1" : "below 1")});
    }
}

// Only m or only ln l is in another base, in both sums or in one.
void bases_of_parts(const PredictionInputs& c, Variants& out) {
  if (!merges(c)) return;
  struct Sums {
    bool o, l;
    const char* name;
  };
  const double scale = c.problem().softmax_scale;
  for (const auto& [o, l, name] : {Sums{true, true, "both sums"},
                                   {true, false, "the sum of o"},
                                   {false, true, "the sum of l"}})
    for (const MergedLse lse : {MergedLse::kOfSums, MergedLse::kRight}) {
      const auto set_sums = [&, o = o, l = l](Deviation& d) {
        d.combine.max_factor_o = o;
        d.combine.max_factor_l = l;
        d.combine.lse = lse;
      };
      const std::vector<ParameterValue> values = {named("in", o + 2 * l, name), lse_value(lse)};
      for (const auto& [kappa, what] : {std::pair{std::numbers::ln2, "ln 2"},
                                        {std::numbers::log2e, "log2 e"},
                                        {scale, "softmax_scale"}}) {
        std::vector<ParameterValue> of_m = values;
        of_m.insert(of_m.begin(), named("m times", kappa, what));
        out.with(
            [&, factor = kappa](Deviation& d) {
              set_sums(d);
              d.combine.max_factor = factor;
            },
            std::move(of_m));
        if (kappa == scale) continue;
        std::vector<ParameterValue> of_l = values;
        of_l.insert(of_l.begin(), named("ln l times", kappa, what));
        out.with(
            [&, factor = kappa, o = o, l = l](Deviation& d) {
              d.combine.o_power = o ? factor - 1 : 0;
              d.combine.l_power = l ? factor : 1;
              d.combine.lse = lse;
            },
            std::move(of_l));
      }
    }
  for (const auto& [low, high] : {std::pair{0x1p-6, 0.95}, {1.05, 0x1p6}})
    out.add_free(
        {}, {"kappa", low, high, {low < 1 ? 0.5 : 4}, {}},
        {named("in", 3, "both sums"), named("range", low > 1, low > 1 ? "above 1" : "below 1")});
}

// Where splits are merged one after another.
void online(const PredictionInputs& c, Variants& out) {
  if (!merges(c) || used_splits(c) < 2) return;
  const std::pair<Rescale, const char*> hows[] = {
      {Rescale::kMissing, "missing"}, {Rescale::kInverted, "inverted"}, {Rescale::kZero, "0"}};
  const auto add = [&](OnlineMerge merge, bool beta, Rescale how, bool l, bool o,
                       const std::string& what, const char* of) {
    out.with(
        [&](Deviation& d) {
          d.combine.online = merge;
          if (l) (beta ? d.combine.beta_l : d.combine.alpha_l) = how;
          if (o) (beta ? d.combine.beta_o : d.combine.alpha_o) = how;
          if (merge == OnlineMerge::kDivided) d.combine.lse = MergedLse::kRight;
        },
        {named("what", static_cast<double>(how) * 2 + beta, what), named("of", l * 2 + o, of)});
  };
  for (const bool beta : {false, true})
    for (const auto& [how, name] : hows) {
      if (beta && how == Rescale::kZero) continue;
      const std::string what = std::string(beta ? "factor of the next split " : "alpha ") + name;
      add(OnlineMerge::kSums, beta, how, false, true, what, "o");
      add(OnlineMerge::kSums, beta, how, true, false, what, "l");
      add(OnlineMerge::kSums, beta, how, true, true, what, "l and o");
      add(OnlineMerge::kDivided, beta, how, false, true, what, "o divided by l");
    }
}

void dropped(const PredictionInputs& c, Variants& out) {
  if (!merges(c)) return;
  for (std::int32_t n = 0; n < used_splits(c); ++n) {
    for (const bool counted : {false, true})
      out.with(
          [&](Deviation& d) {
            d.combine.scaled_split = n;
            d.combine.factor = 0;
            d.combine.max_of_counted = counted;
          },
          {number("split", n), frame_value(counted), named("of", 0, "both sums")});
    out.with(
        [&](Deviation& d) {
          d.combine.scaled_split = n;
          d.combine.factor = 0;
          d.combine.factors_o_only = true;
        },
        {number("split", n), named("of", 1, "the sum of o")});
    for (const MergedLse lse : {MergedLse::kOfSums, MergedLse::kRight})
      out.with(
          [&](Deviation& d) {
            d.combine.scaled_split = n;
            d.combine.factor = 0;
            d.combine.factors_l_only = true;
            d.combine.lse = lse;
          },
          {number("split", n), named("of", 2, "the sum of l"), lse_value(lse)});
  }
}

void doubled(const PredictionInputs& c, Variants& out) {
  if (!merges(c)) return;
  for (std::int32_t n = 0; n < used_splits(c); ++n)
    out.with(
        [&](Deviation& d) {
          d.combine.scaled_split = n;
          d.combine.factor = 2;
        },
        {number("split", n)});
}

// The factor of one split is free. CombineChange::factors has all of them, to fit several.
void weights(const PredictionInputs& c, Variants& out) {
  if (!merges(c)) return;
  const auto splits = std::min(used_splits(c), static_cast<std::int32_t>(kWeightedSplits));
  for (std::int32_t n = 0; n < splits; ++n)
    for (const int sums : {0, 1, 2}) {
      Deviation d;
      d.combine.scaled_split = n;
      d.combine.factors_o_only = sums == 1;
      d.combine.factors_l_only = sums == 2;
      out.add_free(d, {"c", 0x1p-10, 0x1p10, {0.5, 2}, {{"c", 2, "2"}, {"c", 0.5, "1 / 2"}}},
                   {number("split", n), named("in", sums,
                                              sums == 1   ? "the sum of o"
                                              : sums == 2 ? "the sum of l"
                                                          : "both sums")});
    }
}

void alone(const PredictionInputs& c, Variants& out) {
  // With two splits, one alone is the other one dropped.
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

const Entry kCombine[] = {
    {{.id = "combine-lse-base",
      .statement = "splits are weighted with e^(kappa lse): their lse is in another base",
      .formula = "F25",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"kappa", "range", "splits", "lse"},
      .citation = "sglang#35045, vllm#28840",
      .remedy = "exp for natural lse, exp2 for lse in base 2, on both sides of the workspace",
      .needs_tiles = true,
      .needs_splits = true},
     bases,
     set_base},
    {{.id = "combine-max-base",
      .statement =
          "splits are weighted with e^(kappa m) l or e^m l^kappa: one part is in another base",
      .formula = "F25",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"m times", "ln l times", "in", "kappa", "range", "lse"},
      .citation = "",
      .remedy = "exp and exp2, log and log2, in both sums of the merge",
      .needs_tiles = true,
      .needs_splits = true},
     bases_of_parts,
     [](Deviation& d, double kappa) { d.combine.max_factor = kappa; }},
    {{.id = "combine-online",
      .statement = "a merge that takes one split after another rescales wrongly what it has",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"what", "of"},
      .citation = "",
      .remedy = "the factors e^(m_old - m_new) and e^(m_i - m_new), on l and on o",
      .needs_tiles = true,
      .needs_splits = true},
     online},
    {{.id = "combine-mean",
      .statement = "the merge is the plain mean of the splits' outputs",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"splits without keys", "lse"},
      .citation = "",
      .remedy = "the weights of the merge",
      .needs_tiles = true,
      .needs_splits = true},
     [](const PredictionInputs& c, Variants& out) {
       const auto counted = [](bool all) {
         return named("splits without keys", all, all ? "counted" : "not counted");
       };
       const bool some_empty = masked(c) || used_splits(c) < c.geometry().num_splits;
       if (!some_empty) return weighted(c, out, 0, -1, 0);
       weighted(c, out, 0, -1, 0, {counted(true)});
       weighted(c, out, 0, -1, 0, {counted(false)}, true);
     }},
    {{.id = "combine-without-max",
      .statement = "splits are added as they are: the factor e^(m_i - m) is missing",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "lse"},
      .citation = "",
      .remedy = "the weights of the merge: e^(m_i - m), on l and on o",
      .needs_tiles = true,
      .needs_splits = true},
     [](const PredictionInputs& c, Variants& out) {
       weighted(c, out, 0, 0, 1);
       of_one_split(c, out, 0, 0);
     }},
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
     [](const PredictionInputs& c, Variants& out) { weighted(c, out, 1, -1, 0); }},
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
     [](const PredictionInputs& c, Variants& out) {
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
     [](const PredictionInputs& c, Variants& out) { weighted(c, out, 1, 0, 0); }},
    {{.id = "combine-divides-by-l-twice",
      .statement = "normalised splits are merged as if they were not",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split"},
      .citation = "",
      .remedy = "whether partials are normalised: the writer and the merge must agree",
      .needs_tiles = true,
      .needs_splits = true},
     [](const PredictionInputs& c, Variants& out) {
       weighted(c, out, 1, -1, 1);
       of_one_split(c, out, 1, -1);
     }},
    {{.id = "split-dropped",
      .statement = "one split is left out of the merge",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "m", "of", "lse"},
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
    {{.id = "split-weights",
      .statement = "the weights of splits are off by factors of their own",
      .formula = "F25b",
      .family = Family::kCombine,
      .stage = Stage::kReduce,
      .parameters = {"split", "in", "c"},
      .citation = "",
      .remedy = "the weights of the merge: e^(m_i - m), and what is added more than once or scaled",
      .needs_tiles = true,
      .needs_splits = true},
     weights,
     [](Deviation& d, double c) { d.combine.factor = c; }},
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
};

}  // namespace

std::span<const Entry> combine_entries() { return kCombine; }

}  // namespace attn_diag::reference
