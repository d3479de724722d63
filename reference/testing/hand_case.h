// Reads the hand-computed cases of fixtures/hand, for tests of the reference and of kernels.
//
//   for (const HandCase& c : load_hand_cases()) {
//     if (!c.exact_in(DType::kFp16)) continue;      // inputs such as ln 2: for fp64 only
//     Problem problem = c.problem;
//     problem.dtype = DType::kFp16;
//     const std::vector<std::byte> q = c.stored(c.q, DType::kFp16);   // BHSD
//     ... run a kernel with c.geometry.tile and c.geometry.num_splits; if the geometry it plans has
//     ... the case's block_n, splits and frame, its tensors must be c.expected within the bounds.
//   }
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag::reference::testing {

struct HandCase {
  std::string name;   // of the file, without ".toml"
  std::string title;  // one line
  Problem problem;    // dtype kFp64, layout BHSD
  Geometry geometry;
  std::vector<double> q, k, v;  // dense, BHSD
  // Dense row-major over the whole tensor, as in stage.h; empty where the geometry has no such tensor
  // (merged_* without a merge).
  std::array<std::vector<double>, kNumTensors> expected;

  // Whether every element of q, k and v is a value of the type.
  bool exact_in(DType type) const;
  // The values in the type's own bits, rounded to nearest.
  static std::vector<std::byte> stored(const std::vector<double>& values, DType type);
};

// Throws std::runtime_error that names the file and what is wrong with it.
HandCase load_hand_case(const std::filesystem::path& path);

// All of fixtures/hand, by name: of ../fixtures/hand beside the running program, else the source tree's.
std::vector<HandCase> load_hand_cases();

}  // namespace attn_diag::reference::testing
