// What the code of a candidate says of what it computes, for the declaration.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/adapt/candidates.h"

namespace attn_diag::adapt {

struct Facts {
  std::set<std::string> dtypes;         // "fp16"
  std::vector<std::int64_t> head_dims;  // empty: any
  std::int64_t tile_m = 0, tile_n = 0;  // 0: not found
  bool bshd = false, both_layouts = false;
  bool causal = false, causal_only = false, window = false;
  bool tensor_cores = false, p_in_input_type = false, exp2 = false;
  bool has_lse = false, base2_lse = false;
  bool grouped_heads = false, other_seqlen_k = false, own_scale = false;
  std::int64_t q_multiple = 1, k_multiple = 1;
  bool single_head = false;  // no batch and no heads: called for each
  bool host_memory = false;  // its pointers are of host memory
  bool takes_splits = false;
};

// Adds to `notes` what was found and guessed.
Facts gather(const Model& model, const Candidate& c, std::vector<Note>& notes);

}  // namespace attn_diag::adapt
