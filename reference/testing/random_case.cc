#include "reference/testing/random_case.h"

#include <cmath>
#include <sstream>

#include "reference/testing/float_types.h"

namespace attn_diag::reference::testing {
namespace {

std::int32_t pick(std::mt19937_64& random, std::int32_t low, std::int32_t high) {
  return std::uniform_int_distribution<std::int32_t>(low, high)(random);
}

void fill(std::mt19937_64& random, DType type, double scale, std::size_t n,
          std::vector<std::byte>& data) {
  std::normal_distribution<double> normal;
  data.resize(n * size_of(type));
  for (std::size_t i = 0; i < n; ++i)
    store(type, scale * normal(random), data.data() + i * size_of(type));
}

}  // namespace

double element(const std::vector<std::byte>& data, const Problem& problem, std::int32_t heads,
               std::int32_t seqlen, std::int32_t dim, std::int32_t batch, std::int32_t head,
               std::int32_t position, std::int32_t d) {
  const Strides s = dense_strides(problem.layout, heads, seqlen, dim);
  const std::int64_t at = batch * s.batch + head * s.head + position * s.seq + d;
  return load(problem.dtype, data.data() + static_cast<std::size_t>(at) * size_of(problem.dtype));
}

void fill_inputs(std::mt19937_64& random, Case& c) {
  const Problem& p = c.problem;
  const auto size = [&](std::int32_t heads, std::int32_t seqlen, std::int32_t dim) {
    return static_cast<std::size_t>(p.batch) * static_cast<std::size_t>(heads) *
           static_cast<std::size_t>(seqlen) * static_cast<std::size_t>(dim);
  };
  fill(random, p.dtype, c.input_scale, size(p.heads, p.seqlen_q, p.head_dim), c.q);
  fill(random, p.dtype, c.input_scale, size(p.kv_heads, p.seqlen_k, p.head_dim), c.k);
  fill(random, p.dtype, c.input_scale, size(p.kv_heads, p.seqlen_k, p.head_dim_v), c.v);
}

Case random_case(std::mt19937_64& random, std::int32_t largest_seqlen, bool with_fp64) {
  Case c;
  Problem& p = c.problem;
  p.batch = pick(random, 1, 2);
  p.kv_heads = pick(random, 1, 3);
  p.heads = p.kv_heads * pick(random, 1, 3);
  p.seqlen_q = pick(random, 1, largest_seqlen);
  p.seqlen_k = pick(random, 0, 2) == 0 ? p.seqlen_q : pick(random, 1, largest_seqlen);
  p.head_dim = pick(random, 1, 40);
  p.head_dim_v = pick(random, 0, 1) == 0 ? p.head_dim : pick(random, 1, 40);
  p.dtype = static_cast<DType>(pick(random, 0, with_fp64 ? 3 : 2));
  p.layout = static_cast<Layout>(pick(random, 0, 1));
  p.mask.kind = static_cast<MaskKind>(pick(random, 0, 2));
  p.mask.alignment = static_cast<CausalAlignment>(pick(random, 0, 1));
  p.mask.window_left = pick(random, 0, largest_seqlen);
  p.mask.window_right = pick(random, 0, largest_seqlen / 2);
  p.softmax_scale = pick(random, 0, 3) == 0
                        ? std::uniform_real_distribution<float>(0.01f, 2)(random)
                        : 1 / std::sqrt(static_cast<float>(p.head_dim));
  Geometry& g = c.geometry;
  g.tile.block_m = pick(random, 1, 20);
  g.tile.block_n = pick(random, 1, 20);
  g.frame = static_cast<Frame>(pick(random, 0, 1));
  g.num_splits = pick(random, 0, 1) == 0 ? 1 : pick(random, 1, 5);
  const std::int32_t least = ceil_div(ceil_div(p.seqlen_k, g.tile.block_n), g.num_splits);
  g.tiles_per_split = least + pick(random, 0, 2);  // more than the least: empty last splits
  g.has_split_merge = g.num_splits > 1 || pick(random, 0, 1) == 1;
  c.input_scale =
      std::exp(std::uniform_real_distribution<double>(std::log(1e-3), std::log(30.0))(random));
  fill_inputs(random, c);
  return c;
}

std::string Case::describe() const {
  std::ostringstream out;
  out << "B=" << problem.batch << " H=" << problem.heads << " kv_heads=" << problem.kv_heads
      << " Sq=" << problem.seqlen_q << " Sk=" << problem.seqlen_k << " D=" << problem.head_dim
      << " Dv=" << problem.head_dim_v << " dtype=" << static_cast<int>(problem.dtype)
      << " layout=" << static_cast<int>(problem.layout)
      << " mask=" << static_cast<int>(problem.mask.kind)
      << " alignment=" << static_cast<int>(problem.mask.alignment) << " window=("
      << problem.mask.window_left << "," << problem.mask.window_right
      << ") scale=" << problem.softmax_scale << " tile=" << geometry.tile.block_m << "x"
      << geometry.tile.block_n << " splits=" << geometry.num_splits << "x"
      << geometry.tiles_per_split << " frame=" << static_cast<int>(geometry.frame)
      << " merge=" << geometry.has_split_merge << " inputs=" << input_scale;
  return out.str();
}

}  // namespace attn_diag::reference::testing
