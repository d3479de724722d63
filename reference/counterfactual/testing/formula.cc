#include "reference/counterfactual/testing/formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "reference/testing/catch2_test.h"

namespace attn_diag::reference::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<RowIndex> some_rows(const Problem& p) {
  std::vector<RowIndex> rows;
  for (std::int32_t i = 0; i < p.seqlen_q; i += i % 3 == 0 ? 1 : 2)
    rows.push_back({i % p.batch, (i / 2) % p.heads, i});
  return rows;
}

}  // namespace

Case make_case(const Shape& s) {
  Case c;
  c.problem = {s.batch,
               s.heads,
               s.kv_heads,
               s.seqlen_q,
               s.seqlen_k,
               s.head_dim,
               s.head_dim_v,
               DType::kFp32,
               s.layout,
               s.mask,
               1.0f / std::sqrt(static_cast<float>(s.head_dim))};
  c.geometry.tile = {s.block_m, s.block_n};
  c.geometry.num_splits = s.splits;
  c.geometry.tiles_per_split = ceil_div(num_kv_tiles(c.problem, c.geometry), s.splits);
  c.geometry.has_split_merge = s.splits > 1;
  c.input_scale = 1.5;
  std::mt19937_64 random(static_cast<std::uint64_t>(s.seqlen_k * 131 + s.splits));
  fill_inputs(random, c);
  return c;
}

double Formula::q(int i, int d) const {
  const Problem& p = c.problem;
  return element(c.q, p, p.heads, p.seqlen_q, p.head_dim, row.batch, row.head, i, d);
}
double Formula::k_of(int batch, int kv_head, int j, int d) const {
  const Problem& p = c.problem;
  return element(c.k, p, p.kv_heads, p.seqlen_k, p.head_dim, batch, kv_head, j, d);
}
double Formula::v_of(int batch, int kv_head, int j, int d) const {
  const Problem& p = c.problem;
  return element(c.v, p, p.kv_heads, p.seqlen_k, p.head_dim_v, batch, kv_head, j, d);
}

bool Formula::sees(int i, int j) const {
  const Problem& p = c.problem;
  const int offset = p.seqlen_k - p.seqlen_q;
  if (p.mask.kind == MaskKind::kNone) return true;
  if (p.mask.kind == MaskKind::kWindow)
    return j >= i + offset - p.mask.window_left && j <= i + offset + p.mask.window_right;
  return j <= i + (p.mask.alignment == CausalAlignment::kBottomRight ? offset : 0);
}

double Formula::dot(int i, int j) const {
  double sum = 0;
  for (int d = 0; d < dims(); ++d) sum += q(i, d) * k(j, d);
  return sum;
}

Vec Formula::scores(int i) const {
  Vec s;
  for (int j = 0; j < keys(); ++j) s.push_back(sees(i, j) ? scale() * dot(i, j) : -kInf);
  return s;
}

Vec Formula::weighted(const Vec& w) const {
  return weighted(w, [&](int j, int d) { return v(j, d); });
}
Vec Formula::weighted(const Vec& w, const std::function<double(int j, int d)>& v_at) const {
  Vec o(static_cast<std::size_t>(c.problem.head_dim_v), 0.0);
  for (std::size_t j = 0; j < w.size(); ++j)
    for (std::size_t d = 0; d < o.size(); ++d)
      if (w[j] != 0) o[d] += w[j] * v_at(static_cast<int>(j), static_cast<int>(d));
  return o;
}
Vec Formula::attend(const Vec& s) const {
  return attend(s, [&](int j, int d) { return v(j, d); });
}
Vec Formula::attend(const Vec& s, const std::function<double(int j, int d)>& v_at) const {
  const Vec p = exps(s, testing::largest(s));
  return times(1 / total(p), weighted(p, v_at));
}

double largest(const Vec& s) { return *std::max_element(s.begin(), s.end()); }
Vec exps(const Vec& s, double shift) {
  Vec p;
  for (const double x : s) p.push_back(x == -kInf ? 0 : std::exp(x - shift));
  return p;
}
double total(const Vec& x) {
  double sum = 0;
  for (const double y : x) sum += y;
  return sum;
}
Vec times(double g, Vec x) {
  for (double& y : x) y *= g;
  return x;
}

Part part_of(const Formula& f, int i, int begin, int end) {
  Vec s = f.scores(i);
  for (int j = 0; j < f.keys(); ++j)
    if (j < begin || j >= end) s[static_cast<std::size_t>(j)] = -kInf;
  const double m = largest(s);
  const Vec p = exps(s, m);
  return {m, total(p), f.weighted(p)};
}
Part tile(const Formula& f, int t) {
  return part_of(f, f.row.query, t * f.block_n(), (t + 1) * f.block_n());
}
double factor(double from, double to) { return from == -kInf ? 0 : std::exp(from - to); }
Vec plus(Vec a, const Vec& b) {
  for (std::size_t d = 0; d < a.size(); ++d) a[d] += b[d];
  return a;
}

Vec attend_with(const Formula& f, const At& k, const At& v, const std::function<double(int d)>& q) {
  Vec s;
  for (int j = 0; j < f.keys(); ++j) {
    double dot = 0;
    for (int d = 0; d < f.dims(); ++d) dot += q(d) * k(j, d);
    s.push_back(f.sees(f.row.query, j) ? f.scale() * dot : -kInf);
  }
  return f.attend(s, v);
}
Vec with_k(const Formula& f, const At& k) {
  return attend_with(
      f, k, [&](int j, int d) { return f.v(j, d); }, [&](int d) { return f.q(f.row.query, d); });
}
Vec with_v(const Formula& f, const At& v) { return f.attend(f.scores(), v); }
Vec with_kv(const Formula& f, const At& k, const At& v) {
  return attend_with(f, k, v, [&](int d) { return f.q(f.row.query, d); });
}

Predicted predicted(const Case& c, const RowIndex& row, const Deviation& deviation) {
  const reference::PredictionInputs data(c.problem, c.geometry, {.output = DType::kFp32},
                                         c.inputs());
  Prediction out;
  predict(data, std::span(&row, 1), deviation, tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse),
          out);
  return {out[Tensor::kO].value, out[Tensor::kO].bound, out[Tensor::kLse].value.at(0),
          out[Tensor::kO].known};
}

Variant variant_of(const Case& c, const std::string& id, const std::vector<std::string>& words) {
  const reference::PredictionInputs data(c.problem, c.geometry, {.output = DType::kFp32},
                                         c.inputs());
  const Hypothesis* hypothesis = find_hypothesis(id);
  if (hypothesis == nullptr) throw std::logic_error("no hypothesis " + id);
  std::vector<Variant> found;
  for (const Variant& variant : hypothesis->variants(data)) {
    const std::string label = variant.label();
    if (std::all_of(words.begin(), words.end(),
                    [&](const std::string& word) { return label.find(word) != label.npos; }))
      found.push_back(variant);
  }
  if (found.size() != 1)
    throw std::logic_error(id + ": " + std::to_string(found.size()) + " variants match");
  return found.front();
}

namespace {

// At most `between` of all cells are only within their bound.
void check_cells(const Case& c, const Variant& variant,
                 const std::function<Vec(const Formula&)>& expected, double between) {
  INFO(variant.label());
  bool differs = false;
  int cells = 0, loose = 0;
  for (const RowIndex& row : some_rows(c.problem)) {
    INFO("batch " << row.batch << ", head " << row.head << ", query " << row.query);
    const Predicted is = predicted(c, row, variant.deviation);
    const Predicted right = predicted(c, row, {});
    const Vec should = expected(Formula{c, row});
    REQUIRE(is.o.size() == should.size());
    for (std::size_t d = 0; d < should.size(); ++d) {
      INFO("dim " << d << ": " << is.o[d] << " for " << should[d]);
      REQUIRE((is.known[d] == 0) == std::isnan(should[d]));
      if (std::isnan(should[d])) continue;
      const bool same = is.o[d] == should[d] ||
                        std::fabs(is.o[d] - should[d]) <= 1e-9 * (1 + std::fabs(should[d]));
      REQUIRE((same || (between > 0 && std::fabs(is.o[d] - should[d]) <= is.bound[d])));
      ++cells;
      loose += !same;
      differs = differs || std::fabs(is.o[d] - right.o[d]) > 1e-6;
    }
    differs = differs || total({is.known.begin(), is.known.end()}) < double(should.size());
  }
  CHECK(differs);
  CHECK(loose <= between * cells);
}

}  // namespace

void check_output(const Case& c, const Variant& variant,
                  const std::function<Vec(const Formula&)>& expected) {
  check_cells(c, variant, expected, 0);
}

void check_rounded_output(const Case& c, const Variant& variant,
                          const std::function<Vec(const Formula&)>& expected) {
  check_cells(c, variant, expected, 0.4);
}

void check_lse(const Case& c, const Variant& variant,
               const std::function<double(const Formula&)>& expected) {
  INFO(variant.label());
  for (const RowIndex& row : some_rows(c.problem)) {
    INFO("batch " << row.batch << ", head " << row.head << ", query " << row.query);
    const double should = expected(Formula{c, row});
    const double is = predicted(c, row, variant.deviation).lse;
    INFO(is << " for " << should);
    REQUIRE((is == should || std::fabs(is - should) <= 1e-9 * (1 + std::fabs(should))));
  }
}

}  // namespace attn_diag::reference::testing
