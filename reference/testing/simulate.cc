#include "reference/testing/simulate.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "reference/testing/float_types.h"

namespace attn_diag::reference::testing {
namespace {

constexpr double kInf = INFINITY;

class Kernel {
 public:
  Kernel(const Case& c, const Arithmetic& a, const Style& style, const TensorValues* replace,
         Mistake mistake)
      : c_(c),
        p_(c.problem),
        g_(c.geometry),
        a_(a),
        style_(style),
        replace_(replace),
        mistake_(mistake),
        random_(style.seed) {}

  TensorValues run() {
    tiles_ = (p_.seqlen_k + g_.tile.block_n - 1) / g_.tile.block_n;
    for (int b = 0; b < p_.batch; ++b)
      for (int h = 0; h < p_.heads; ++h)
        for (int i = 0; i < p_.seqlen_q; ++i) row(b, h, i);
    return std::move(out_);
  }

 private:
  struct Split {
    double m = -kInf, l = 0;
    std::vector<double> o;
  };

  double round(double x) const { return round_to(a_.accumulate, x); }
  double add(double a, double b) const { return round(a + b); }
  double mul(double a, double b) const { return round(a * b); }
  double mul_add(double a, double b, double c) const {
    if (!style_.fused) return add(mul(a, b), c);
    if (a_.accumulate == DType::kFp32)
      return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
    return round(std::fma(a, b, c));
  }

  double exp(double x) const {
    if (x == -kInf) return 0;
    const auto single = static_cast<float>(x);
    float y = style_.exp_of_product ? std::exp2(single * 1.44269504f) : std::exp(single);
    if (style_.flush && y < a_.exp_flush) y = 0;
    return round(y);
  }

  // The rescaling between two frames; nothing seen yet weighs nothing.
  double weight(double m, double frame) const { return m == -kInf ? 0 : exp(add(m, -frame)); }

  // Sum of a_i * b_i in the style's order; where `products` is false, of a_i.
  double sum(const std::vector<double>& a, const std::vector<double>& b, bool products) {
    std::vector<std::size_t> at(a.size());
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = i;
    if (style_.order == Style::Order::kShuffled) std::shuffle(at.begin(), at.end(), random_);
    if (style_.order != Style::Order::kTree) {
      double total = 0;
      for (const std::size_t i : at)
        total = products ? mul_add(a[i], b[i], total) : add(total, a[i]);
      return total;
    }
    std::vector<double> part(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) part[i] = products ? mul(a[i], b[i]) : a[i];
    for (; part.size() > 1; part.resize((part.size() + 1) / 2))
      for (std::size_t i = 0; 2 * i < part.size(); ++i)
        part[i] = 2 * i + 1 < part.size() ? add(part[2 * i], part[2 * i + 1]) : part[2 * i];
    return part.empty() ? 0 : part[0];
  }

  // A tap: records, then replaces what isolation replaces.
  double tap(Tensor t, double x) {
    auto& recorded = out_[static_cast<std::size_t>(t)];
    recorded.push_back(x);
    const bool replaced = stage_of(t) != Stage::kReduce && replace_ != nullptr;
    if (!replaced) return x;
    return round(static_cast<float>((*replace_)[static_cast<std::size_t>(t)][recorded.size() - 1]));
  }

  bool sees(int query, int key) const {
    const Mask& mask = p_.mask;
    if (mask.kind == MaskKind::kNone) return true;
    const bool top_left =
        mask.kind == MaskKind::kCausal && mask.alignment == CausalAlignment::kTopLeft;
    const int distance = key - query - (top_left ? 0 : p_.seqlen_k - p_.seqlen_q);
    const int off = mistake_ == Mistake::kCausalOffByOne ? 1 : 0;
    if (mask.kind == MaskKind::kCausal) return distance <= off;
    return distance >= -mask.window_left && distance <= mask.window_right + off;
  }

  void scores(int b, int h, int i) {
    const int kv = h / (p_.heads / p_.kv_heads);
    const double scale = mistake_ == Mistake::kScaleMissing ? 1 : p_.softmax_scale;
    std::vector<double> q, k(static_cast<std::size_t>(p_.head_dim));
    for (int d = 0; d < p_.head_dim; ++d) {
      q.push_back(element(c_.q, p_, p_.heads, p_.seqlen_q, p_.head_dim, b, h, i, d));
      if (!a_.scale_applied_to_q) continue;
      q.back() = mul(q.back(), scale);
      if (a_.scaled_q != DType::kFp32) q.back() = round_to(a_.scaled_q, q.back());
    }
    s_.assign(static_cast<std::size_t>(p_.seqlen_k), -kInf);
    for (int j = 0; j < p_.seqlen_k; ++j) {
      double& s = s_[static_cast<std::size_t>(j)];
      if (sees(i, j)) {
        for (int d = 0; d < p_.head_dim; ++d)
          k[static_cast<std::size_t>(d)] =
              element(c_.k, p_, p_.kv_heads, p_.seqlen_k, p_.head_dim, b, kv, j, d);
        s = sum(q, k, true);
        if (a_.scores != DType::kFp32 && style_.scores_before_scale) s = round_to(a_.scores, s);
        if (!a_.scale_applied_to_q) s = mul(s, scale);
        if (a_.scores != DType::kFp32 && !style_.scores_before_scale) s = round_to(a_.scores, s);
      }
      s = tap(Tensor::kS, s);
      // What replaces it is held in the same type.
      if (a_.scores != DType::kFp32 && !style_.scores_before_scale) s = round_to(a_.scores, s);
    }
  }

  // The tile's m, P, l and partial_o, and what the split makes of them.
  void tile(int b, int kv, int t, Split& split) {
    const int begin = t * g_.tile.block_n, end = std::min(begin + g_.tile.block_n, p_.seqlen_k);
    double largest = -kInf;
    for (int j = begin; j < end; ++j) largest = std::max(largest, s_[static_cast<std::size_t>(j)]);
    const bool nothing = largest == -kInf;
    const double own = g_.frame == Frame::kRunning ? std::max(split.m, largest) : largest;
    const double m = tap(Tensor::kM, own);
    std::vector<double> p, rounded;
    for (int j = begin; j < end; ++j) {
      const double s = s_[static_cast<std::size_t>(j)];
      double value = nothing || s == -kInf ? 0 : exp(add(s, -m));
      const double to_probs = a_.probs == DType::kFp32 ? value : round_to(a_.probs, value);
      value = tap(Tensor::kP, to_probs);
      p.push_back(a_.l_from_rounded_probs || replace_ != nullptr ? value : last_exp(s, m, nothing));
      rounded.push_back(a_.probs == DType::kFp32 ? value : round_to(a_.probs, value));
    }
    const double l = tap(Tensor::kL, sum(p, p, false));
    const double running_m = std::max(split.m, m);
    const double alpha = weight(split.m, running_m);
    const double beta = g_.frame == Frame::kRunning ? 1 : weight(m, running_m);
    const bool skipped = nothing && style_.skip_masked_tiles;
    const double keep_l = mistake_ == Mistake::kSumNotRescaled ? 1 : alpha;
    const double keep_o = mistake_ == Mistake::kAccumulatorNotRescaled ? 1 : alpha;
    if (!skipped) split.l = rescaled_sum(split.l, keep_l, l, beta);
    if (mistake_ == Mistake::kSumCountedTwice) split.l = add(split.l, l);
    tap(Tensor::kRunningM, running_m);
    tap(Tensor::kRunningL, split.l);
    split.m = running_m;
    for (int d = 0; d < p_.head_dim_v; ++d) {
      std::vector<double> v;
      for (int j = begin; j < end; ++j)
        v.push_back(element(c_.v, p_, p_.kv_heads, p_.seqlen_k, p_.head_dim_v, b, kv, j, d));
      const double part = tap(Tensor::kPartialO, nothing ? 0 : sum(rounded, v, true));
      double& o = split.o[static_cast<std::size_t>(d)];
      if (!skipped) o = rescaled_sum(o, keep_o, part, beta);
      tap(Tensor::kRunningO, o);
    }
  }

  double last_exp(double s, double m, bool nothing) const {
    return nothing || s == -kInf ? 0 : exp(add(s, -m));
  }

  double rescaled_sum(double total, double alpha, double part, double beta) const {
    return mul_add(total, alpha, g_.frame == Frame::kRunning ? part : mul(part, beta));
  }

  void row(int b, int h, int i) {
    scores(b, h, i);
    std::vector<Split> splits(static_cast<std::size_t>(g_.num_splits));
    for (Split& split : splits) split.o.assign(static_cast<std::size_t>(p_.head_dim_v), 0.0);
    for (int t = 0; t < tiles_; ++t)
      tile(b, h / (p_.heads / p_.kv_heads), t,
           splits[static_cast<std::size_t>(t / g_.tiles_per_split)]);
    Split total = splits[0];
    if (g_.has_split_merge) total = merge(splits);
    const bool empty = total.l == 0;
    const auto lse = empty ? -kInf : add(total.m, round(std::log(static_cast<float>(total.l))));
    out_[static_cast<std::size_t>(Tensor::kLse)].push_back(lse);
    for (const double x : total.o) {
      double o = style_.reciprocal ? mul(x, round(1 / total.l)) : round(x / total.l);
      if (empty) o = 0;
      out_[static_cast<std::size_t>(Tensor::kO)].push_back(
          a_.output == DType::kFp32 ? o : round_to(a_.output, o));
    }
  }

  Split merge(std::vector<Split>& splits) {
    Split total;
    total.o.assign(static_cast<std::size_t>(p_.head_dim_v), 0.0);
    if (a_.partial_stats != DType::kFp32)
      for (Split& split : splits) {
        split.m = round_to(a_.partial_stats, split.m);
        split.l = round_to(a_.partial_stats, split.l);
      }
    for (const Split& split : splits) total.m = std::max(total.m, split.m);
    for (const Split& split : splits) {
      const double w = weight(split.m, total.m);
      total.l = mul_add(w, split.l, total.l);
      tap(Tensor::kMergedL, total.l);
      for (std::size_t d = 0; d < total.o.size(); ++d) {
        const double stored =
            a_.partial == DType::kFp32 ? split.o[d] : round_to(a_.partial, split.o[d]);
        total.o[d] = mul_add(w, stored, total.o[d]);
        tap(Tensor::kMergedO, total.o[d]);
      }
    }
    return total;
  }

  const Case& c_;
  const Problem& p_;
  const Geometry& g_;
  const Arithmetic& a_;
  const Style& style_;
  const TensorValues* replace_;
  const Mistake mistake_;
  std::mt19937_64 random_;
  int tiles_ = 0;
  std::vector<double> s_;
  TensorValues out_;
};

bool flip(std::mt19937_64& random, int one_in) {
  return random() % static_cast<unsigned>(one_in) == 0;
}

}  // namespace

Declared random_declared(std::mt19937_64& random) {
  Declared d;
  Arithmetic& a = d.arithmetic;
  a.scale_applied_to_q = flip(random, 3);
  const DType narrow = flip(random, 2) ? DType::kFp16 : DType::kBf16;
  if (flip(random, 3)) a.scaled_q = narrow;
  if (flip(random, 3)) a.probs = narrow;
  a.l_from_rounded_probs = flip(random, 2);
  if (flip(random, 4)) a.partial = narrow;
  if (flip(random, 4)) a.scores = narrow;
  d.style.scores_before_scale = flip(random, 2);
  if (flip(random, 6)) a.partial_stats = narrow;
  const DType outputs[] = {DType::kFp16, DType::kBf16, DType::kFp32};
  a.output = outputs[random() % 3];
  if (flip(random, 10)) a.accumulate = narrow;
  Style& s = d.style;
  s.order = static_cast<Style::Order>(random() % 3);
  s.fused = flip(random, 2);
  s.exp_of_product = flip(random, 2);
  if (!s.exp_of_product) a.exp_ulp = 1, a.exp_ulp_per_x = 0;
  if (a.accumulate != DType::kFp32) {
    // The argument and the result are rounded to the narrow type.
    a.exp_ulp += std::ldexp(a.accumulate == DType::kFp16 ? 0x1p-11 : 0x1p-8, 24);
    a.log_ulp += std::ldexp(a.accumulate == DType::kFp16 ? 0x1p-11 : 0x1p-8, 24);
  }
  s.flush = flip(random, 2);
  s.reciprocal = flip(random, 2);
  s.skip_masked_tiles = flip(random, 2);
  s.seed = random();
  return d;
}

std::string Style::describe() const {
  std::ostringstream out;
  out << "order=" << static_cast<int>(order) << " fused=" << fused
      << " exp_of_product=" << exp_of_product << " flush=" << flush << " reciprocal=" << reciprocal
      << " skip=" << skip_masked_tiles;
  return out.str();
}

TensorValues simulate(const Case& c, const Arithmetic& arithmetic, const Style& style,
                      const TensorValues* replace, Mistake mistake) {
  return Kernel(c, arithmetic, style, replace, mistake).run();
}

}  // namespace attn_diag::reference::testing
