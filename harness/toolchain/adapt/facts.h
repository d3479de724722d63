// What the code of a candidate says of what it computes, for the declaration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/toolchain/adapt/candidates.h"

namespace attn_diag::adapt {

// A tensor of codes, as the declaration has it.
struct CodesFact {
  std::string type, per;  // "kInt8", "kToken"
};

// A cache of K and V, as kv_cache.h has it.
struct CacheFact {
  std::int64_t page = 0;                               // 0: no pages
  std::string k = "kHeadsTokens", v = "kHeadsTokens";  // CacheOrder
  std::int64_t chunk = 8;
};

struct Facts {
  std::set<std::string> dtypes;         // "fp16"
  std::vector<std::int64_t> head_dims;  // empty: any
  std::int64_t tile_m = 0, tile_n = 0;  // 0: not found
  bool bshd = false, both_layouts = false;
  std::optional<bool> given_bshd;
  bool layout_by_kernel = false;  // nothing but the kernel's own code says which
  bool causal = false, causal_only = false, window = false;
  bool bottom_right = false;  // queries are the last of the keys
  bool tensor_cores = false, p_in_input_type = false, exp2 = false;
  bool has_lse = false, base2_lse = false;
  bool lse_heads_first = false;  // [heads][rows of all batches]
  bool grouped_heads = false, other_seqlen_k = false, own_scale = false;
  std::int64_t group =
      0;  // one number of query heads per KV head that there is a kernel for; 0: any
  bool scaled_q = false;  // it takes q multiplied by the softmax scale already
  Part part = Part::kAttention;
  bool unscaled = false;      // of S: q.k alone
  bool one_query = false;     // of decoding: q has no axis of queries
  bool window_alone = false;  // always, by one width that may count the query itself
  bool window_counts_itself = false, window_both_sides = false;
  std::int64_t q_multiple = 1, k_multiple = 1;
  bool single_head = false;      // no batch and no heads: called for each
  bool per_batch = false;        // heads and no batch: called for each
  bool batch_is_slices = false;  // batches and no heads: those of all heads
  // Sizes that the code has at compile time, and the values it has them with.
  std::map<Role, std::set<std::int64_t>> fixed;
  bool host_memory = false;  // its pointers are of host memory
  bool takes_splits = false;
  bool split_per_tile = false;    // a split for every KV tile
  std::int64_t fixed_splits = 0;  // always this many splits; 0: not fixed
  bool s_in_input_type = false, partial_in_input_type = false, stats_in_input_type = false;
  std::map<char, CodesFact> codes;  // of 'q', 'k', 'v'
  std::optional<CacheFact> cache;
  bool other_output_layout = false;  // o is in BSHD and the inputs in BHSD, or the reverse
  // For parameters that are arrays of strides: "q batch", "q head", "q seq".
  std::map<std::string, std::vector<std::string>> stride_arrays;
  std::string partial;  // "fp16", where partials are narrower than fp32 whatever the input
};

// Whether heads and batches are known to code that names sizes of these roles, and what to do if not.
void settle_heads(const std::set<Role>& roles, Facts& facts, std::vector<Note>& notes);

// Adds to `notes` what was found and guessed.
Facts gather(const Model& model, const Candidate& c, std::optional<bool> bshd,
             std::vector<Note>& notes);

}  // namespace attn_diag::adapt
