// F3, F4, F18: what scores have besides, which nobody asked for.
#include <cmath>
#include <numbers>
#include <string>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/prediction_inputs_data.h"
#include "reference/counterfactual/unite.h"

namespace attn_diag::reference {
namespace {

void caps(const PredictionInputs& c, Variants& out) {
  if (c.data().extras.softcap != 0) return;
  FreeParameter cap{"cap", 0x1p-6, 0x1p12, {1, 30}, {}};
  for (const double value : {1.0, 10.0, 15.0, 20.0, 25.0, 30.0, 50.0, 100.0})
    cap.named.push_back({"cap", value, number_text(value)});
  const auto add = [&](SoftcapChange form, const char* what) {
    Deviation d;
    d.logits.softcap = form;
    out.add_free(d, cap, {named("form", static_cast<double>(form), what)});
  };
  add(SoftcapChange::kRight, "c tanh(s / c)");
  add(SoftcapChange::kNotMultiplied, "tanh(s / c)");
  if (masked(c)) add(SoftcapChange::kAfterMask, "c tanh(s / c), masked scores too");
  out.with(
      [](Deviation& d) {
        d.logits.cap = 1;
        d.logits.softcap = SoftcapChange::kTimesTanh;
      },
      {named("form", static_cast<double>(SoftcapChange::kTimesTanh), "s tanh(s)")});
}

void distances(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const double scale = p.softmax_scale;
  FreeParameter slope{"slope", -16, 16, {-1, -0.1, 0.1, 1}, {}};
  for (const double sign : {1.0, -1.0}) {
    const std::string minus = sign < 0 ? "-" : "";
    slope.named.push_back({"slope", sign, minus + "1"});
    slope.named.push_back({"slope", sign * std::numbers::ln2, minus + "ln 2"});
    slope.named.push_back({"slope", sign * std::numbers::log2e, minus + "log2 e"});
    slope.named.push_back({"slope", sign * scale, minus + "softmax_scale"});
    if (1 / scale <= 16)
      slope.named.push_back({"slope", sign / scale, minus + "1 / softmax_scale"});
  }
  const auto add = [&](DistanceBias bias, const char* what, HeadSlopes slopes, const char* of) {
    Deviation d;
    d.logits.bias = bias;
    d.logits.slopes = slopes;
    d.logits.bias_slope = 0;
    out.add_free(d, slope,
                 {named("times", static_cast<double>(bias), what),
                  named("of heads", static_cast<double>(slopes), of)});
  };
  const auto add_all = [&](HeadSlopes slopes, const char* of) {
    add(DistanceBias::kKeyMinusQuery, "key - query", slopes, of);
    add(DistanceBias::kKey, "key", slopes, of);
    const bool sees_behind = p.mask.kind != MaskKind::kCausal || p.seqlen_q != p.seqlen_k;
    if (sees_behind) add(DistanceBias::kMinusDistance, "-|key - query|", slopes, of);
  };
  add_all(HeadSlopes::kAlike, "1");
  if (p.heads == 1) return;
  add_all(HeadSlopes::kAlibi, "2^(-8 (head + 1) / heads)");
  if (p.heads != 8) add_all(HeadSlopes::kHalves, "2^-(head + 1)");
}

const Entry kUnasked[] = {
    {{.id = "softcap-left-on",
      .statement = "scores are capped, and no softcap was asked for",
      .formula = "F4",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"form", "cap"},
      .citation = "",
      .remedy = "the default of the softcap, and whether this code path is given it"},
     caps,
     [](Deviation& d, double cap) { d.logits.cap = cap; }},
    {{.id = "distance-bias-left-on",
      .statement = "a bias that grows with the distance of query and key is added unasked",
      .formula = "F3",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"times", "of heads", "slope"},
      .citation = "",
      .remedy = "whether ALiBi is on, its slopes, and their factor if exp2 follows"},
     distances,
     [](Deviation& d, double slope) { d.logits.bias_slope = slope; }},
    {{.id = "scores-offset",
      .statement = "a constant is added to every score: o is right, m and lse are not",
      .formula = "F3",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"offset"},
      .citation = "",
      .remedy = "what is added to the scores or taken off them, and not given back to lse"},
     [](const PredictionInputs&, Variants& out) {
       FreeParameter offset{"offset", -256, 256, {-1, 1}, {}};
       for (const double value : {-10.0, -8.0, -1.0, 1.0, 8.0, 10.0})
         offset.named.push_back({"offset", value, number_text(value)});
       out.add_free({}, offset);
     },
     [](Deviation& d, double offset) { d.logits.offset = offset; }},
    {{.id = "scores-not-cleared",
      .statement = "the accumulator of q.k goes on from that of the tile before",
      .formula = "F18",
      .family = Family::kLogits,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "",
      .remedy = "the accumulator of the first product: cleared before every tile",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (longest_split(c) < 2) return;
       const auto set = [](Deviation& d) { d.logits.accumulates = true; };
       // Other loops begin with the first key.
       if (c.problem().mask.kind == MaskKind::kWindow)
         under_both_loops(c, out, set);
       else
         out.with(set);
     }},
};

}  // namespace

std::span<const Entry> unasked_entries() { return kUnasked; }

}  // namespace attn_diag::reference
