// Which axis is which.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/kernels/problem.h"
#include "harness/files/roles.h"

namespace attn_diag::files {

struct Shapes {
  // Sizes and layout; the rest of it is the caller's.
  Problem problem;
  // Strides, in elements, of lse in its file along batch, head and query.
  std::array<std::int64_t, 3> lse_strides{};
  std::string layout_assumed;  // why this layout, if nobody said; else empty
};

// q, k, v and o have 4 axes in the order of the layout; 3 where there is no batch, 2 where there are no
// heads either. lse has batch, head and query, as many of them, or query before head if the sizes tell.
// Throws Error where they do not fit together.
Shapes understand_shapes(const std::array<const Array*, kNumForeignRoles>& arrays,
                         std::optional<Layout> layout);

// [Sq, Sk], [H, Sq, Sk] or [B, H, Sq, Sk], with 1 for B or H that share it: sets the last two. Throws
// Error.
void understand_bias(const Array& bias, const Problem& problem, std::int32_t& batch,
                     std::int32_t& heads);

}  // namespace attn_diag::files
