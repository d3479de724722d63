#include "harness/shrink/cases.h"

#include <set>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::shrink {
namespace {

Problem problem(Layout layout) {
  Problem p;
  p.batch = 2;
  p.heads = 6;
  p.kv_heads = 3;
  p.seqlen_q = 4;
  p.seqlen_k = 5;
  p.head_dim = 4;
  p.head_dim_v = 3;
  p.dtype = DType::kFp32;
  p.layout = layout;
  return p;
}

TEST_CASE("a block from the beginning has the numbers that make_inputs gives it") {
  for (const Layout layout : {Layout::kBHSD, Layout::kBSHD}) {
    const Problem p = problem(layout);
    const InputData whole = make_inputs(p, "randn", 5, 1);
    Block block;
    block.problem = p;
    block.problem.batch = 1;
    block.problem.kv_heads = 2;
    block.problem.heads = 4;
    block.problem.seqlen_q = 3;
    block.problem.seqlen_k = 2;
    block.problem.head_dim = 2;
    const InputData cut = cut_out(p, whole, block);
    const InputData made = make_inputs(block.problem, "randn", 5, 1);
    CHECK(cut.q == made.q);
    CHECK(cut.k == made.k);
    CHECK(cut.v == made.v);
    const TriedCase one = {block.problem, {1, 1}, 0, std::make_shared<const InputData>(cut)};
    CHECK(made_by_kind(one));
  }
}

TEST_CASE("a block from elsewhere has the numbers of there, and heads stay with their KV heads") {
  for (const Layout layout : {Layout::kBHSD, Layout::kBSHD}) {
    const Problem p = problem(layout);
    const InputData whole = make_inputs(p, "randn", 5, 1);
    Block block;
    block.problem = p;
    block.problem.batch = 1;
    block.problem.kv_heads = 2;
    block.problem.heads = 2;  // of two heads of a KV head the first
    block.problem.seqlen_q = 2;
    block.problem.seqlen_k = 2;
    block.origin = {1, 1, 2, 3};
    const InputData cut = cut_out(p, whole, block);
    const auto value = [](const std::vector<std::byte>& bytes, const Problem& of,
                          std::int64_t heads, std::int64_t rows, std::int64_t dim, std::int64_t b,
                          std::int64_t h, std::int64_t i, std::int64_t d) {
      const Strides s = dense_strides(of.layout, heads, rows, dim);
      return load_element(bytes.data(), of.dtype, b * s.batch + h * s.head + i * s.seq + d);
    };
    CHECK(value(cut.q, block.problem, 2, 2, 4, 0, 1, 1, 3) ==
          value(whole.q, p, 6, 4, 4, 1, 4, 3, 3));
    CHECK(value(cut.k, block.problem, 2, 2, 4, 0, 1, 0, 2) ==
          value(whole.k, p, 3, 5, 4, 1, 2, 3, 2));
    CHECK(value(cut.v, block.problem, 2, 2, 3, 0, 0, 1, 1) ==
          value(whole.v, p, 3, 5, 3, 1, 1, 4, 1));
    CHECK_FALSE(made_by_kind({block.problem, {1, 1}, 0, std::make_shared<const InputData>(cut)}));
    block.origin[3] = 4;
    CHECK_FALSE(block.fits_into(p));
  }
}

TEST_CASE("parts cover every number once, by heads, rows and elements") {
  for (const Layout layout : {Layout::kBHSD, Layout::kBSHD}) {
    const Problem p = problem(layout);
    const std::size_t rows = 2 * 6 * 4 + 2 * (2 * 3 * 5), all = 2 * 6 * 16 + 2 * 3 * 5 * (4 + 3);
    CHECK(parts_of(p, PartSize::kHeads).size() == 2 * (6 + 3 + 3));
    CHECK(parts_of(p, PartSize::kRows).size() == rows);
    CHECK(parts_of(p, PartSize::kElements).size() == all);
    for (const PartSize size : {PartSize::kHeads, PartSize::kRows, PartSize::kElements}) {
      std::set<std::pair<int, std::int64_t>> seen;
      for (const Part& part : parts_of(p, size))
        for (const std::int64_t e : part.elements) CHECK(seen.insert({part.tensor, e}).second);
      CHECK(seen.size() == all);
    }
  }
}

}  // namespace
}  // namespace attn_diag::shrink
