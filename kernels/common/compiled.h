// What is compiled: tile shapes, element types and gates. The defaults are the shipped libraries'; a
// build may cut them by defining the macros (fault kernels do, to build fast).
#pragma once

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/stage.h"
#include "attn_diag/kernels/tap.h"

// Bit g: Gate g. All but full are one instance of a kernel.
#ifndef ATTN_DIAG_COMPILED_GATES
#define ATTN_DIAG_COMPILED_GATES 0x1f
#endif
// Bit t: DType t. The translation units given to the build must provide exactly these.
#ifndef ATTN_DIAG_COMPILED_DTYPES
#define ATTN_DIAG_COMPILED_DTYPES 0x7
#endif
// The default first. The small ones cut a case of a few queries and keys into several tiles, with
// kBlockM != kBlockN among them.
#ifndef ATTN_DIAG_COMPILED_TILES
#define ATTN_DIAG_COMPILED_TILES \
  {64, 64}, {16, 16}, {2, 2}, { 2, 1 }
#endif

namespace attn_diag {

inline constexpr unsigned kCompiledGates = ATTN_DIAG_COMPILED_GATES;
inline constexpr unsigned kCompiledDTypes = ATTN_DIAG_COMPILED_DTYPES;

constexpr bool is_compiled(Gate gate) { return (kCompiledGates >> static_cast<int>(gate)) & 1u; }
constexpr bool is_compiled(DType type) { return (kCompiledDTypes >> static_cast<int>(type)) & 1u; }

inline constexpr TileShape kCompiledTiles[] = {ATTN_DIAG_COMPILED_TILES};
inline constexpr int kNumCompiledTiles = sizeof(kCompiledTiles) / sizeof(kCompiledTiles[0]);

constexpr bool is_compiled(TileShape tile) {
  for (const TileShape& t : kCompiledTiles)
    if (tile.block_m == t.block_m && tile.block_n == t.block_n) return true;
  return false;
}

// Calls f(Traits<block_m, block_n>{}) for the compiled tile of that shape; returns what f does, or
// `otherwise` if it is not compiled.
template <template <int, int> class Traits, int kIndex = 0, class F, class Result>
Result with_traits(TileShape tile, Result otherwise, F&& f) {
  if constexpr (kIndex == kNumCompiledTiles) {
    return otherwise;
  } else {
    constexpr TileShape candidate = kCompiledTiles[kIndex];
    if (tile.block_m == candidate.block_m && tile.block_n == candidate.block_n)
      return f(Traits<candidate.block_m, candidate.block_n>{});
    return with_traits<Traits, kIndex + 1>(tile, otherwise, f);
  }
}

// Calls f(tap) with the policy of the gate; returns what f does, or `otherwise` if the gate is not
// compiled.
template <class F, class Result>
Result with_tap(Gate gate, const TapTable& taps, Result otherwise, F&& f) {
  constexpr unsigned kFull = 1u << static_cast<int>(Gate::kFull);
  if (!is_compiled(gate)) return otherwise;
  if (gate == Gate::kFull) {
    if constexpr ((kCompiledGates & kFull) != 0) return f(NoTap{});
  } else {
    if constexpr ((kCompiledGates & ~kFull) != 0) return f(StageTap{gate, taps});
  }
  return otherwise;
}

}  // namespace attn_diag
