// What predictions read: the inputs of a case in fp64, in the memory order the kernel was given.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::reference {

// One of q, k, v, dense in the problem's layout.
struct Operand {
  std::int32_t heads = 0, seqlen = 0, dim = 0;
  Strides strides{};
  std::vector<double> values;
  std::vector<double> norms;  // |row|: dense (batch, head, position), in any layout

  std::int64_t row_offset(std::int32_t batch, std::int32_t head, std::int32_t position) const {
    return batch * strides.batch + head * strides.head + position * strides.seq;
  }
};

struct Slots;  // slots.h

struct PredictionInputs::Data {
  std::uint64_t serial = 0;  // no two cases of a program have the same
  Problem problem;
  Geometry geometry;
  Arithmetic arithmetic;
  Extras extras;
  std::int32_t tiles = 0;
  std::shared_ptr<const Slots> plain_slots;  // of a mask without bugs that add keys
  std::shared_ptr<const Operand> q, k, v;    // shared between cases that are cut differently
  // Empty for tensors that are not given.
  std::array<std::vector<float>, kNumTensors> given;

  bool has(Tensor t) const { return !given[static_cast<std::size_t>(t)].empty(); }
  // The given cells of one row.
  const float* given_row(Tensor t, const RowIndex& row) const;
  std::int64_t cells_per_row(Tensor t) const;
};

}  // namespace attn_diag::reference
