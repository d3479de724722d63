#include "harness/shrink/cases.h"

#include <algorithm>
#include <cstring>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"

namespace attn_diag::shrink {
namespace {

struct Shape {
  std::int64_t heads, rows, dim;
};
std::array<Shape, 3> shapes_of(const Problem& p) {
  return {{{p.heads, p.seqlen_q, p.head_dim},
           {p.kv_heads, p.seqlen_k, p.head_dim},
           {p.kv_heads, p.seqlen_k, p.head_dim_v}}};
}

bool is_made(const std::string& kind) {
  return std::any_of(input_kinds().begin(), input_kinds().end(),
                     [&](const InputKindInfo& k) { return kind == k.name; });
}

}  // namespace

bool Block::fits_into(const Problem& whole) const {
  return origin[0] + problem.batch <= whole.batch &&
         origin[1] + problem.kv_heads <= whole.kv_heads &&
         group_size(problem) <= group_size(whole) &&
         origin[2] + problem.seqlen_q <= whole.seqlen_q &&
         origin[3] + problem.seqlen_k <= whole.seqlen_k && problem.head_dim <= whole.head_dim &&
         problem.head_dim_v <= whole.head_dim_v;
}

InputData cut_out(const Problem& whole, const InputData& inputs, const Block& block) {
  const Problem& p = block.problem;
  InputData out;
  out.kind = inputs.kind;
  out.seed = inputs.seed;
  out.scale = inputs.scale;
  const std::array<const SharedBytes*, 3> from = {&inputs.q, &inputs.k, &inputs.v};
  const std::array<std::vector<std::byte>*, 3> to = {&out.q.edit(), &out.k.edit(), &out.v.edit()};
  const std::array<Shape, 3> small = shapes_of(p), large = shapes_of(whole);
  const std::size_t size = size_of(p.dtype);
  for (std::size_t t = 0; t < 3; ++t) {
    const Shape& s = small[t];
    const Strides at = dense_strides(p.layout, s.heads, s.rows, s.dim);
    const Strides in = dense_strides(p.layout, large[t].heads, large[t].rows, large[t].dim);
    to[t]->resize(static_cast<std::size_t>(p.batch * s.heads * s.rows * s.dim) * size);
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.rows; ++i) {
          const std::int64_t head =
              t > 0 ? block.origin[1] + h
                    : (block.origin[1] + h / group_size(p)) * group_size(whole) + h % group_size(p);
          const std::int64_t row = i + block.origin[t == 0 ? 2 : 3];
          const std::int64_t source =
              (block.origin[0] + b) * in.batch + head * in.head + row * in.seq;
          const std::int64_t target = b * at.batch + h * at.head + i * at.seq;
          std::memcpy(to[t]->data() + static_cast<std::size_t>(target) * size,
                      from[t]->data() + static_cast<std::size_t>(source) * size,
                      static_cast<std::size_t>(s.dim) * size);
        }
    out.has_nonfinite = out.has_nonfinite || has_nonfinite(*to[t], p.dtype);
  }
  return out;
}

std::optional<TriedCase> case_of(const Experiment& whole, const Block& block) {
  const InputData& inputs = whole.inputs;
  const bool fits = block.fits_into(whole.problem);
  if (!fits && (!is_made(inputs.kind) || block.origin != std::array<std::int64_t, 4>{}))
    return std::nullopt;
  TriedCase one;
  one.problem = block.problem;
  one.tile = block.tile;
  one.num_splits = block.num_splits;
  const auto is_taken = [&] {
    try {
      check_problem(one.problem);
      const Geometry geometry =
          plan_geometry(whole.kernel, one.problem, options_for(one, whole.run));
      one.tile = geometry.tile;
      one.num_splits = whole.kernel.info().takes_num_splits ? geometry.num_splits : 0;
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  if (!is_taken()) {  // the tile may be of another head dimension
    one.tile = {0, 0};
    if (!is_taken()) return std::nullopt;
  }
  one.inputs = std::make_shared<const InputData>(
      fits ? cut_out(whole.problem, inputs, block)
           : make_inputs(one.problem, inputs.kind, inputs.seed, inputs.scale));
  return one;
}

bool made_by_kind(const TriedCase& one) {
  const InputData& given = *one.inputs;
  if (!is_made(given.kind)) return false;
  const InputData made = make_inputs(one.problem, given.kind, given.seed, given.scale);
  return made.q == given.q && made.k == given.k && made.v == given.v;
}

bool has_default_scale(const Problem& problem) {
  return problem.softmax_scale == default_softmax_scale(problem.head_dim);
}

Numbers numbers_of(const TriedCase& one) {
  Numbers out;
  const std::array<const SharedBytes*, 3> from = {&one.inputs->q, &one.inputs->k, &one.inputs->v};
  for (std::size_t t = 0; t < 3; ++t) {
    out.values[t].resize(from[t]->size() / size_of(one.problem.dtype));
    for (std::size_t i = 0; i < out.values[t].size(); ++i)
      out.values[t][i] =
          load_element(from[t]->data(), one.problem.dtype, static_cast<std::int64_t>(i));
  }
  return out;
}

std::shared_ptr<const InputData> inputs_of(const Numbers& numbers, const Problem& problem) {
  auto out = std::make_shared<InputData>();
  out->kind = "shrunk";
  const std::array<std::vector<std::byte>*, 3> to = {&out->q.edit(), &out->k.edit(),
                                                     &out->v.edit()};
  for (std::size_t t = 0; t < 3; ++t) {
    to[t]->resize(numbers.values[t].size() * size_of(problem.dtype));
    for (std::size_t i = 0; i < numbers.values[t].size(); ++i)
      store_element(to[t]->data(), problem.dtype, static_cast<std::int64_t>(i),
                    numbers.values[t][i]);
    out->has_nonfinite = out->has_nonfinite || has_nonfinite(*to[t], problem.dtype);
  }
  return out;
}

std::vector<Part> parts_of(const Problem& problem, PartSize size) {
  std::vector<Part> parts;
  const std::array<Shape, 3> shapes = shapes_of(problem);
  for (int t = 0; t < 3; ++t) {
    const Shape& s = shapes[static_cast<std::size_t>(t)];
    const Strides at = dense_strides(problem.layout, s.heads, s.rows, s.dim);
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h) {
        if (size == PartSize::kHeads) parts.push_back({t, {}});
        for (std::int64_t i = 0; i < s.rows; ++i) {
          if (size == PartSize::kRows) parts.push_back({t, {}});
          for (std::int64_t d = 0; d < s.dim; ++d) {
            if (size == PartSize::kElements) parts.push_back({t, {}});
            parts.back().elements.push_back(b * at.batch + h * at.head + i * at.seq + d);
          }
        }
      }
  }
  return parts;
}

}  // namespace attn_diag::shrink
