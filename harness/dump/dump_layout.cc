#include "harness/dump/dump_layout.h"

#include <fmt/format.h>

#include <utility>

namespace attn_diag {

std::string tensor_path(std::string_view tree, Tensor t) {
  return fmt::format("{}/{}/{}", tree, name(stage_of(t)), name(t));
}

std::array<InputLayout, 3> input_layouts(const Problem& p) {
  std::array<InputLayout, 3> layouts{{
      {"q", {"batch", "head", "query", "qk_dim"}, {p.batch, p.heads, p.seqlen_q, p.head_dim}},
      {"k", {"batch", "kv_head", "key", "qk_dim"}, {p.batch, p.kv_heads, p.seqlen_k, p.head_dim}},
      {"v", {"batch", "kv_head", "key", "dim"}, {p.batch, p.kv_heads, p.seqlen_k, p.head_dim_v}},
  }};
  if (p.layout == Layout::kBSHD)
    for (InputLayout& layout : layouts) {
      std::swap(layout.axes[1], layout.axes[2]);
      std::swap(layout.shape[1], layout.shape[2]);
    }
  return layouts;
}

}  // namespace attn_diag
