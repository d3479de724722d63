// What is read of q, k and v, and where o is stored: each hypothesis against its formula, spelled out.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;
using At = std::function<double(int j, int d)>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

// softmax over what the row sees, with other q, k and v.
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

TEST_CASE("other-layout: the element at the other order's address") {
  const testing::Case c = make_case({.seqlen_k = 24, .mask = {}, .layout = Layout::kBSHD});
  // k is [batch][24][2][16], read as [batch][2][24][16].
  const auto k_read = [](const Formula& f, int j, int d) {
    const int row = f.row.head / 2 * 24 + j;
    return f.k_of(f.row.batch, row % 2, row / 2, d);
  };
  check_output(c, variant_of(c, "other-layout", {"operand = k)"}), [&](const Formula& f) {
    return with_k(f, [&](int j, int d) { return k_read(f, j, d); });
  });
}

TEST_CASE("strides and indices of heads and batches") {
  const testing::Case c = make_case({.seqlen_k = 24});
  check_output(c, variant_of(c, "batch-zero", {"k and v)", "operand = k"}), [](const Formula& f) {
    return with_kv(
        f, [&](int j, int d) { return f.k_of(0, f.row.head / 2, j, d); },
        [&](int j, int d) { return f.v_of(0, f.row.head / 2, j, d); });
  });
  // k is [2][2][24][16]; heads are taken to lie 40 rows apart.
  check_output(c, variant_of(c, "head-stride", {"operand = k)"}), [](const Formula& f) {
    const int first = f.row.batch * 48 + f.row.head / 2 * 40;
    if (first + 24 > 96) return Vec(16, NAN);
    return with_k(f, [&](int j, int d) {
      const int row = first + j;
      return f.k_of(row / 48, row / 24 % 2, row % 24, d);
    });
  });
  // Batches are taken to lie 4 heads apart.
  check_output(c, variant_of(c, "batch-stride", {"operand = v"}), [](const Formula& f) {
    if (f.row.batch > 0) return Vec(16, NAN);
    return f.attend(f.scores());
  });
  check_output(c, variant_of(c, "query-head", {"next"}), [](const Formula& f) {
    const int next = (f.row.head + 1) % 4;
    return attend_with(
        f, [&](int j, int d) { return f.k(j, d); }, [&](int j, int d) { return f.v(j, d); },
        [&](int d) {
          return element(f.c.q, f.c.problem, 4, 40, 16, f.row.batch, next, f.row.query, d);
        });
  });
}

TEST_CASE("gqa-map: k and v of another kv head") {
  const testing::Case c = make_case({.heads = 6});
  const auto check = [&](const char* map, const std::function<int(int head)>& kv_head) {
    check_output(c, variant_of(c, "gqa-map", {"k and v", map}), [&](const Formula& f) {
      const int read = kv_head(f.row.head);
      const int flat = f.row.batch * 2 + read;
      if (flat > 3) return Vec(16, NAN);
      return with_kv(
          f, [&](int j, int d) { return f.k_of(flat / 2, flat % 2, j, d); },
          [&](int j, int d) { return f.v_of(flat / 2, flat % 2, j, d); });
    });
  };
  check("= head % kv_heads", [](int head) { return head % 2; });
  check("= head 0", [](int) { return 0; });
  check("= head / kv_heads", [](int head) { return head / 2; });
  check("= the next head", [](int head) { return (head / 3 + 1) % 2; });
  check("= head / (group_size - 1)", [](int head) { return head / 2; });
  check("= head)", [](int head) { return head; });
}

TEST_CASE("stale-tile: the tile that was loaded before") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "stale-tile", {"operand = v", "tiles = 1", "right"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(j >= 16 ? j - 16 : j, d); });
               });
  check_output(c, variant_of(c, "stale-tile", {"operand = k,", "tiles = 2", "zeros"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return j >= 32 ? f.k(j - 32, d) : 0; });
               });
}

TEST_CASE("tile-transposed: what is stored as (key, dim) is read as (dim, key)") {
  const testing::Case c = make_case({.seqlen_k = 48, .head_dim = 8, .head_dim_v = 8});
  check_output(c, variant_of(c, "tile-transposed", {"operand = v", "(operand = v, stride = 16)"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) {
                   const int flat = d * 16 + j % 16;
                   return f.v(j / 16 * 16 + flat / 8, flat % 8);
                 });
               });
  check_output(c, variant_of(c, "tile-transposed", {"operand = k", "stored stride = 17"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) {
                   const int flat = j % 16 * 8 + d;
                   const int key = j / 16 * 16 + flat % 17;
                   return key < 48 ? f.k(key, flat / 17) : 0;
                 });
               });
}

TEST_CASE("fragment-elements: elements of a fragment change places") {
  const testing::Case c = make_case({.seqlen_k = 32, .head_dim = 32, .head_dim_v = 32});
  check_output(
      c, variant_of(c, "fragment-elements", {"operand = k", "16x16"}), [](const Formula& f) {
        return with_k(
            f, [&](int j, int d) { return f.k(j / 16 * 16 + d % 16, d / 16 * 16 + j % 16); });
      });
  check_output(c, variant_of(c, "fragment-elements", {"operand = v", "8x8"}), [](const Formula& f) {
    return with_v(f, [&](int j, int d) { return f.v(j / 8 * 8 + d % 8, d / 8 * 8 + j % 8); });
  });
  check_output(
      c, variant_of(c, "fragment-elements", {"operand = v", "d ^ 1"}),
      [](const Formula& f) { return with_v(f, [&](int j, int d) { return f.v(j, d ^ 1); }); });
}

TEST_CASE("leading-dimension: rows are read at another distance") {
  const testing::Case c = make_case({.seqlen_k = 32});
  // Stored 24 apart, zeros between; read 16 apart.
  const auto shifted = [](int at, int row, int dim, const At& x) {
    const int flat = row * 16 + dim;
    return flat % 24 < 16 ? x(at + flat / 24, flat % 24) : 0;
  };
  check_output(
      c, variant_of(c, "leading-dimension", {"operand = k", "stored = 24, read = 16", "the tile"}),
      [&](const Formula& f) {
        return with_k(f, [&](int j, int d) {
          return shifted(j / 16 * 16, j % 16, d, [&](int r, int e) { return f.k(r, e); });
        });
      });
  // Stored 16 apart, read 17 apart: the last rows are those of the next tile, or 0.
  check_output(
      c, variant_of(c, "leading-dimension", {"operand = v", "stored = 16, read = 17", "the tile"}),
      [&](const Formula& f) {
        return with_v(f, [&](int j, int d) {
          const int flat = j % 16 * 17 + d, key = j / 16 * 16 + flat / 16;
          return key < 32 ? f.v(key, flat % 16) : 0;
        });
      });
}

TEST_CASE("inputs-narrow: bf16 keeps eight bits of v") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "inputs-narrow", {"operand = v", "bf16"}), [](const Formula& f) {
    return with_v(f, [&](int j, int d) {
      const double x = f.v(j, d);
      const double quantum = std::exp2(std::floor(std::log2(std::fabs(x))) - 7);
      return std::nearbyint(x / quantum) * quantum;
    });
  });
}

// o of another row of the same case.
Vec right_o(const Formula& f, int batch, int head, int query) {
  const Formula other{f.c, {batch, head, query}};
  return other.attend(other.scores());
}

TEST_CASE("output-fragment: o of the element that took the place") {
  const testing::Case c = make_case({.block_m = 32, .mask = kCausal});
  check_output(c, variant_of(c, "output-fragment", {"r ^ 8"}), [](const Formula& f) {
    const int from = f.row.query ^ 8;
    return from < 40 ? right_o(f, f.row.batch, f.row.head, from) : Vec(16, NAN);
  });
  check_output(c, variant_of(c, "output-fragment", {"8x8"}), [](const Formula& f) {
    Vec o;
    for (int d = 0; d < 16; ++d)
      o.push_back(right_o(f, f.row.batch, f.row.head, f.row.query / 8 * 8 + d % 8)
                      .at(static_cast<std::size_t>(d / 8 * 8 + f.row.query % 8)));
    return o;
  });
  check_output(c, variant_of(c, "output-fragment", {"[r + 8]"}), [](const Formula& f) {
    Vec o;
    for (int d = 0; d < 16; ++d) {
      const bool moves = (f.row.query % 16 < 8) != (d < 8);
      const int query = moves ? f.row.query ^ 8 : f.row.query;
      o.push_back(query < 40 ? right_o(f, f.row.batch, f.row.head, query)
                                   .at(static_cast<std::size_t>(moves ? d ^ 8 : d))
                             : NAN);
    }
    return o;
  });
}

TEST_CASE("output in another place, or in none") {
  const testing::Case c = make_case({.mask = kCausal});
  // [batch][4][40] rows written as [batch][40][4].
  check_output(c, variant_of(c, "output-other-layout"), [](const Formula& f) {
    const int at = f.row.head * 40 + f.row.query;
    return right_o(f, f.row.batch, at % 4, at / 4);
  });
  check_output(c, variant_of(c, "output-of-another", {"head 0", "zero"}), [](const Formula& f) {
    return f.row.head == 0 ? right_o(f, f.row.batch, 3, f.row.query) : Vec(16, 0.0);
  });
  check_output(c, variant_of(c, "output-of-another", {"next"}), [](const Formula& f) {
    return right_o(f, f.row.batch, (f.row.head + 3) % 4, f.row.query);
  });
  check_output(c, variant_of(c, "output-of-another", {"batch 0", "unknown"}), [](const Formula& f) {
    return f.row.batch == 0 ? right_o(f, 1, f.row.head, f.row.query) : Vec(16, NAN);
  });
  check_output(c, variant_of(c, "output-columns", {"columns = 8,", "zero"}), [](const Formula& f) {
    Vec o = f.attend(f.scores());
    std::fill(o.begin() + 8, o.end(), 0.0);
    return o;
  });
  check_output(c, variant_of(c, "rows-unowned", {"owned = 12", "unknown"}), [](const Formula& f) {
    return f.row.query % 16 < 12 ? f.attend(f.scores()) : Vec(16, NAN);
  });
}

}  // namespace
}  // namespace attn_diag::reference
