// Inputs for a run: what q, k and v are filled with.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"

namespace attn_diag {
namespace {

enum class Kind { kRandn, kUniform, kOnes, kRamp, kRising };
enum class Operand : std::uint64_t { kQ = 1, kK = 2, kV = 3 };

// Finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose outputs look independent.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A counter-based generator: the value depends on the coordinates alone, never on what was drawn
// before.
class Draw {
 public:
  Draw(std::uint64_t seed, Operand operand, std::int64_t b, std::int64_t h, std::int64_t s)
      : x_row(mix(mix(mix(mix(mix(seed) ^ static_cast<std::uint64_t>(operand)) ^ u64(b)) ^ u64(h)) ^
                  u64(s))) {}

  // (0, 1]
  double uniform(std::int64_t d, std::uint64_t stream = 0) const {
    const std::uint64_t bits = mix(mix(x_row ^ u64(d)) + stream);
    return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
  }

  // Standard normal, by Box and Muller.
  double normal(std::int64_t d) const {
    return std::sqrt(-2.0 * std::log(uniform(d, 1))) *
           std::cos(2.0 * std::numbers::pi * uniform(d, 2));
  }

 private:
  static std::uint64_t u64(std::int64_t x) { return static_cast<std::uint64_t>(x); }
  std::uint64_t x_row;
};

// Scores of kind rising climb by this much from the first key to the last.
constexpr double kRise = 8.0;

double element(Kind kind, Operand operand, const Problem& p, const Draw& draw, std::int64_t b,
               std::int64_t h, std::int64_t s, std::int64_t d) {
  switch (kind) {
    case Kind::kRandn:
      return draw.normal(d);
    case Kind::kUniform:
      return 2.0 * draw.uniform(d) - 1.0;
    case Kind::kOnes:
      return 1.0;
    case Kind::kRamp: {
      // Steps of 1/16 in [-1, 1]: exact in every type, and neighbours along every axis differ.
      const std::int64_t phase = operand == Operand::kQ ? 0 : operand == Operand::kK ? 11 : 23;
      return static_cast<double>((7 * b + 5 * h + 3 * s + d + phase) % 33 - 16) / 16.0;
    }
    case Kind::kRising: {
      // q.k * softmax_scale runs from about -kRise at the first key to 0 at the last, so that the
      // row max grows with every KV tile, and e^-m is large; v carries batch, head and key.
      const double noise = 0.25 * draw.normal(d);
      if (operand == Operand::kQ) return 1.0 + noise;
      const double place = static_cast<double>(s + 1) / p.seqlen_k;
      if (operand == Operand::kK)
        return kRise * (place - 1.0) / (p.head_dim * static_cast<double>(p.softmax_scale)) + noise;
      return 2.0 * noise + place + 0.25 * static_cast<double>(h) + 0.125 * static_cast<double>(b);
    }
  }
  return 0.0;
}

std::vector<std::byte> fill(Kind kind, Operand operand, const Problem& p, std::uint64_t seed,
                            double scale) {
  const bool is_q = operand == Operand::kQ;
  const std::int64_t heads = is_q ? p.heads : p.kv_heads;
  const std::int64_t seqlen = is_q ? p.seqlen_q : p.seqlen_k;
  const std::int64_t dim = operand == Operand::kV ? p.head_dim_v : p.head_dim;
  const Strides strides = dense_strides(p.layout, heads, seqlen, dim);
  std::vector<std::byte> out(static_cast<std::size_t>(p.batch * heads * seqlen * dim) *
                             size_of(p.dtype));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t s = 0; s < seqlen; ++s) {
        const Draw draw(seed, operand, b, h, s);
        const std::int64_t row = b * strides.batch + h * strides.head + s * strides.seq;
        for (std::int64_t d = 0; d < dim; ++d) {
          store_element(out.data(), p.dtype, row + d,
                        scale * element(kind, operand, p, draw, b, h, s, d));
        }
      }
    }
  }
  return out;
}

Kind parse_kind(const std::string& text) {
  const auto& kinds = input_kinds();
  std::string names;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (text == kinds[i].name) return static_cast<Kind>(i);
    names += (i == 0 ? "" : ", ") + std::string(kinds[i].name);
  }
  throw Error("Unknown kind of inputs '" + text + "'. There are: " + names + ".");
}

}  // namespace

const std::vector<InputKindInfo>& input_kinds() {
  // In the order of Kind.
  static const std::vector<InputKindInfo> kinds = {
      {"randn", "standard normal; the default"},
      {"uniform", "uniform in [-1, 1]"},
      {"ones", "all ones: scores are all alike, which hides most bugs; o must be 1"},
      {"ramp", "sixteenths, different along every axis, exact in every type: easy to read"},
      {"rising",
       "the row max grows with every KV tile and v carries batch, head and key: shows "
       "bugs of the rescaling and of indexing that randn can hide"},
  };
  return kinds;
}

InputData make_inputs(const Problem& problem, const std::string& kind, std::uint64_t seed,
                      double scale) {
  check_problem(problem);
  const Kind parsed = parse_kind(kind);
  InputData inputs;
  inputs.q = fill(parsed, Operand::kQ, problem, seed, scale);
  inputs.k = fill(parsed, Operand::kK, problem, seed, scale);
  inputs.v = fill(parsed, Operand::kV, problem, seed, scale);
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
