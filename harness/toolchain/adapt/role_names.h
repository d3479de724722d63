// The names that parameters of attention kernels have.
#pragma once

#include <string>
#include <vector>

#include "harness/toolchain/adapt/roles.h"

namespace attn_diag::adapt {

// "q_seq_len" and "qSeqLen" alike: q, seq, len.
std::vector<std::string> split_name(const std::string& name);
std::string join(const std::vector<std::string>& parts);

Role tensor_role(const std::string& name);    // of pointers
Role integers_role(const std::string& name);  // of pointers to integers
Role size_role(const std::string& name);      // of integers
Role number_role(const std::string& name);    // of floating-point numbers

// "q_batch_stride", "stride_kh", "strideQ", "ldq": "q batch" and so on; "" if it is none.
std::string stride_of(const std::string& name);

}  // namespace attn_diag::adapt
