// F2, F21b, F30: factors of the output.
#include <numbers>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

Deviation with_l_power(double power) {
  Deviation d;
  d.finish.l_power = power;
  return d;
}

const Entry kEntries[] = {
    {{.id = "l-missing",
      .statement = "the output is not divided by the row sum",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "of our own hunts",
      .remedy = "the final division by l"},
     [](const Case&, Variants& out) { out.add(with_l_power(0)); }},
    {{.id = "l-twice",
      .statement = "the output is divided by the row sum twice",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "of our own hunts",
      .remedy = "who divides by l: the partials or the end, not both"},
     [](const Case&, Variants& out) { out.add(with_l_power(2)); }},
    {{.id = "gain",
      .statement = "the output is multiplied by a constant",
      .formula = "F2",
      .family = Family::kFinish,
      .stage = Stage::kReduce,
      .parameters = {"g"},
      .citation = "of our own hunts",
      .remedy =
          "factors after the softmax: softmax_scale, a scale of v, a sum over warps or lanes"},
     [](const Case& c, Variants& out) {
       FreeParameter g{"g", 0x1p-14, 0x1p14, {0.25, 1, 4}, {}};
       g.named.push_back({"g", c.problem().softmax_scale, "softmax_scale"});
       g.named.push_back(
           {"g", 1 / static_cast<double>(c.problem().softmax_scale), "1 / softmax_scale"});
       for (const int n : {2, 4, 8, 16, 32}) {
         g.named.push_back({"g", static_cast<double>(n), std::to_string(n)});
         g.named.push_back({"g", 1.0 / n, "1 / " + std::to_string(n)});
       }
       out.add_free({}, g);
     },
     [](Deviation& d, double g) { d.finish.gain = g; }},
};

}  // namespace

std::span<const Entry> finish_entries() { return kEntries; }

}  // namespace attn_diag::reference
