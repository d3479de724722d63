// Inputs for a run: what q, k and v are filled with.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/inputs.h"
#include "harness/inputs/kinds.h"

namespace attn_diag {
namespace {

using inputs::FillRow;
using inputs::Operand;

struct Kind {
  InputKindInfo info;
  FillRow fill;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {{"randn", "standard normal; the default"}, inputs::randn},
      {{"uniform", "uniform in [-1, 1]"}, inputs::uniform},
      {{"ones", "all ones: scores are all alike, which hides most bugs; o must be 1"},
       inputs::ones},
      {{"ramp", "sixteenths, different along every axis, exact in every type: easy to read"},
       inputs::ramp},
      {{"rising",
        "the row max grows with every KV tile and v carries batch, head and key: shows "
        "bugs of the rescaling and of indexing that randn can hide"},
       inputs::rising},
      {{"probe",
        "to diagnose with: the row max moves with every tile, whatever the tile, e^-m is large, "
        "every "
        "key is a large part of some dim of o, and nothing is alike along any axis"},
       inputs::probe},
      {{"small", "an eighth of randn: scores nearly alike, as in a freshly initialised model"},
       inputs::small},
      {{"heavy",
        "heavy-tailed (Student's t, 3 degrees of freedom, cut at 256): a few keys take most of a "
        "row"},
       inputs::heavy},
      {{"large",
        "scores in the hundreds (q and k 8 times, v 256 times randn): exp without the max, and "
        "sums "
        "in fp16, overflow"},
       inputs::large},
      {{"cancel",
        "the terms of q.k and of P.V cancel down to a small rest: shows sums in too short a type"},
       inputs::cancel},
      {{"integers", "small integers: q.k has no rounding in fp32, in whatever order it is summed"},
       inputs::integers},
      {{"powers",
        "powers of two: q.k, P (0 or 1), l and P.V have no rounding in fp32, and o is one "
        "division"},
       inputs::powers},
  };
  return all;
}

std::vector<std::byte> fill(FillRow fill_row, Operand operand, const Problem& p, std::uint64_t seed,
                            double scale) {
  const bool is_q = operand == Operand::kQ;
  const std::int64_t heads = is_q ? p.heads : p.kv_heads;
  const std::int64_t seqlen = is_q ? p.seqlen_q : p.seqlen_k;
  const std::int64_t dim = operand == Operand::kV ? p.head_dim_v : p.head_dim;
  const Strides strides = dense_strides(p.layout, heads, seqlen, dim);
  std::vector<std::byte> out(static_cast<std::size_t>(p.batch * heads * seqlen * dim) *
                             size_of(p.dtype));
  std::vector<double> values(static_cast<std::size_t>(dim));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t s = 0; s < seqlen; ++s) {
        fill_row({p, seed, operand, b, h, s}, values);
        const std::int64_t row = b * strides.batch + h * strides.head + s * strides.seq;
        for (std::int64_t d = 0; d < dim; ++d)
          store_element(out.data(), p.dtype, row + d, scale * values[static_cast<std::size_t>(d)]);
      }
    }
  }
  return out;
}

FillRow find_kind(const std::string& text) {
  std::string names;
  for (const Kind& kind : kinds()) {
    if (text == kind.info.name) return kind.fill;
    names += (names.empty() ? "" : ", ") + std::string(kind.info.name);
  }
  throw Error("Unknown kind of inputs '" + text + "'. There are: " + names + ".");
}

}  // namespace

const std::vector<InputKindInfo>& input_kinds() {
  static const std::vector<InputKindInfo> infos = [] {
    std::vector<InputKindInfo> all;
    for (const Kind& kind : kinds()) all.push_back(kind.info);
    return all;
  }();
  return infos;
}

InputData make_inputs(const Problem& problem, const std::string& kind, std::uint64_t seed,
                      double scale) {
  check_problem(problem);
  const FillRow fill_row = find_kind(kind);
  InputData inputs;
  inputs.q = fill(fill_row, Operand::kQ, problem, seed, scale);
  inputs.k = fill(fill_row, Operand::kK, problem, seed, scale);
  inputs.v = fill(fill_row, Operand::kV, problem, seed, scale);
  inputs.kind = kind;
  inputs.seed = seed;
  inputs.scale = scale;
  inputs.has_nonfinite = has_nonfinite(inputs.q, problem.dtype) ||
                         has_nonfinite(inputs.k, problem.dtype) ||
                         has_nonfinite(inputs.v, problem.dtype);
  return inputs;
}

bool has_nonfinite(const std::vector<std::byte>& elements, DType dtype) {
  const auto n = static_cast<std::int64_t>(elements.size() / size_of(dtype));
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(load_element(elements.data(), dtype, i))) return true;
  }
  return false;
}

}  // namespace attn_diag
