// Attention spelled out for tests of single hypotheses: one row at a time, straight from q, k and v, with
// nothing of the evaluator.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn_diag/reference/counterfactual.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference::testing {

using Vec = std::vector<double>;

// A small case with inputs of size 1.5: GQA, several tiles.
struct Shape {
  std::int32_t batch = 2, heads = 4, kv_heads = 2, seqlen_q = 40, seqlen_k = 40;
  std::int32_t head_dim = 16, head_dim_v = 16, block_m = 16, block_n = 16, splits = 1;
  Mask mask = {};
  Layout layout = Layout::kBHSD;
};
Case make_case(const Shape& shape);

// One row of a case.
struct Formula {
  const Case& c;
  RowIndex row;

  double q(int i, int d) const;
  double k(int j, int d) const { return k_of(row.batch, row.head / group(), j, d); }
  double v(int j, int d) const { return v_of(row.batch, row.head / group(), j, d); }
  double k_of(int batch, int kv_head, int j, int d) const;
  double v_of(int batch, int kv_head, int j, int d) const;
  int group() const { return c.problem.heads / c.problem.kv_heads; }
  int keys() const { return c.problem.seqlen_k; }
  int dims() const { return c.problem.head_dim; }
  int block_n() const { return c.geometry.tile.block_n; }
  int block_m() const { return c.geometry.tile.block_m; }
  int tiles() const { return (keys() + block_n() - 1) / block_n(); }
  int tile_of(int j) const { return j / block_n(); }
  int split_of(int j) const { return tile_of(j) / c.geometry.tiles_per_split; }

  bool sees(int i, int j) const;
  double dot(int i, int j) const;  // unscaled
  double scale() const { return static_cast<double>(c.problem.softmax_scale); }
  Vec scores() const { return scores(row.query); }  // -inf where masked
  Vec scores(int i) const;

  // sum_j w_j v_j
  Vec weighted(const Vec& w) const;
  Vec weighted(const Vec& w, const std::function<double(int j, int d)>& v) const;
  // softmax(s) V
  Vec attend(const Vec& s) const;
  Vec attend(const Vec& s, const std::function<double(int j, int d)>& v) const;
};

double largest(const Vec& s);
Vec exps(const Vec& s, double shift);  // e^(s - shift), 0 for -inf
double total(const Vec& x);
Vec times(double g, Vec x);

// The keys [begin, end) of row i: max, sum and product in their own frame.
struct Part {
  double m, l;
  Vec a;
};
Part part_of(const Formula& f, int i, int begin, int end);
Part tile(const Formula& f, int t);
double factor(double from, double to);  // exp(from - to), 0 from -inf
Vec plus(Vec a, const Vec& b);

// softmax over what the row sees, with other q, k and v.
using At = std::function<double(int j, int d)>;
Vec attend_with(const Formula& f, const At& k, const At& v, const std::function<double(int d)>& q);
Vec with_k(const Formula& f, const At& k);
Vec with_v(const Formula& f, const At& v);
Vec with_kv(const Formula& f, const At& k, const At& v);

// What predict() says of o and lse of a row.
struct Predicted {
  Vec o, bound;  // bound: of o
  double lse;
  std::vector<std::uint8_t> known;
};
Predicted predicted(const Case& c, const RowIndex& row, const Deviation& deviation);

// The one variant of a hypothesis whose label holds all of `words`; throws std::logic_error if there
// is none, or more than one.
Variant variant_of(const Case& c, const std::string& id,
                   const std::vector<std::string>& words = {});

// Checks that o of some rows under the variant is what `expected` says (NaN: the cell is unknown).
void check_output(const Case& c, const Variant& variant,
                  const std::function<Vec(const Formula&)>& expected);
// Likewise where something is rounded on the way: of five cells, two may lie between the ways in which a
// kernel may round, and are within their bounds.
void check_rounded_output(const Case& c, const Variant& variant,
                          const std::function<Vec(const Formula&)>& expected);
void check_lse(const Case& c, const Variant& variant,
               const std::function<double(const Formula&)>& expected);

}  // namespace attn_diag::reference::testing
