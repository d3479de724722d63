// What a parameter of an attention kernel is, by its name and type.
#pragma once

#include <string>
#include <vector>

#include "harness/toolchain/adapt/model.h"

namespace attn_diag::adapt {

enum class Role {
  kUnknown,
  // Tensors.
  kQ,
  kK,
  kV,
  kO,
  kLse,
  kQkv,
  kKv,
  kRowMax,
  kRowSum,  // of the running softmax, kept in memory
  kScores,
  kProbs,  // of the whole problem
  kPartialO,
  kPartialLse,
  kPartialMax,
  kPartialSum,  // of splits
  kWorkspace,
  kGradient,        // of a backward pass
  kOptionalTensor,  // mask, bias, slopes, dropout: may be null
  kPaged,           // block tables: not in the problem
  kOffsets,         // of batches among the rows: cu_seqlens
  kLengths,         // of batches
  // Sizes.
  kBatch,
  kHeads,
  kKvHeads,
  kGroup,
  kSeqlen,
  kSeqlenQ,
  kSeqlenK,
  kTokens,  // of all batches
  kHeadDim,
  kHeadDimV,
  kBatchHeads,
  kHidden,
  kNumSplits,
  kSplitLength,
  kPageSize,  // tokens of a page of a cache
  kPagesPerBatch,
  kPages,
  kPosition,  // of the one query: all keys up to it
  kKvHidden,  // KV heads times head dimension
  kZero,      // where in a larger cache a layer begins, say
  kTileM,
  kTileN,
  kTilesM,
  kTilesN,
  kCount,
  // Numbers.
  kScale,
  kScaleLog2,
  kUnitScale,  // of quantised values, which are none here
  kCodeScale,  // of a tensor of codes: Classified::tensor
  kCodeZero,
  kCausal,
  kWindowLeft,
  kWindowRight,
  kWindow,  // how far a query sees, itself counted or not
  kDropout,
  kIsFp16,
  kIsBf16,  // what the type of elements is
  kStride,  // see Classified::stride
  kStream,
};

struct Classified {
  Role role = Role::kUnknown;
  std::string stride;  // of kStride: "q batch", "k head", "o seq", "v dim"
  std::string guess;   // why, where it is not plain from the name: "taken for Q by its place"
  char tensor = 0;     // of kCodeScale and kCodeZero: 'q', 'k', 'v'; '2': K and V
};

// One for each parameter. Looks at all of them: what N is depends on whether there is an M.
std::vector<Classified> classify(const std::vector<Parameter>& parameters);

// The role of one name as an integer, for variables around a launch.
Classified classify_size(const std::string& name);
// The role of a constant or template parameter, which may begin with a k: kSeqLen.
Classified classify_constant(const std::string& name);

bool is_about_keys(const std::string& name);     // "cu_seqlens_k", "kv_indptr"
bool is_about_queries(const std::string& name);  // "seqlens_q"
bool is_page_table(const std::string& name);     // "block_tables"

const char* words(Role role);  // "Q", "the number of heads"
bool is_tensor(Role role);
inline bool is_queries(Role role) { return role == Role::kSeqlen || role == Role::kSeqlenQ; }
inline bool is_length(Role role) { return is_queries(role) || role == Role::kSeqlenK; }
inline bool is_heads(Role role) { return role == Role::kHeads || role == Role::kKvHeads; }

bool is_integer(const std::string& element);
bool is_tensor_class(const Parameter& p);  // "at::Tensor", "std::optional<torch::Tensor>"

// "fp16", "bf16", "fp32" or "" for an element type as CUDA code names it.
std::string dtype_of(const std::string& element);

}  // namespace attn_diag::adapt
