#include "harness/shrink/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"

namespace attn_diag::shrink {
namespace {

SizeAxis axis_of(const char* name, std::int32_t Problem::*size, int origin = -1, int row = -1) {
  return {name,
          1,
          [size](const Block& b) { return std::int64_t{b.problem.*size}; },
          [size](Block& b, std::int64_t n) { b.problem.*size = static_cast<std::int32_t>(n); },
          origin,
          row};
}

}  // namespace

std::vector<SizeAxis> size_axes(const Problem& p, int num_splits,
                                const std::vector<std::string>& hold) {
  std::vector<SizeAxis> axes;
  axes.push_back(axis_of("batch", &Problem::batch, 0, 0));
  const std::int32_t group = group_size(p);
  SizeAxis heads = axis_of(group == 1 ? "heads" : "kv_heads", &Problem::kv_heads, 1, 1);
  heads.set = [](Block& b, std::int64_t n) {
    b.problem.heads = static_cast<std::int32_t>(n) * group_size(b.problem);
    b.problem.kv_heads = static_cast<std::int32_t>(n);
  };
  axes.push_back(heads);
  if (group > 1)
    axes.push_back({"heads of a KV head", 1,
                    [](const Block& b) { return std::int64_t{group_size(b.problem)}; },
                    [](Block& b, std::int64_t n) {
                      b.problem.heads = b.problem.kv_heads * static_cast<std::int32_t>(n);
                    }});
  axes.push_back(axis_of("seqlen_q", &Problem::seqlen_q, 2, 2));
  axes.push_back(axis_of("seqlen_k", &Problem::seqlen_k, 3));
  SizeAxis dim = axis_of("head_dim", &Problem::head_dim);
  const bool default_scale_too = has_default_scale(p), one_dim = p.head_dim == p.head_dim_v;
  dim.set = [=](Block& b, std::int64_t n) {
    b.problem.head_dim = static_cast<std::int32_t>(n);
    if (one_dim) b.problem.head_dim_v = b.problem.head_dim;
    if (default_scale_too) b.problem.softmax_scale = default_softmax_scale(b.problem.head_dim);
  };
  axes.push_back(dim);
  if (!one_dim) axes.push_back(axis_of("head_dim_v", &Problem::head_dim_v));
  if (p.mask.kind == MaskKind::kWindow)
    for (const auto& [name, side] :
         {std::pair{"window_left", &Mask::window_left}, {"window_right", &Mask::window_right}}) {
      const auto at = side;
      axes.push_back({name, 0, [at](const Block& b) { return std::int64_t{b.problem.mask.*at}; },
                      [at](Block& b, std::int64_t n) {
                        if (b.problem.mask.kind == MaskKind::kWindow)
                          b.problem.mask.*at = static_cast<std::int32_t>(n);
                      }});
    }
  if (num_splits > 0)
    axes.push_back({"num_splits", 1, [](const Block& b) { return std::int64_t{b.num_splits}; },
                    [](Block& b, std::int64_t n) { b.num_splits = static_cast<int>(n); }});
  std::string names;
  for (const SizeAxis& axis : axes) names += (names.empty() ? "" : ", ") + axis.name;
  for (const std::string& name : hold)
    if (std::none_of(axes.begin(), axes.end(),
                     [&](const SizeAxis& axis) { return axis.name == name; }))
      throw Error(
          fmt::format("'{}' is no size of this case that can be held; it has {}.", name, names));
  std::erase_if(axes, [&](const SizeAxis& axis) {
    return std::find(hold.begin(), hold.end(), axis.name) != hold.end();
  });
  return axes;
}

SizeAxis both_lengths() {
  return {"seqlen", 1, [](const Block& b) { return std::int64_t{b.problem.seqlen_q}; },
          [](Block& b, std::int64_t n) {
            b.problem.seqlen_q = b.problem.seqlen_k = static_cast<std::int32_t>(n);
          }};
}

}  // namespace attn_diag::shrink
