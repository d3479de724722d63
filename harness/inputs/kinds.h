// Kinds of inputs: each fills one row of q, k or v.
#pragma once

#include <cstdint>
#include <span>

#include "attn_diag/kernels/problem.h"
#include "harness/inputs/draw.h"

namespace attn_diag::inputs {

enum class Operand : std::uint64_t { kQ = 1, kK = 2, kV = 3 };

// A row of an operand: one query or key of one head. `h` is a KV head for k and v.
struct RowPlace {
  const Problem& p;
  std::uint64_t seed;
  Operand operand;
  std::int64_t b, h, s;

  Draw draw() const { return Draw(seed, static_cast<std::uint64_t>(operand), b, h, s); }
  // One draw for all rows of a KV head, q's too: what q and k have to agree on.
  Draw shared_draw() const {
    return Draw(seed, 4, b, operand == Operand::kQ ? h / group_size(p) : h, 0);
  }
};

// Writes head_dim or head_dim_v values.
using FillRow = void (*)(const RowPlace& row, std::span<double> out);

// inputs/random.cc
void randn(const RowPlace& row, std::span<double> out);
void small(const RowPlace& row, std::span<double> out);
void heavy(const RowPlace& row, std::span<double> out);
void large(const RowPlace& row, std::span<double> out);
void uniform(const RowPlace& row, std::span<double> out);

// inputs/structured.cc
void ones(const RowPlace& row, std::span<double> out);
void ramp(const RowPlace& row, std::span<double> out);
void rising(const RowPlace& row, std::span<double> out);
void cancel(const RowPlace& row, std::span<double> out);

// inputs/exact.cc
void integers(const RowPlace& row, std::span<double> out);
void powers(const RowPlace& row, std::span<double> out);

// inputs/probe.cc
void probe(const RowPlace& row, std::span<double> out);

}  // namespace attn_diag::inputs
