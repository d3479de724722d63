// What is read of q, k and v, and where o is stored: each hypothesis against its formula, spelled out.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/counterfactual/testing/formula.h"
#include "reference/counterfactual/testing/rows.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

// o of another row of the same case.
Vec right_o(const Formula& f, int batch, int head, int query) {
  const Formula other{f.c, {batch, head, query}};
  return other.attend(other.scores());
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
  check_output(c, variant_of(c, "head-stride", {"operand = k,", "other seqlen"}),
               [](const Formula& f) {
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

TEST_CASE("strides of heads in whole tiles, and of rows of the other dim") {
  const testing::Case c = make_case({.seqlen_k = 24, .head_dim_v = 24});
  // v is [2][2][24][24]; heads are taken to lie 32 rows apart.
  check_output(c, variant_of(c, "head-stride", {"operand = v", "whole tiles"}),
               [](const Formula& f) {
                 const int first = f.row.batch * 48 + f.row.head / 2 * 32;
                 if (first + 24 > 96) return Vec(24, NAN);
                 return with_v(f, [&](int j, int d) {
                   const int row = first + j;
                   return f.v_of(row / 48, row / 24 % 2, row % 24, d);
                 });
               });
  // k is [2][2][24][16], read as rows of 24.
  check_output(c, variant_of(c, "head-stride", {"operand = k,", "head_dim"}), [](const Formula& f) {
    const int first = (f.row.batch * 2 + f.row.head / 2) * 24;
    if ((first + 23) * 24 + 15 >= 96 * 16) return Vec(24, NAN);
    return with_k(f, [&](int j, int d) {
      const int at = (first + j) * 24 + d, row = at / 16;
      return f.k_of(row / 48, row / 24 % 2, row % 24, at % 16);
    });
  });
}

TEST_CASE("batch-and-head: block b H + h works on batch % B and head / B of its number") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto of_block = [](const Formula& f) {
    const int block = f.row.batch * 4 + f.row.head;
    return std::pair{block % 2, block / 2};
  };
  check_output(c, variant_of(c, "batch-and-head", {"operand = k and v"}), [&](const Formula& f) {
    const auto [batch, head] = of_block(f);
    return with_kv(
        f, [&, b = batch, h = head](int j, int d) { return f.k_of(b, h / 2, j, d); },
        [&, b = batch, h = head](int j, int d) { return f.v_of(b, h / 2, j, d); });
  });
  check_output(c, variant_of(c, "batch-and-head", {"q, k and v"}), [&](const Formula& f) {
    const auto [batch, head] = of_block(f);
    return right_o(f, batch, head, f.row.query);
  });
  check_output(c, variant_of(c, "output-of-another", {"block's number"}), [&](const Formula& f) {
    for (int block = 0; block < 8; ++block)
      if (block % 2 == f.row.batch && block / 2 == f.row.head)
        return right_o(f, block / 4, block % 4, f.row.query);
    return Vec{};
  });
}

TEST_CASE("heads before, and in reverse; q of the next sequence") {
  const testing::Case c = make_case({.heads = 6, .kv_heads = 3});
  check_output(c, variant_of(c, "gqa-map", {"operand = v", "before"}), [](const Formula& f) {
    return with_v(
        f, [&](int j, int d) { return f.v_of(f.row.batch, (f.row.head / 2 + 2) % 3, j, d); });
  });
  check_output(c, variant_of(c, "gqa-map", {"operand = k,", "reverse"}), [](const Formula& f) {
    return with_k(f, [&](int j, int d) { return f.k_of(f.row.batch, 2 - f.row.head / 2, j, d); });
  });
  const auto with_q = [](const Formula& f, int batch, int head) {
    return attend_with(
        f, [&](int j, int d) { return f.k(j, d); }, [&](int j, int d) { return f.v(j, d); },
        [&](int d) { return element(f.c.q, f.c.problem, 6, 40, 16, batch, head, f.row.query, d); });
  };
  check_output(c, variant_of(c, "query-head", {"before"}),
               [&](const Formula& f) { return with_q(f, f.row.batch, (f.row.head + 5) % 6); });
  check_output(c, variant_of(c, "query-head", {"reverse"}),
               [&](const Formula& f) { return with_q(f, f.row.batch, 5 - f.row.head); });
  check_output(c, variant_of(c, "page-map", {"operand = q"}),
               [&](const Formula& f) { return with_q(f, 1 - f.row.batch, f.row.head); });
}

TEST_CASE("operand-exchanged: v is read for k, and k for v") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "operand-exchanged", {"= v)"}),
               [](const Formula& f) { return with_v(f, [&](int j, int d) { return f.k(j, d); }); });
  check_output(c, variant_of(c, "operand-exchanged", {"k and v"}), [](const Formula& f) {
    return with_kv(
        f, [&](int j, int d) { return f.v(j, d); }, [&](int j, int d) { return f.k(j, d); });
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
  check("= head / (group_size + 1)", [](int head) { return head / 4; });
  check("= ceil(head / group_size)", [](int head) { return std::min((head + 2) / 3, 1); });
  check("= head)", [](int head) { return head; });
}

TEST_CASE("page-map: the keys of another page") {
  // Three pages of 16, 16 and 8 keys; two sequences.
  const testing::Case c = make_case({.mask = kCausal});
  struct Key {
    int batch, at;  // of the sequence
  };
  const auto check = [&](const char* pages, const std::function<Key(int batch, int page)>& page) {
    check_output(c, variant_of(c, "page-map", {"k and v", std::string("= ") + pages, "rows = 16)"}),
                 [&](const Formula& f) {
                   const auto key = [&](int j) {
                     const Key first = page(f.row.batch, j / 16);
                     return Key{first.batch, first.at * 16 + j % 16};
                   };
                   // What is behind the last key of a sequence is not known.
                   for (int j = 0; j <= f.row.query; ++j)
                     if (key(j).at >= 40 || key(j).batch > 1) return Vec(16, NAN);
                   const int head = f.row.head / 2;
                   return with_kv(
                       f,
                       [&](int j, int d) {
                         return j > f.row.query ? 0 : f.k_of(key(j).batch, head, key(j).at, d);
                       },
                       [&](int j, int d) {
                         return j > f.row.query ? 0 : f.v_of(key(j).batch, head, key(j).at, d);
                       });
                 });
  };
  check("the next, cyclic", [](int b, int page) { return Key{b, (page + 1) % 3}; });
  check("the one before, cyclic", [](int b, int page) { return Key{b, (page + 2) % 3}; });
  check("in reverse", [](int b, int page) { return Key{b, 2 - page}; });
  check("the first", [](int b, int) { return Key{b, 0}; });
  check("page ^ 1", [](int b, int page) { return Key{b, page < 2 ? page ^ 1 : page}; });
  check("the next, of all sequences", [](int b, int page) {
    return Key{(b * 3 + page + 1) / 3, (b * 3 + page + 1) % 3};
  });
  check("as if sequences had a page less", [](int b, int page) {
    return Key{(b * 2 + page) / 3, (b * 2 + page) % 3};
  });
  check("as if sequences had a page more", [](int b, int page) {
    return Key{(b * 4 + page) / 3, (b * 4 + page) % 3};
  });
  check_output(
      c, variant_of(c, "page-map", {"operand = v", "next sequence"}), [](const Formula& f) {
        return with_v(f,
                      [&](int j, int d) { return f.v_of(1 - f.row.batch, f.row.head / 2, j, d); });
      });
  const testing::Case tiles = make_case({.block_n = 32, .mask = kCausal});
  check_output(tiles,
               variant_of(tiles, "page-map", {"the one before, but for the first", "rows = 16)"}),
               [](const Formula& f) {
                 const auto from = [](int j) { return j < 16 ? j : j - 16; };
                 return with_kv(
                     f, [&](int j, int d) { return f.k(from(j), d); },
                     [&](int j, int d) { return f.v(from(j), d); });
               });
  check_output(tiles, variant_of(tiles, "page-map", {"the next, but for the last", "rows = 16)"}),
               [](const Formula& f) {
                 const auto from = [](int j) { return j < 32 ? j + 16 : j; };
                 if (f.row.query >= 24) return Vec(16, NAN);
                 return with_kv(
                     f, [&](int j, int d) { return from(j) < 40 ? f.k(from(j), d) : 0; },
                     [&](int j, int d) { return from(j) < 40 ? f.v(from(j), d) : 0; });
               });
}

TEST_CASE("page-map: pairs of pages of k alone, where no tile has both") {
  const testing::Case c = make_case({.seqlen_k = 64, .block_n = 8});
  check_output(
      c, variant_of(c, "page-map", {"operand = k,", "page ^ 1", "rows = 16)"}),
      [](const Formula& f) { return with_k(f, [&](int j, int d) { return f.k(j ^ 16, d); }); });
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

TEST_CASE("output-fragment: o of the element that took the place") {
  const testing::Case c = make_case({.block_m = 32, .mask = kCausal});
  check_output(c, variant_of(c, "output-rows-mixed", {"r ^ 8)"}), [](const Formula& f) {
    const int from = f.row.query ^ 8;
    return from < 40 ? right_o(f, f.row.batch, f.row.head, from) : Vec(16, NAN);
  });
  check_output(c, variant_of(c, "output-columns-mixed", {"d % 2 * 8 + d / 2 of every 16)"}),
               [](const Formula& f) {
                 const Vec o = right_o(f, f.row.batch, f.row.head, f.row.query);
                 Vec mixed;
                 for (std::size_t d = 0; d < 16; ++d) mixed.push_back(o[d % 2 * 8 + d / 2]);
                 return mixed;
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

TEST_CASE("rows-unowned: as many rows for every warp leave some, of which nothing is written") {
  const testing::Case c = make_case({.block_m = 32, .mask = kCausal});
  for (const int owned : {31, 30, 28, 24, 16})
    CHECK(variant_of(c, "rows-unowned", {"owned = " + std::to_string(owned) + ", others = zero"})
              .deviation.store.rows_owned == owned);
  const Variant variant = variant_of(c, "rows-unowned", {"owned = 28", "unknown"});
  const reference::PredictionInputs data(c.problem, c.geometry, {}, c.inputs());
  const std::array<RowIndex, 2> rows = {RowIndex{0, 1, 27}, RowIndex{0, 1, 28}};
  Prediction out;
  predict(data, rows, variant.deviation, kAllTensors, out);
  for (const TensorInfo& t : kTensors) {
    INFO(t.name);
    const std::vector<std::uint8_t>& known = out[t.id].known;
    const auto half = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    CHECK(std::count(known.begin(), half, 0) == 0);
    CHECK(std::count(half, known.end(), 1) == 0);
    for (std::size_t i = 0; i < known.size(); ++i)
      CHECK(out[t.id].unwritten[i] == (known[i] == 0 ? 1 : 0));
  }
}

TEST_CASE("output-columns: the last ones of a vector") {
  const testing::Case c = make_case({});
  for (const int missing : {1, 3, 8})
    check_output(c,
                 variant_of(c, "output-columns",
                            {"columns = " + std::to_string(16 - missing) + ",", "first", "zero"}),
                 [&](const Formula& f) {
                   Vec o = f.attend(f.scores());
                   std::fill(o.end() - missing, o.end(), 0.0);
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
  check_output(c, variant_of(c, "output-columns", {"columns = 8,", "first", "zero"}),
               [](const Formula& f) {
                 Vec o = f.attend(f.scores());
                 std::fill(o.begin() + 8, o.end(), 0.0);
                 return o;
               });
  check_output(c, variant_of(c, "rows-unowned", {"owned = 12", "unknown"}), [](const Formula& f) {
    return f.row.query % 16 < 12 ? f.attend(f.scores()) : Vec(16, NAN);
  });
}

TEST_CASE("what was read of one case is not taken for what is read of another") {
  testing::Case a = make_case({}), b = a;
  for (std::byte& x : b.v) x ^= std::byte{1};  // the last bits of V
  std::fill(b.k.begin(), b.k.end(), std::byte{0});
  Deviation deviation;
  deviation.k.row_shift = deviation.v.row_shift = 1;
  const RowIndex row{1, 2, 30};
  const Vec first = predicted(a, row, deviation).o, other = predicted(b, row, deviation).o;
  CHECK(first != other);
  CHECK(predicted(a, row, deviation).o == first);
  deviation.v.row_shift = -1;
  CHECK(predicted(a, row, deviation).o != first);
  CHECK(predicted(b, {1, 3, 30}, deviation).o == predicted(b, {1, 3, 30}, deviation).o);
  CHECK(predicted(b, {0, 3, 30}, deviation).o != predicted(b, {1, 3, 30}, deviation).o);
}

}  // namespace
}  // namespace attn_diag::reference
