#include "harness/numerics/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attn_diag/reference/reference.h"

namespace attn_diag {
namespace {

using Index = std::array<std::int64_t, 5>;

struct Next {
  OriginStep to;
  std::string why;  // of the step before
};

class Walk {
 public:
  explicit Walk(const Capture& capture)
      : x_c(capture),
        x_p(capture.problem),
        x_g(capture.geometry),
        x_tiles(num_kv_tiles(capture.problem, capture.geometry)) {}

  std::optional<double> at(Tensor t, const Index& index) const {
    if (!x_c.has(t)) return std::nullopt;
    const TensorData& data = x_c[t];
    std::int64_t flat = 0;
    for (std::size_t axis = 0; axis < data.shape.size(); ++axis) {
      const std::int64_t i = index[axis] - data.origin[axis];
      if (i < 0 || i >= data.shape[axis]) return std::nullopt;
      flat = flat * data.shape[axis] + i;
    }
    return data.at(flat);
  }

  // No finite number, though a finite one belongs there.
  bool bad(Tensor t, const Index& i, double x) const {
    if (std::isfinite(x)) return false;
    if (!(x < 0)) return true;  // NaN, +inf
    if (t == Tensor::kS) return sees(i[2], i[3], i[3] + 1);
    if (t == Tensor::kM && x_g.frame == Frame::kTile)
      return sees(i[2], i[3] * x_g.tile.block_n, (i[3] + 1) * x_g.tile.block_n);
    if (t == Tensor::kM || t == Tensor::kRunningM)
      return sees(i[2], first_tile(i[3]) * x_g.tile.block_n, (i[3] + 1) * x_g.tile.block_n);
    if (t == Tensor::kLse) return sees(i[2], 0, x_p.seqlen_k);
    return true;
  }
  bool bad_at(Tensor t, const Index& i) const {
    const auto x = at(t, i);
    return x && bad(t, i, *x);
  }

  std::vector<OriginStep> from(Tensor t, const Index& index) const {
    std::vector<OriginStep> steps{step(t, index)};
    // A chain is at most as long as there are tiles and tensors.
    for (std::int64_t n = 0; n < 2 * x_tiles + 2 * kNumTensors; ++n) {
      if (steps.back().input) break;
      auto next = operand(steps.back());
      steps.back().why = std::move(next.second);
      if (!next.first) break;
      steps.push_back(std::move(*next.first));
    }
    return steps;
  }

 private:
  using Found = std::pair<std::optional<OriginStep>, std::string>;

  OriginStep step(Tensor t, const Index& index) const {
    OriginStep s;
    s.tensor = t;
    s.index = index;
    s.value = at(t, index).value_or(NAN);
    return s;
  }
  Found go(Tensor t, const Index& index, std::string why) const {
    return {step(t, index), std::move(why)};
  }
  static Found end(std::string why) { return {std::nullopt, std::move(why)}; }

  bool sees(std::int64_t query, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t j = begin; j < std::min<std::int64_t>(end, x_p.seqlen_k); ++j)
      if (reference::visible(x_p, static_cast<std::int32_t>(query), static_cast<std::int32_t>(j)))
        return true;
    return false;
  }
  std::int64_t tile_of(std::int64_t key) const { return key / x_g.tile.block_n; }
  std::int64_t first_tile(std::int64_t tile) const {
    return tile / x_g.tiles_per_split * x_g.tiles_per_split;
  }
  std::int64_t last_tile(std::int64_t split) const {
    return std::min<std::int64_t>((split + 1) * x_g.tiles_per_split, x_tiles) - 1;
  }
  static Index with(const Index& row, std::int64_t i3, std::int64_t i4 = 0) {
    return {row[0], row[1], row[2], i3, i4};
  }

  Found operand(const OriginStep& s) const {
    switch (s.tensor) {
      case Tensor::kO:
        return of_output(s, merged() ? Tensor::kMergedO : Tensor::kRunningO, s.index[3]);
      case Tensor::kLse:
        return of_lse(s);
      case Tensor::kMergedO:
      case Tensor::kMergedL:
        return of_merged(s);
      case Tensor::kRunningO:
      case Tensor::kRunningL:
        return of_running(s);
      case Tensor::kRunningM:
        return of_running_max(s);
      case Tensor::kPartialO:
        return of_partial(s);
      case Tensor::kL:
        return of_sum(s);
      case Tensor::kP:
        return of_prob(s);
      case Tensor::kM:
        return of_max(s);
      case Tensor::kS:
        break;
    }
    return of_score(s);
  }

  bool merged() const { return x_c.has(Tensor::kMergedO) || x_c.has(Tensor::kMergedL); }
  Tensor final_sum() const { return merged() ? Tensor::kMergedL : Tensor::kRunningL; }
  std::int64_t final_place() const { return merged() ? x_g.num_splits - 1 : x_tiles - 1; }

  Found of_output(const OriginStep& s, Tensor accumulator, std::int64_t dim) const {
    const Index sum = with(s.index, final_place(), dim), row_sum = with(s.index, final_place());
    const auto x = at(accumulator, sum), l = at(final_sum(), row_sum);
    const std::string formula = fmt::format("o = {} / {}", name(accumulator), name(final_sum()));
    if (x && !std::isfinite(*x))
      return go(accumulator, sum, formula + ", and the former is no number");
    if (l && (*l == 0 || !std::isfinite(*l)))
      return go(final_sum(), row_sum, fmt::format("{}, and the latter is {}", formula, *l));
    if (x && l) {
      const double o = *x / *l;
      const double largest = x_c.arithmetic.output == DType::kFp16 ? 65504.0 : 0x1.fffffep127;
      if (std::fabs(o) > largest)
        return end(fmt::format("{} = {:.4g} / {:.4g} does not fit into o's type", formula, *x, *l));
      return end(fmt::format("{} = {:.4g} / {:.4g}: both are finite", formula, *x, *l));
    }
    return of_row(s);
  }

  // The steps between were not recorded: takes the first value of the row that is no number.
  Found of_row(const OriginStep& s) const {
    for (const Tensor t : {Tensor::kS, Tensor::kM, Tensor::kP, Tensor::kL, Tensor::kPartialO}) {
      if (t >= s.tensor || !x_c.has(t)) continue;
      const std::vector<std::int64_t>& shape = x_c[t].shape;
      const std::int64_t inner = shape.size() > 4 ? shape[4] : 1;
      for (std::int64_t i = 0; i < shape[3]; ++i)
        for (std::int64_t d = 0; d < inner; ++d)
          if (bad_at(t, with(s.index, i, d)))
            return go(t, with(s.index, i, d),
                      fmt::format("{} of its row is no number; what lies between was not recorded",
                                  name(t)));
    }
    if (auto input = bad_input('q', s.index[0], s.index[1], s.index[2], -1)) return *input;
    for (std::int64_t j = 0; j < x_p.seqlen_k; ++j)
      if (sees(s.index[2], j, j + 1))
        for (const char which : {'k', 'v'})
          if (auto input = bad_input(which, s.index[0], s.index[1] / group_size(x_p), j, -1))
            return *input;
    return end("nothing that was recorded before it is without a number");
  }

  Found of_lse(const OriginStep& s) const {
    const Index place = with(s.index, final_place());
    const auto l = at(final_sum(), place);
    if (l && (!(*l > 0) || !std::isfinite(*l)))
      return go(final_sum(), place, fmt::format("lse = m + ln l, and l is {}", *l));
    for (std::int64_t t = 0; t < x_tiles; ++t)
      if (bad_at(Tensor::kRunningM, with(s.index, t)))
        return go(Tensor::kRunningM, with(s.index, t), "lse = m + ln l, and m is no number");
    return l ? end("lse = m + ln l: both are finite") : of_row(s);
  }

  Found of_merged(const OriginStep& s) const {
    const bool sums = s.tensor == Tensor::kMergedL;
    const Tensor part = sums ? Tensor::kRunningL : Tensor::kRunningO;
    const bool zero = s.value == 0;
    for (std::int64_t split = 0; split <= s.index[3]; ++split) {
      const Index place = with(s.index, last_tile(split), s.index[4]);
      const auto x = at(part, place);
      if (x && (zero ? *x == 0 && sees(s.index[2], 0, x_p.seqlen_k) : !std::isfinite(*x)))
        return go(part, place,
                  zero ? "all that it sums is 0" : fmt::format("it sums {}", name(part)));
      if (bad_at(Tensor::kRunningM, with(s.index, last_tile(split))))
        return go(Tensor::kRunningM, with(s.index, last_tile(split)),
                  "splits are weighted by exp(m of the split - m), and that m is no number");
    }
    return at(part, with(s.index, last_tile(0), s.index[4])) ? end("all that it sums is finite")
                                                             : of_row(s);
  }

  Found of_running(const OriginStep& s) const {
    const bool sums = s.tensor == Tensor::kRunningL;
    const Tensor part = sums ? Tensor::kL : Tensor::kPartialO;
    const std::int64_t tile = s.index[3];
    if (s.value == 0) return of_running_zero(s);
    const Index before = with(s.index, tile - 1, s.index[4]);
    if (tile > first_tile(tile) && bad_at(s.tensor, before))
      return go(s.tensor, before, "already after the tile before");
    if (bad_at(part, s.index))
      return go(part, s.index,
                fmt::format("{} of this tile is added, which is no number", name(part)));
    for (const Tensor m : {Tensor::kM, Tensor::kRunningM})
      if (bad_at(m, with(s.index, tile)))
        return go(
            m, with(s.index, tile),
            fmt::format("what was summed before is rescaled by exp of the old {0} - the new one, "
                        "and {0} is no number",
                        name(m)));
    const auto m = at(Tensor::kRunningM, with(s.index, tile));
    if (m && *m == -HUGE_VAL)
      return end("its operands are finite, and m is still -inf: exp(-inf - -inf) is NaN");
    return at(part, s.index) ? end("its operands are finite") : of_row(s);
  }
  Found of_running_zero(const OriginStep& s) const {
    for (std::int64_t t = first_tile(s.index[3]); t <= s.index[3]; ++t)
      if (const auto x = at(Tensor::kL, with(s.index, t));
          s.tensor == Tensor::kRunningL && x && *x == 0 &&
          sees(s.index[2], t * x_g.tile.block_n, (t + 1) * x_g.tile.block_n))
        return go(Tensor::kL, with(s.index, t), "l of its tiles is 0");
    return end("l of a tile is not 0, and it is");
  }

  Found of_running_max(const OriginStep& s) const {
    if (bad_at(Tensor::kM, s.index)) return go(Tensor::kM, s.index, "m of this tile is no number");
    const Index before = with(s.index, s.index[3] - 1);
    if (s.index[3] > first_tile(s.index[3]) && bad_at(s.tensor, before))
      return go(s.tensor, before, "already after the tile before");
    return at(Tensor::kM, s.index) ? end("its operands are finite") : of_row(s);
  }

  // The first key of a tile for which f holds.
  template <class F>
  std::optional<std::int64_t> key_of(std::int64_t tile, const F& f) const {
    const std::int64_t begin = tile * x_g.tile.block_n;
    for (std::int64_t j = begin; j < std::min<std::int64_t>(begin + x_g.tile.block_n, x_p.seqlen_k);
         ++j)
      if (f(j)) return j;
    return std::nullopt;
  }

  Found of_partial(const OriginStep& s) const {
    const auto p = key_of(s.index[3], [&](auto j) { return bad_at(Tensor::kP, with(s.index, j)); });
    if (p) return go(Tensor::kP, with(s.index, *p), "it sums P v, and P is no number");
    const std::int64_t kv_head = s.index[1] / group_size(x_p);
    const auto v = key_of(s.index[3], [&](auto j) {
      return bad_input('v', s.index[0], kv_head, j, s.index[4]).has_value();
    });
    if (v) return *bad_input('v', s.index[0], kv_head, *v, s.index[4]);
    return x_c.has(Tensor::kP)
               ? end("it sums P v, all finite: the sum overflows, or is made of others")
               : of_row(s);
  }

  Found of_sum(const OriginStep& s) const {
    if (!x_c.has(Tensor::kP)) return of_row(s);
    if (s.value == 0) {
      const auto seen = key_of(s.index[3], [&](auto j) { return sees(s.index[2], j, j + 1); });
      const auto nonzero = key_of(
          s.index[3], [&](auto j) { return at(Tensor::kP, with(s.index, j)).value_or(1) != 0; });
      if (seen && !nonzero) return go(Tensor::kP, with(s.index, *seen), "all P of the tile are 0");
      return end("P of the tile is not 0 everywhere, and l is");
    }
    const auto p = key_of(s.index[3], [&](auto j) { return bad_at(Tensor::kP, with(s.index, j)); });
    if (p) return go(Tensor::kP, with(s.index, *p), "it sums P, which is no number");
    return end("it sums P, all finite");
  }

  Found of_prob(const OriginStep& s) const {
    const Index place = with(s.index, tile_of(s.index[3]));
    const auto score = at(Tensor::kS, s.index), m = at(Tensor::kM, place);
    if (score && bad(Tensor::kS, s.index, *score))
      return go(Tensor::kS, s.index, "P = exp(S - m), and S is no number");
    if (m && bad(Tensor::kM, place, *m))
      return go(Tensor::kM, place, fmt::format("P = exp(S - m), and m is {}", *m));
    if (!score || !m) return of_row(s);
    if (*score == -HUGE_VAL && *m == -HUGE_VAL)
      return end("P = exp(S - m) = exp(-inf - -inf), which is NaN: the tile shows this row no key");
    return end(fmt::format("P = exp(S - m) = exp({:.6g} - {:.6g})", *score, *m));
  }

  Found of_max(const OriginStep& s) const {
    const std::int64_t first = x_g.frame == Frame::kTile ? s.index[3] : first_tile(s.index[3]);
    for (std::int64_t t = first; t <= s.index[3]; ++t)
      if (const auto j =
              key_of(t, [&](auto key) { return bad_at(Tensor::kS, with(s.index, key)); }))
        return go(Tensor::kS, with(s.index, *j), "m = max S, and S is no number");
    return x_c.has(Tensor::kS) ? end("m = max S, and all S are finite where the row sees a key")
                               : of_row(s);
  }

  Found of_score(const OriginStep& s) const {
    if (auto input = bad_input('q', s.index[0], s.index[1], s.index[2], -1)) return *input;
    const std::int64_t kv_head = s.index[1] / group_size(x_p);
    if (auto input = bad_input('k', s.index[0], kv_head, s.index[3], -1)) return *input;
    double sum = 0;
    for (std::int64_t d = 0; d < x_p.head_dim; ++d)
      sum += std::fabs(element('q', s.index[0], s.index[1], s.index[2], d) *
                       element('k', s.index[0], kv_head, s.index[3], d));
    return end(
        fmt::format("S = scale q.k of finite q and k, whose products sum up to {:.4g} in "
                    "magnitude",
                    sum));
  }

  double element(char which, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) const {
    const bool of_q = which == 'q', of_v = which == 'v';
    const Strides st =
        dense_strides(x_p.layout, of_q ? x_p.heads : x_p.kv_heads,
                      of_q ? x_p.seqlen_q : x_p.seqlen_k, of_v ? x_p.head_dim_v : x_p.head_dim);
    const std::vector<std::byte>& bytes = of_q ? x_c.q : of_v ? x_c.v : x_c.k;
    if (bytes.empty()) return 0;
    return load_element(bytes.data(), x_p.dtype, b * st.batch + h * st.head + i * st.seq + d);
  }

  // An element of a row that is no number; d of -1: any.
  std::optional<Found> bad_input(char which, std::int64_t b, std::int64_t h, std::int64_t i,
                                 std::int64_t d) const {
    const std::int64_t dims = which == 'v' ? x_p.head_dim_v : x_p.head_dim;
    for (std::int64_t e = d < 0 ? 0 : d; e < (d < 0 ? dims : d + 1); ++e) {
      const double x = element(which, b, h, i, e);
      if (std::isfinite(x)) continue;
      OriginStep s;
      s.input = which;
      s.index = {b, h, i, e, 0};
      s.value = x;
      s.why = "it was given so";
      return Found(s, fmt::format("it is computed from {}, which is no number there", which));
    }
    return std::nullopt;
  }

  const Capture& x_c;
  const Problem& x_p;
  const Geometry& x_g;
  const std::int64_t x_tiles;
};

bool same_place(const OriginStep& a, const OriginStep& b) {
  return a.input == b.input && a.tensor == b.tensor && a.index == b.index;
}

Index index_of(const TensorData& data, std::int64_t flat) {
  Index index{};
  for (std::size_t axis = data.shape.size(); axis-- > 0; flat /= data.shape[axis])
    index[axis] = flat % data.shape[axis] + data.origin[axis];
  return index;
}

}  // namespace

std::vector<NonFiniteOrigin> find_origins(const Capture& capture) {
  const Walk walk(capture);
  std::vector<NonFiniteOrigin> out;
  for (const TensorInfo& t : kTensors) {
    if (!capture.has(t.id) || !capture[t.id].uncertainty.empty()) continue;
    const TensorData& data = capture[t.id];
    std::int64_t cells = 0, first = -1;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const double x = data.at(i);
      if (std::isfinite(x) || !walk.bad(t.id, index_of(data, i), x)) continue;
      ++cells;
      if (first < 0) first = i;
    }
    if (cells == 0) continue;
    NonFiniteOrigin origin{walk.from(t.id, index_of(data, first)), cells};
    const auto known = std::find_if(out.begin(), out.end(), [&](const NonFiniteOrigin& o) {
      return same_place(o.steps.back(), origin.steps.back());
    });
    if (known == out.end())
      out.push_back(std::move(origin));
    else if (origin.steps.size() >= known->steps.size())
      *known = std::move(origin);
  }
  return out;
}

}  // namespace attn_diag
