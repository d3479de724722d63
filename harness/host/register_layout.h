// Which elements of a matrix a lane's registers hold in PTX's mma.sync ("Matrix Fragments for mma" in the PTX
// ISA), and so in ldmatrix. Registers are numbered by element: two of 16 bits share one register.
#pragma once

#include "attn_diag_host/warp_matrix.h"
#include "harness/host/fragment_layout.h"

namespace attn_diag::host {

constexpr unsigned depth_of(MmaShape shape) {
  return shape == MmaShape::kM16N8K16 ? 16 : shape == MmaShape::kM16N8K8 ? 8 : 4;
}
constexpr unsigned kMmaRows = 16, kMmaColumns = 8;

// Elements of A, of B and of an accumulator that a lane holds.
constexpr unsigned elements_of_a(MmaShape shape) { return kMmaRows * depth_of(shape) / 32; }
constexpr unsigned elements_of_b(MmaShape shape) { return kMmaColumns * depth_of(shape) / 32; }
constexpr unsigned kElementsOfAccumulator = 4;

// `wide`: elements of 32 bits, one to a register.
constexpr MatrixCell cell_of_a(bool wide, unsigned lane, unsigned element) {
  const unsigned g = lane / 4, t = lane % 4;
  if (wide) return {g + 8 * (element % 2), t + 4 * (element / 2)};
  return {g + 8 * (element / 2 % 2), 2 * t + element % 2 + 8 * (element / 4)};
}
constexpr MatrixCell cell_of_b(bool wide, unsigned lane, unsigned element) {
  const unsigned g = lane / 4, t = lane % 4;
  if (wide) return {t + 4 * element, g};
  return {2 * t + element % 2 + 8 * (element / 2), g};
}
constexpr MatrixCell cell_of_accumulator(unsigned lane, unsigned element) {
  return {lane / 4 + 8 * (element / 2), 2 * (lane % 4) + element % 2};
}

}  // namespace attn_diag::host
