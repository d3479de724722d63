// F1, F3, F4, F5: the logits.
#include <cmath>
#include <numbers>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

void temperatures(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  const double scale = p.softmax_scale, d = p.head_dim;
  FreeParameter kappa{"kappa", 0x1p-14, 0x1p14, {0.25, 1, 4}, {}};
  const auto known = [&](double value, const char* what) {
    kappa.named.push_back({"kappa", value, what});
  };
  known(1 / scale, "1 / softmax_scale: the scale is missing");
  known(scale, "softmax_scale: the scale is applied twice");
  known(std::numbers::ln2, "ln 2: exp2 of scores meant for exp");
  known(std::numbers::log2e, "log2 e: exp of scores meant for exp2");
  known(1 / std::sqrt(d) / scale, "1 / (softmax_scale sqrt(head_dim)): the given scale is ignored");
  known(1 / d / scale, "1 / (softmax_scale head_dim): 1 / d for 1 / sqrt(d)");
  for (const double multiple : {8, 16, 32, 64, 128, 256}) {
    const double padded = std::ceil(d / multiple) * multiple;
    if (padded > d) known(std::sqrt(d / padded), "sqrt(d / d_padded): the padded head_dim is used");
  }
  for (const double starts : {1 / scale, scale}) kappa.starts.push_back(starts);
  out.add_free({}, kappa);
}

const Entry kEntries[] = {
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
};

}  // namespace

std::span<const Entry> logits_entries() { return kEntries; }

}  // namespace attn_diag::reference
