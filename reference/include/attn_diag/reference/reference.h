// The oracle: attention in fp64, every stage tensor, for any tiling, mask, group size and layout,
// with the rounding bound of every element. Shares the vocabulary of attn_diag/kernels, none of its
// code: the mask, the tile ranges and the head map are written here a second time, on purpose.
//
// Infinite bounds: a bound of +inf means that nothing can be said about the size of the error, because
// rounding may overflow or the inputs hold NaN or infinity there. (compare.h says how such cells are
// judged.) A value that is NaN always has this bound. Values follow IEEE arithmetic in fp64 over the
// visible keys of a row; NaN and infinity in v reach every row of their KV tile.
//
// Work is done per (batch, head, block of query rows), in parallel; a block is handed to the caller
// while it is in cache, so that comparing needs no fp64 copy of S or P.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag::reference {

// q, k, v in the problem's dtype and layout, exactly as the kernel gets them (kFp64 is allowed
// too).
struct Inputs {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
};

struct RowIndex {
  std::int32_t batch = 0, head = 0, query = 0;
  bool operator==(const RowIndex&) const = default;
};

// Which inputs of each stage the bound takes as exact.
enum class BoundMode : std::uint8_t {
  kPrefix,   // errors accumulate from q, k, v through every stage
  kIsolate,  // every stage's inputs are the reference's, rounded to fp32
};

struct Options {
  std::uint32_t tensors = 0xffffffffu;  // bit t: Tensor t is wanted
  bool bounds = true;
  BoundMode mode = BoundMode::kPrefix;
  int threads = 0;  // 0: all cores
  // Rows wanted (absolute, half open); others are not computed.
  std::int32_t batch_begin = 0, batch_end = -1;  // -1: to the end
  std::int32_t head_begin = 0, head_end = -1;
  std::int32_t query_begin = 0, query_end = -1;
};

// One block of rows of one (batch, head). Pointers are valid during the callback only; row r is
// query query_begin + r; values are dense row-major [rows][inner0][inner1], as in tap.h.
struct RowBlock {
  std::int32_t batch, head, query_begin, rows;
  std::array<const double*, kNumTensors>
      value{};  // null: not wanted or not defined for this geometry
  std::array<const double*, kNumTensors> bound{};  // null: as above, or bounds off
};

// Calls visit once per block, from several threads at once, in no particular order.
// Throws std::invalid_argument where problem, geometry and inputs do not fit together.
void for_each_row_block(const Problem& problem, const Geometry& geometry,
                        const Arithmetic& arithmetic, const Inputs& inputs, const Options& options,
                        const std::function<void(const RowBlock&)>& visit);

// Rows that this process computed so far, in calls of any kind: how often a case was worked through.
std::int64_t rows_computed();

// Bytes that each thread needs for the tensors of its block, at most; more only where a single row has more.
std::int64_t block_bytes(const Problem& problem, const Geometry& geometry);

// True if query q of the problem may see key k; the oracle's own spelling of the mask.
bool visible(const Problem& problem, std::int32_t query, std::int32_t key);

// True if no cell of (query tile, KV tile) is visible: a kernel that declares skips_masked_tiles
// may leave it unvisited.
bool tile_fully_masked(const Problem& problem, const Geometry& geometry, std::int32_t query_tile,
                       std::int32_t kv_tile);

// Every wanted tensor, whole, in memory: dense row-major over the requested rows.
struct Tensors {
  std::array<std::vector<double>, kNumTensors> value;
  std::array<std::vector<double>, kNumTensors> bound;
};
Tensors compute(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
                const Inputs& inputs, const Options& options);

}  // namespace attn_diag::reference
