// F2, F11, F29, F30, F34: the last division, factors of the output, lse.
#include <string>

#include "reference/counterfactual/entry.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

void gains(const Case& c, Variants& out) {
  const double scale = c.problem().softmax_scale;
  FreeParameter g{"g", 0x1p-14, 0x1p14, {0.25, 1, 4}, {}};
  g.named = {{"g", scale, "softmax_scale"}, {"g", 1 / scale, "1 / softmax_scale"}};
  for (const int n : {2, 4, 8, 16, 32}) {
    g.named.push_back({"g", static_cast<double>(n), std::to_string(n)});
    g.named.push_back({"g", 1.0 / n, "1 / " + std::to_string(n)});
  }
  out.add_free({}, g);
}

void lane_sums(const Case& c, Variants& out) {
  const auto add = [&](LaneSum how, const char* what, std::int32_t lanes) {
    for (const bool guard : {true, false}) {
      // Without a mask every lane has keys.
      if (guard && c.problem().mask.kind == MaskKind::kNone) continue;
      out.with(
          [&](Deviation& d) {
            d.finish.lane_sum = how;
            d.finish.lanes = lanes;
            d.finish.lane_guard = guard;
          },
          {named("reduction", static_cast<double>(how), what), number("lanes", lanes),
           named("sum of 0", guard, guard ? "o = 0" : "o = inf")});
    }
  };
  for (const std::int32_t lanes : {32, 16, 8, 4}) {
    if (lanes > c.problem().seqlen_k || lanes > c.geometry().tile.block_n) continue;
    add(LaneSum::kShuffleDown, "right in lane 0 only", lanes);
    add(LaneSum::kOwn, "missing", lanes);
    add(LaneSum::kHalf, "over half of the lanes", lanes);
  }
}

void narrow_outputs(const Case& c, Variants& out) {
  const DType stored = c.arithmetic().output;
  const auto add = [&](Narrow type, const char* name) {
    out.with([&](Deviation& d) { d.finish.o_type = type; },
             {named("of", 0, "o"), named("type", static_cast<double>(type), name)});
  };
  if (stored != DType::kBf16) add(Narrow::kBf16, "bf16");
  if (stored == DType::kFp32) {
    add(Narrow::kFp16, "fp16");
    add(Narrow::kTf32, "tf32");
  }
  if (stored != DType::kBf16) add(Narrow::kFp16Cut, "fp16, cut off");
  if (stored != DType::kFp16) add(Narrow::kBf16Cut, "bf16, cut off");
  add(Narrow::kFp8E4m3, "fp8 e4m3");
  for (const auto& [type, name] : {std::pair{Narrow::kFp16, "fp16"}, {Narrow::kBf16, "bf16"}})
    out.with([&, type = type](Deviation& d) { d.finish.lse_type = type; },
             {named("of", 1, "lse"), named("type", static_cast<double>(type), name)});
}

void lse_forms(const Case& c, Variants& out) {
  const std::pair<LseForm, const char*> forms[] = {
      {LseForm::kBase2, "lse log2 e: in base 2"},
      {LseForm::kTimesLn2, "lse ln 2: converted twice"},
      {LseForm::kWithoutMax, "ln l"},
      {LseForm::kWithoutLog, "m"},
      {LseForm::kLogOfBase2, "m + log2 l"},
      {LseForm::kSum, "m + l"},
      {LseForm::kMaxUnscaled, "m / softmax_scale + ln l"},
      {LseForm::kMaxTwice, "m softmax_scale + ln l"},
      {LseForm::kNegated, "ln l - m"},
      {LseForm::kMaxOfBase2, "m log2 e + ln l"},
      {LseForm::kMaxTimesLn2, "m ln 2 + ln l"},
      {LseForm::kLogTimesLn2, "m + ln 2 ln l"},
  };
  const std::pair<LseForm, const char*> of_empty[] = {
      {LseForm::kEmptyInfinite, "+inf where a row sees no key"},
      {LseForm::kEmptyZero, "0 where a row sees no key"},
      {LseForm::kEmptyNan, "NaN where a row sees no key"},
      {LseForm::kEmptyLowest, "-FLT_MAX where a row sees no key"},
  };
  bool has_empty = false;
  for (std::int32_t query = 0; query < c.problem().seqlen_q; ++query)
    has_empty = has_empty || visible_keys(c.problem(), query).empty();
  for (const auto& [form, what] : of_empty)
    if (has_empty)
      out.with([&, form = form](Deviation& d) { d.finish.lse = form; },
               {named("form", static_cast<double>(form), what)});
  for (const auto& [form, what] : forms) {
    const bool scaled = form == LseForm::kMaxUnscaled || form == LseForm::kMaxTwice;
    if (scaled && c.problem().softmax_scale == 1) continue;
    out.with([&, form = form](Deviation& d) { d.finish.lse = form; },
             {named("form", static_cast<double>(form), what)});
  }
}

const Entry kEntries[] = {
    {{.id = "l-missing",
      .statement = "the output is not divided by the row sum",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "",
      .remedy = "the final division by l"},
     [](const Case&, Variants& out) { out.with([](Deviation& d) { d.finish.l_power = 0; }); }},
    {{.id = "l-twice",
      .statement = "the output is divided by the row sum twice",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "",
      .remedy = "who divides by l: the partials or the end, not both"},
     [](const Case&, Variants& out) { out.with([](Deviation& d) { d.finish.l_power = 2; }); }},
    {{.id = "gain",
      .statement = "the output is multiplied by a constant",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"g"},
      .citation = "",
      .remedy =
          "factors after the softmax: softmax_scale, a scale of v, a sum over warps or lanes"},
     gains,
     [](Deviation& d, double g) { d.finish.gain = g; }},
    {{.id = "l-times-n",
      .statement = "the row sum, already the same in all lanes or warps, is summed over them again",
      .formula = "F30",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"n"},
      .citation = "",
      .remedy = "reductions of a value that every lane has"},
     [](const Case&, Variants& out) {
       for (const double n : {2, 4, 8, 16, 32})
         out.with([&](Deviation& d) { d.finish.l_factor = n; }, {number("n", n)});
     }},
    {{.id = "l-seeded",
      .statement = "a constant is added to the row sum, or it begins with one",
      .formula = "F11",
      .family = Family::kFinish,
      .stage = Stage::kSoftmax,
      .parameters = {"l0", "m begins with"},
      .citation = "flashinfer#4267",
      .remedy = "the initial value of l, and an epsilon that guards the division"},
     [](const Case&, Variants& out) {
       out.add_free({}, {"l0",
                         0x1p-24,
                         0x1p12,
                         {0.001, 1},
                         {{"l0", 1, "1"}, {"l0", 1e-3, "1e-3"}, {"l0", 1e-6, "1e-6"}}});
       // Every split begins as if it had seen a key of score 0.
       out.with(
           [](Deviation& d) {
             d.softmax.m_floor = 0;
             d.recurrence.first_l = 1;
           },
           {number("l0", 1), named("m begins with", 1, "0")});
     },
     [](Deviation& d, double l0) { d.finish.l_added = l0; }},
    {{.id = "lane-sum-not-shared",
      .statement =
          "lanes divide by a partial row sum: the reduction is incomplete or not broadcast",
      .formula = "F29",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"reduction", "lanes", "sum of 0"},
      .citation = "",
      .remedy = "shfl_xor for shfl_down, or a shfl from lane 0 after it",
      .needs_tiles = true},
     lane_sums},
    {{.id = "fragment-row-l",
      .statement = "an element of an output fragment is divided by the l of another row",
      .formula = "F34",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"row"},
      .citation = "",
      .remedy = "which row a fragment's element i belongs to: it depends on the lane"},
     [](const Case& c, Variants& out) {
       if (c.problem().seqlen_q < 2 || c.geometry().tile.block_m < 2) return;
       out.with([](Deviation& d) { d.finish.l_row = RowOf16::kFirst; },
                {named("row", 1, "the first of 16")});
       if (c.geometry().tile.block_m >= 16 && c.problem().seqlen_q > 8)
         out.with([](Deviation& d) { d.finish.l_row = RowOf16::kSwapped; },
                  {named("row", 2, "r ^ 8")});
     }},
    {{.id = "output-narrow",
      .statement = "o or lse is rounded to a narrower type than it is stored in, or cut off",
      .formula = "F16",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"of", "type"},
      .citation = "",
      .remedy = "conversions of the result: the type, and that it rounds to nearest"},
     narrow_outputs},
    {{.id = "lse-form",
      .statement = "lse is another function of m and l; o is right",
      .formula = "F25",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"form"},
      .citation = "FlashMLA#106, sglang#35045",
      .remedy = "lse = m + ln l, natural, with m scaled"},
     lse_forms},
};

}  // namespace

std::span<const Entry> finish_entries() { return kEntries; }

}  // namespace attn_diag::reference
