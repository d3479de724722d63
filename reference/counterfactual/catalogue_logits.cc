// F1, F3 to F5, F16, F26: the logits.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "reference/counterfactual/catalogue_maps.h"
#include "reference/counterfactual/catalogue_sums.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/prediction_inputs_data.h"

namespace attn_diag::reference {
namespace {

bool has_bias(const PredictionInputs& c) { return !c.data().extras.bias.empty(); }
double softcap_of(const PredictionInputs& c) { return c.data().extras.softcap; }

void temperatures(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const double scale = p.softmax_scale, d = p.head_dim;
  FreeParameter kappa{"kappa", 0x1p-14, 0x1p14, {0.25, 1, 4, 1 / scale, scale}, {}};
  const auto known = [&](double value, const char* what) {
    if (std::fabs(value - 1) > 1e-9) kappa.named.push_back({"kappa", value, what});
  };
  known(1 / scale, "1 / softmax_scale: the scale is missing");
  known(scale, "softmax_scale: the scale is applied twice");
  known(std::numbers::ln2, "ln 2: exp2 of scores meant for exp");
  known(std::numbers::log2e, "log2 e: exp of scores meant for exp2");
  known(1 / std::sqrt(d) / scale, "1 / (softmax_scale sqrt(head_dim)): the given scale is ignored");
  known(1 / d / scale, "1 / (softmax_scale head_dim): 1 / d for 1 / sqrt(d)");
  double before = d;
  for (const double multiple : {8, 16, 32, 64, 128, 256}) {
    const double padded = std::ceil(d / multiple) * multiple;
    if (padded > before) known(std::sqrt(d / padded), "sqrt(d / d_padded): d is the padded one");
    before = padded;
  }
  out.add_free({}, kappa);
}

void bias_factors(const PredictionInputs& c, Variants& out) {
  if (!has_bias(c)) return;
  const double scale = c.problem().softmax_scale;
  FreeParameter factor{"factor", -64, 64, {-1, 0, 0.7, 1.4}, {}};
  factor.named = {{"factor", 0, "0: the bias is missing"},
                  {"factor", std::numbers::ln2, "ln 2: it is added after log2 e was applied"},
                  {"factor", std::numbers::log2e, "log2 e"},
                  {"factor", scale, "softmax_scale: it is added before the scale"},
                  {"factor", 1 / scale, "1 / softmax_scale"},
                  {"factor", -1, "-1: the sign"}};
  out.add_free({}, factor);
}

// Masked scores are capped like the others.
void capped_masks(const PredictionInputs& c, Variants& out) {
  for (const bool biased : {false, true})
    for (const TileLoop loop : {TileLoop::kAll, TileLoop::kBounded}) {
      std::vector<ParameterValue> values;
      if (has_bias(c))
        values.push_back(named("masked", biased, biased ? "-c + bias" : "-c"));
      else if (biased)
        continue;
      out.with(
          [&](Deviation& d) {
            d.logits.softcap =
                biased ? SoftcapChange::kAfterMaskBeforeBias : SoftcapChange::kAfterMask;
            d.mask.loop = loop;
          },
          std::move(values));
    }
}

const Entry kLogits[] = {
    {{.id = "temperature",
      .statement = "the scores are multiplied by another factor than softmax_scale",
      .formula = "F1",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"kappa"},
      .citation = "transformers#38290, ipex-llm#12619",
      .remedy =
          "where softmax_scale is applied: once, with the true head_dim, and with log2 e only "
          "if exp2 follows"},
     temperatures,
     [](Deviation& d, double kappa) { d.logits.kappa = kappa; }},
    {{.id = "bias-factor",
      .statement = "the additive bias is multiplied by a factor",
      .formula = "F3",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"factor"},
      .citation = "segment-anything-fast#71",
      .remedy = "whether the bias is added before or after softmax_scale and log2 e"},
     bias_factors,
     [](Deviation& d, double factor) { d.logits.bias_factor = factor; }},
    {{.id = "bias-before-cap",
      .statement = "the bias is added before the softcap, not after it",
      .formula = "F4",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {},
      .citation = "TransformerEngine#3391",
      .remedy = "the order of softcap and bias"},
     [](const PredictionInputs& c, Variants& out) {
       if (has_bias(c) && softcap_of(c) != 0)
         out.with([](Deviation& d) { d.logits.bias_before_cap = true; });
     }},
    {{.id = "softcap-missing",
      .statement = "the softcap is not applied",
      .formula = "F4",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {},
      .citation = "flash-attention#2396",
      .remedy = "whether this code path is given the softcap"},
     [](const PredictionInputs& c, Variants& out) {
       if (softcap_of(c) != 0)
         out.with([](Deviation& d) { d.logits.softcap = SoftcapChange::kMissing; });
     }},
    {{.id = "softcap-formula",
      .statement = "the softcap is another function of the score than c tanh(s / c)",
      .formula = "F4",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"form"},
      .citation = "flash-attention#2396",
      .remedy =
          "the two places where the cap enters: the division inside tanh, the product outside"},
     [](const PredictionInputs& c, Variants& out) {
       if (softcap_of(c) == 0) return;
       out.with([](Deviation& d) { d.logits.softcap = SoftcapChange::kTimesTanh; },
                {named("form", 0, "s tanh(s)")});
       out.with([](Deviation& d) { d.logits.softcap = SoftcapChange::kNotMultiplied; },
                {named("form", 1, "tanh(s / c)")});
       out.with([](Deviation& d) { d.logits.softcap = SoftcapChange::kScoreTimesTanh; },
                {named("form", 2, "s tanh(s / c)")});
     }},
    {{.id = "softcap-after-mask",
      .statement = "the softcap is applied to masked scores, which become -c instead of -inf",
      .formula = "F4",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"masked"},
      .citation = "TransformerEngine#3391",
      .remedy = "the order of softcap and mask"},
     [](const PredictionInputs& c, Variants& out) {
       if (softcap_of(c) == 0) return;
       if (c.problem().mask.kind != MaskKind::kNone) capped_masks(c, out);
       // Keys past the end, which are zeros, too: each is a sink of score -c.
       const std::int32_t past =
           num_kv_tiles(c.problem(), c.geometry()) * c.geometry().tile.block_n -
           c.problem().seqlen_k;
       if (past > 0)
         out.with([&](Deviation& d) { d.combine.sinks = past * std::exp(-softcap_of(c)); },
                  {named("masked", 2, "keys past the end alone")});
     }},
    {{.id = "columns-missing",
      .statement = "only some columns of q and k are multiplied, the first or the last ones",
      .formula = "F5",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"columns", "from"},
      .citation = "",
      .remedy = "the loop over head_dim: its begin, its bound and its step"},
     [](const PredictionInputs& c, Variants& out) {
       const std::int32_t dim = c.problem().head_dim;
       std::set<std::int32_t> tried{dim - 1, dim - 2, dim - 4, dim / 2, 1, 2, 4};
       for (std::int32_t columns = 8; columns < dim; columns += 8) tried.insert(columns);
       for (const std::int32_t columns : tried) {
         if (columns < 1 || columns >= dim) continue;
         out.with([&](Deviation& d) { d.logits.columns = columns; },
                  {number("columns", columns), named("from", 0, "the first")});
         out.with([&](Deviation& d) { d.logits.first_column = dim - columns; },
                  {number("columns", columns), named("from", 1, "the last")});
       }
     }},
    {{.id = "columns-of-next-row",
      .statement =
          "q and k are multiplied over the padded head_dim, which reaches into the next row",
      .formula = "F5",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"columns"},
      .citation = "",
      .remedy = "loads of a row: columns past head_dim must be 0"},
     [](const PredictionInputs& c, Variants& out) {
       const std::int32_t dim = c.problem().head_dim;
       std::int32_t before = dim;
       for (const std::int32_t columns :
            {ceil_div(dim, 8) * 8, ceil_div(dim, 16) * 16, ceil_div(dim, 32) * 32, dim + 16,
             ceil_div(dim, 64) * 64, ceil_div(dim, 80) * 80, ceil_div(dim, 96) * 96,
             ceil_div(dim, 128) * 128}) {
         if (columns <= before) continue;
         before = columns;
         out.with([&](Deviation& d) { d.logits.columns = columns; }, {number("columns", columns)});
       }
     }},
    {{.id = "scores-fragment",
      .statement = "elements of S change places within the 16x16 fragments of the first product",
      .formula = "F26",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"elements"},
      .citation = "flash-attention#2553",
      .remedy = "the table of lanes of the accumulator, where S is stored or masked",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       const TileShape tile = c.geometry().tile;
       for (const NamedMap& map : kFragmentMaps) {
         if (map.rows && (tile.block_m < 16 || c.problem().seqlen_q < 9)) continue;
         if (std::min(tile.block_n, c.problem().seqlen_k) <
             (map.map == FragmentMap::kPairsSwapped ? 2 : 9))
           continue;
         out.with([&](Deviation& d) { d.logits.fragment = map.map; },
                  {named("elements", static_cast<double>(map.map), map.name)});
       }
     }},
    {{.id = "scaled-query-narrow",
      .statement = "q is multiplied by the scale and rounded to a narrow type before q.k",
      .formula = "F16",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"type"},
      .citation = "",
      .remedy = "scale the scores, not q; or keep the scaled q in fp32"},
     [](const PredictionInputs& c, Variants& out) {
       // Powers of two round nothing.
       int exponent = 0;
       if (std::frexp(double{c.problem().softmax_scale}, &exponent) == 0.5) return;
       if (c.arithmetic().scale_applied_to_q && c.arithmetic().scaled_q != DType::kFp32) return;
       const auto add = [&](Narrow type, const char* name) {
         out.with([&](Deviation& d) { d.logits.scaled_query = type; },
                  {named("type", static_cast<double>(type), name)});
       };
       add(Narrow::kFp16, "fp16");
       add(Narrow::kBf16, "bf16");
       if (c.problem().dtype == DType::kFp32) add(Narrow::kTf32, "tf32");
     }},
    {{.id = "scores-narrow",
      .statement = "q.k is accumulated or kept in a narrow type",
      .formula = "F16",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"type", "every"},
      .citation = "ik_llama.cpp#1196, triton#1671",
      .remedy = "the accumulator type of the first product, and the type of the S tile"},
     [](const PredictionInputs& c, Variants& out) {
       const auto set = [](Deviation& d, Narrow type, std::int32_t every) {
         d.logits.type = type;
         d.logits.rounded_every = every;
       };
       narrow_sums(c.problem().head_dim, out, set);
       narrow_sum(Narrow::kFp16Saturated, "fp16, saturated", 0, out, set);
     }},
    {{.id = "scores-kept-narrow",
      .statement = "S is kept in a narrow type, with its scale and mask applied",
      .formula = "F16",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"type"},
      .citation = "triton#1671",
      .remedy = "the type of the S tile between the mask and the softmax"},
     [](const PredictionInputs&, Variants& out) {
       const auto add = [&](Narrow type, const char* name) {
         out.with([&](Deviation& d) { d.logits.scores = type; },
                  {named("type", static_cast<double>(type), name)});
       };
       add(Narrow::kFp16, "fp16");
       add(Narrow::kBf16, "bf16");
       add(Narrow::kTf32, "tf32");
     }},
};

}  // namespace

std::span<const Entry> logits_entries() { return kLogits; }

}  // namespace attn_diag::reference
