#include "attn_diag/reference/twin.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "reference/infinity.h"
#include "reference/mask.h"
#include "reference/widen.h"

namespace attn_diag::reference {
namespace {

bool narrow(DType type) { return type == DType::kFp16 || type == DType::kBf16; }

// Towards zero, as a tensor core ends a block of products: the digits that do not fit are dropped.
double truncated(DType type, double x) {
  if (type != DType::kFp32 || !std::isfinite(x)) {
    const double near = narrowed(type, x);
    return std::fabs(near) <= std::fabs(x) ? near : narrowed(type, x - (near - x));
  }
  constexpr std::uint64_t kDropped = (1u << 29) - 1;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~kDropped);
}

// A number of [-1, 1) that depends on x alone, to stand for an error of unknown sign.
double sign_and_size(double x) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x) * 0x9e3779b97f4a7c15u;
  bits ^= bits >> 32;
  bits *= 0xd6e8feb86659fd93u;
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

// What one split, or the row, has gathered.
struct State {
  double m = -kInf, l = 0;
  std::vector<double> o;
};

class Twin {
 public:
  Twin(const Problem& p, const Geometry& g, const Arithmetic& a, const Inputs& inputs,
       std::uint32_t roundings)
      : x_p(p),
        x_g(g),
        x_a(a),
        x_inputs(inputs),
        x_roundings(roundings),
        x_accumulate(a.accumulate == DType::kFp64 ? DType::kFp32 : a.accumulate) {}

  void row(const RowIndex& at, double* out) {
    load_keys(at.batch, kv_head_of(x_p, at.head));
    x_visible = visible_keys(x_p, at.query);
    scores(at);
    const std::int32_t splits = x_g.has_split_merge ? x_g.num_splits : 1;
    State total;
    for (std::int32_t n = 0; n < splits; ++n) {
      const KeyRange tiles =
          splits == 1 ? KeyRange{0, kv_tile_count(x_p, x_g)} : tiles_of_split(x_p, x_g, n);
      State split = run_split(tiles);
      if (!x_g.has_split_merge) {
        total = std::move(split);
        break;
      }
      store_partial(split);
      x_splits.push_back(std::move(split));
    }
    if (x_g.has_split_merge) total = merge();
    const bool empty = x_visible.empty();
    for (std::int32_t d = 0; d < x_p.head_dim_v; ++d) {
      double o = empty ? 0 : total.o[static_cast<std::size_t>(d)] / total.l;
      if (on(Rounded::kOutput)) o = narrowed(x_a.output, narrowed(x_accumulate, o));
      out[d] = o;
    }
  }

 private:
  bool on(Rounded r) const { return (x_roundings & rounded_bit(r)) != 0; }
  double rounded(Rounded r, double x) const { return on(r) ? narrowed(x_accumulate, x) : x; }
  bool tensor_cores() const { return x_a.dot_ulp > 1; }

  void load_keys(std::int32_t batch, std::int32_t kv_head) {
    if (batch == x_batch && kv_head == x_kv_head) return;
    x_batch = batch;
    x_kv_head = kv_head;
    const auto rows = static_cast<std::size_t>(x_p.seqlen_k);
    x_k.resize(rows * static_cast<std::size_t>(x_p.head_dim));
    x_v.resize(rows * static_cast<std::size_t>(x_p.head_dim_v));
    widen_rows(x_inputs.k, x_p.dtype, x_p.layout, x_p.kv_heads, x_p.seqlen_k, x_p.head_dim, batch,
               kv_head, 0, x_p.seqlen_k, x_k.data());
    widen_rows(x_inputs.v, x_p.dtype, x_p.layout, x_p.kv_heads, x_p.seqlen_k, x_p.head_dim_v, batch,
               kv_head, 0, x_p.seqlen_k, x_v.data());
  }

  double dot(const double* q, const double* k) const {
    double sum = 0;
    if (!on(Rounded::kQkSums)) {
      for (std::int32_t d = 0; d < x_p.head_dim; ++d) sum += q[d] * k[d];
    } else if (tensor_cores()) {
      for (std::int32_t d = 0; d < x_p.head_dim; d += kBlock) {
        for (std::int32_t i = d; i < std::min(d + kBlock, x_p.head_dim); ++i) sum += q[i] * k[i];
        sum = truncated(x_accumulate, sum);
      }
    } else {
      for (std::int32_t d = 0; d < x_p.head_dim; ++d)
        sum = narrowed(x_accumulate, sum + q[d] * k[d]);
    }
    return sum;
  }

  void scores(const RowIndex& at) {
    x_splits.clear();
    std::vector<double> q(static_cast<std::size_t>(x_p.head_dim));
    widen_rows(x_inputs.q, x_p.dtype, x_p.layout, x_p.heads, x_p.seqlen_q, x_p.head_dim, at.batch,
               at.head, at.query, at.query + 1, q.data());
    const auto scale = static_cast<double>(x_p.softmax_scale);
    if (x_a.scale_applied_to_q)
      for (double& x : q) {
        x *= scale;
        if (on(Rounded::kScaledQ)) x = narrowed(x_a.scaled_q, narrowed(x_accumulate, x));
      }
    x_s.assign(static_cast<std::size_t>(x_p.seqlen_k), -kInf);
    for (std::int32_t j = x_visible.begin; j < x_visible.end; ++j) {
      double s = dot(q.data(), x_k.data() + std::int64_t{j} * x_p.head_dim);
      if (!x_a.scale_applied_to_q) s = rounded(Rounded::kScores, s * scale);
      if (on(Rounded::kScores) && narrow(x_a.scores)) s = narrowed(x_a.scores, s);
      x_s[static_cast<std::size_t>(j)] = s;
    }
  }

  // e^(s - m), as fast code has it: 2^(fl(fl(s - m) log2 e)).
  double exp(double s, double m) const {
    if (s == -kInf) return 0;
    if (!on(Rounded::kExp)) return std::exp(s - m);
    const double x = narrowed(x_accumulate, s - m);
    const auto y = static_cast<float>(x * 1.4426950408889634);
    double e = std::exp2(y);
    constexpr double kOfExp2 = 2;  // what a good exp2 is off by anyway
    if (x_a.exp_ulp > kOfExp2) e *= 1 + sign_and_size(x) * (x_a.exp_ulp - kOfExp2) * 0x1p-24;
    return e < x_a.exp_flush ? 0 : narrowed(x_accumulate, e);
  }

  State run_split(KeyRange tiles) const {
    State split;
    split.o.assign(static_cast<std::size_t>(x_p.head_dim_v), 0.0);
    for (std::int32_t t = tiles.begin; t < tiles.end; ++t) {
      const KeyRange keys = intersect(keys_of_tile(x_p, x_g, t), x_visible);
      if (!keys.empty()) add_tile(keys, split);
    }
    return split;
  }

  void add_tile(KeyRange keys, State& split) const {
    const double* s = x_s.data();
    const double largest = *std::max_element(s + keys.begin, s + keys.end);
    const double running = std::max(split.m, largest);
    const double m = x_g.frame == Frame::kRunning ? running : largest;
    State tile{m, 0, std::vector<double>(split.o.size(), 0.0)};
    for (std::int32_t j = keys.begin; j < keys.end; ++j) {
      const double p = exp(s[j], m);
      const double narrow_p = on(Rounded::kProbs) && narrow(x_a.probs) ? narrowed(x_a.probs, p) : p;
      tile.l = rounded(Rounded::kRowSums, tile.l + (x_a.l_from_rounded_probs ? narrow_p : p));
      add_products(narrow_p, j, j + 1 == keys.end || (j - keys.begin) % kBlock == kBlock - 1,
                   tile.o);
    }
    combine(split, tile, running);
  }

  // sum += p v of one key; `ends`: a tensor core's block of products ends with it.
  void add_products(double p, std::int32_t key, bool ends, std::vector<double>& sum) const {
    const double* v = x_v.data() + std::int64_t{key} * x_p.head_dim_v;
    const std::size_t n = sum.size();
    if (!on(Rounded::kPvSums)) {
      for (std::size_t d = 0; d < n; ++d) sum[d] += p * v[d];
    } else if (tensor_cores()) {
      for (std::size_t d = 0; d < n; ++d) sum[d] += p * v[d];
      if (ends)
        for (double& x : sum) x = truncated(x_accumulate, x);
    } else {
      for (std::size_t d = 0; d < n; ++d) sum[d] = narrowed(x_accumulate, sum[d] + p * v[d]);
    }
  }

  // total := total rescaled to the frame m, plus part rescaled to it.
  void combine(State& total, const State& part, double m) const {
    const double alpha = exp(total.m, m), beta = part.m == m ? 1 : exp(part.m, m);
    total.l = rounded(Rounded::kRowSums, total.l * alpha + part.l * beta);
    for (std::size_t d = 0; d < total.o.size(); ++d)
      total.o[d] = rounded(Rounded::kPvSums, total.o[d] * alpha + part.o[d] * beta);
    total.m = m;
  }

  void store_partial(State& split) const {
    if (on(Rounded::kPartials) && narrow(x_a.partial))
      for (double& x : split.o) x = narrowed(x_a.partial, x);
    if (!on(Rounded::kPartialStats) || !narrow(x_a.partial_stats)) return;
    split.m = narrowed(x_a.partial_stats, split.m);
    split.l = narrowed(x_a.partial_stats, split.l);
  }

  State merge() const {
    double m = -kInf;
    for (const State& split : x_splits) m = std::max(m, split.m);
    State total{m, 0, std::vector<double>(static_cast<std::size_t>(x_p.head_dim_v), 0.0)};
    for (const State& split : x_splits)
      if (split.m != -kInf) combine(total, split, m);
    return total;
  }

  static constexpr std::int32_t kBlock = 16;  // products that a tensor core adds at once

  const Problem& x_p;
  const Geometry& x_g;
  const Arithmetic& x_a;
  const Inputs& x_inputs;
  const std::uint32_t x_roundings;
  const DType x_accumulate;
  std::int32_t x_batch = -1, x_kv_head = -1;
  std::vector<double> x_k, x_v, x_s;
  KeyRange x_visible;
  std::vector<State> x_splits;
};

std::string in_type(std::string what, DType type) {
  return std::move(what) + std::string(name(type));
}

}  // namespace

std::string describe(Rounded rounding, const Arithmetic& a, const Geometry& g) {
  const std::string cut = a.dot_ulp > 1 ? ", truncated as by tensor cores" : "";
  switch (rounding) {
    case Rounded::kScaledQ:
      if (!a.scale_applied_to_q) return {};
      return in_type("q * scale rounded to ", a.scaled_q);
    case Rounded::kQkSums:
      return in_type("q.k summed in ", a.accumulate) + cut;
    case Rounded::kScores:
      if (narrow(a.scores)) return in_type("S rounded to ", a.scores);
      return a.scale_applied_to_q ? std::string() : in_type("S scaled in ", a.accumulate);
    case Rounded::kExp:
      return in_type("exp(S - m) in ", a.accumulate);
    case Rounded::kProbs:
      return narrow(a.probs) ? in_type("P rounded to ", a.probs) : std::string();
    case Rounded::kRowSums:
      return in_type("l summed in ", a.accumulate);
    case Rounded::kPvSums:
      return in_type("P.V summed in ", a.accumulate) + cut;
    case Rounded::kPartials:
      if (!g.has_split_merge || !narrow(a.partial)) return {};
      return in_type("accumulators of splits rounded to ", a.partial);
    case Rounded::kPartialStats:
      if (!g.has_split_merge || !narrow(a.partial_stats)) return {};
      return in_type("m and l of splits rounded to ", a.partial_stats);
    case Rounded::kOutput:
      return in_type(narrow(a.output) ? "o rounded to " : "o divided in ", a.output);
  }
  return {};
}

std::vector<double> twin_o(const Problem& problem, const Geometry& geometry,
                           const Arithmetic& arithmetic, const Inputs& inputs,
                           std::span<const RowIndex> rows, std::uint32_t roundings) {
  if (arithmetic.part != Part::kAttention)
    throw std::invalid_argument("the twin computes attention from q, k and v");
  Twin twin(problem, geometry, arithmetic, inputs, roundings);
  std::vector<double> out(rows.size() * static_cast<std::size_t>(problem.head_dim_v));
  for (std::size_t r = 0; r < rows.size(); ++r)
    twin.row(rows[r], out.data() + r * static_cast<std::size_t>(problem.head_dim_v));
  return out;
}

}  // namespace attn_diag::reference
