// Axes of tensors as comments write them: "[B, H, N, D]", "(batch, seq, heads * dim)", "N x d_model".
#pragma once

#include <string>
#include <vector>

#include "harness/toolchain/adapt/model.h"
#include "harness/toolchain/adapt/roles.h"

namespace attn_diag::adapt {

struct NamedAxes {
  std::string name;  // of the tensor, as in "q: [B, H, D]"; may be empty
  std::vector<Role>
      axes;  // outermost first; a product counts as several, without the 3 of Q, K and V
};

// What people write beside the code: comments, and the messages of its checks. A text each.
std::vector<std::string> comments_of(const Model& model);

std::vector<NamedAxes> axes_in(const std::string& text);

}  // namespace attn_diag::adapt
