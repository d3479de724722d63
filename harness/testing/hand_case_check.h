// Kernels against the hand-computed cases of fixtures/hand: values that a person has checked, not the
// reference's.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/reference/reference.h"
#include "harness/compare/judgement.h"
#include "harness/testing/catch_for_tests.h"
#include "reference/testing/hand_case.h"

namespace attn_diag::testing {

using reference::testing::HandCase;
using reference::testing::load_hand_cases;

// Whether two geometries cut the keys alike, so that every tensor has the same shape and meaning.
inline bool same_cut(const HandCase& c, const Geometry& g) {
  const std::int32_t tiles = num_kv_tiles(c.problem, g);
  return tiles == num_kv_tiles(c.problem, c.geometry) &&
         (tiles == 1 ||
          (g.tile.block_n == c.geometry.tile.block_n && g.frame == c.geometry.frame)) &&
         g.num_splits == c.geometry.num_splits && g.tiles_per_split == c.geometry.tiles_per_split;
}

// Options under which the kernel cuts the case as it was computed; nullopt if it has no such tile.
inline std::optional<RunOptions> options_for(const Kernel& kernel, const HandCase& c,
                                             const Problem& problem) {
  if (c.geometry.num_splits > 1 && !kernel.info().takes_num_splits) return std::nullopt;
  for (std::int32_t i = 0; i < kernel.info().num_tiles; ++i) {
    RunOptions options;
    options.tile = kernel.info().tiles[i];
    options.num_splits = kernel.info().takes_num_splits ? c.geometry.num_splits : 0;
    if (same_cut(c, plan_geometry(kernel, problem, options))) return options;
  }
  return std::nullopt;
}

// Values taken to the layout: the hand cases are BHSD.
inline std::vector<std::byte> laid_out(const std::vector<std::byte>& bhsd, const Problem& p,
                                       std::int32_t heads, std::int32_t seqlen, std::int32_t dim) {
  const Strides from = dense_strides(Layout::kBHSD, heads, seqlen, dim);
  const Strides to = dense_strides(p.layout, heads, seqlen, dim);
  std::vector<std::byte> out(bhsd.size());
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t s = 0; s < seqlen; ++s)
        for (std::int64_t d = 0; d < dim; ++d)
          store_element(out.data(), p.dtype, b * to.batch + h * to.head + s * to.seq + d,
                        load_element(bhsd.data(), p.dtype,
                                     b * from.batch + h * from.head + s * from.seq + d));
  return out;
}

inline InputData inputs_of(const HandCase& c, const Problem& p) {
  InputData inputs;
  inputs.kind = "by hand";
  inputs.q = laid_out(HandCase::stored(c.q, p.dtype), p, p.heads, p.seqlen_q, p.head_dim);
  inputs.k = laid_out(HandCase::stored(c.k, p.dtype), p, p.kv_heads, p.seqlen_k, p.head_dim);
  inputs.v = laid_out(HandCase::stored(c.v, p.dtype), p, p.kv_heads, p.seqlen_k, p.head_dim_v);
  return inputs;
}

inline void check_hand_case(const HandCase& c, const Capture& capture) {
  // Where the inputs had to be rounded to fp32, every value moves by a few 2^-24 of values near 1.
  const double moved = c.exact_in(capture.problem.dtype) ? 0.0 : 0x1p-20;
  const reference::Tensors computed = reference::compute(
      capture.problem, capture.geometry, capture.arithmetic,
      {capture.q.data(), capture.k.data(), capture.v.data()}, reference::Options{});
  int compared = 0;
  for (const TensorInfo& tensor : kTensors) {
    const auto at = static_cast<std::size_t>(tensor.id);
    if (!capture.has(tensor.id) || c.expected[at].empty()) continue;
    const TensorData& data = capture[tensor.id];
    REQUIRE(static_cast<std::size_t>(data.size()) == c.expected[at].size());
    for (std::size_t i = 0; i < c.expected[at].size(); ++i) {
      const double actual = data.at(static_cast<std::int64_t>(i)), expected = c.expected[at][i];
      const double limit = computed.bound[at][i] + moved * (1.0 + std::fabs(expected));
      INFO(tensor.name << " cell " << i << ": actual " << actual << ", by hand " << expected
                       << ", limit " << limit);
      REQUIRE(judge_cell(actual, expected, limit).passes);
    }
    ++compared;
  }
  REQUIRE(compared >= 10);  // all but the merge of the splits
}

// Runs every case that the kernel can cut alike and that the type can hold; returns their names.
inline std::set<std::string> check_hand_cases(const std::string& kernel_name,
                                              const std::string& backend) {
  const Kernel kernel = Kernel::load(kernel_name, backend);
  std::set<std::string> run;
  for (const HandCase& c : load_hand_cases()) {
    for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
      // Some cases have inputs such as ln 2, which no type holds: those are run in fp32.
      if (!c.exact_in(dtype) && dtype != DType::kFp32) continue;
      for (const Layout layout : {Layout::kBHSD, Layout::kBSHD}) {
        Problem problem = c.problem;
        problem.dtype = dtype;
        problem.layout = layout;
        const auto options = options_for(kernel, c, problem);
        if (!options) continue;
        INFO(kernel_name << " on backend " << backend << ", " << c.name << ", dtype "
                         << static_cast<int>(dtype) << ", layout " << static_cast<int>(layout));
        check_hand_case(c, run_kernel({kernel, problem, inputs_of(c, problem), *options}));
        run.insert(c.name);
      }
    }
  }
  return run;
}

}  // namespace attn_diag::testing
