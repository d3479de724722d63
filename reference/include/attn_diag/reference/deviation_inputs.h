// How a kernel's formula differs from attention's up to the scores: what it reads, the logits, the mask.
#pragma once

#include <cstdint>
#include <limits>

namespace attn_diag::reference {

// A type that intermediate results are rounded to, to nearest, or cut off towards zero.
enum class Narrow : std::uint8_t {
  kNone,
  kFp16Cut,
  kBf16Cut,
  kTf32Cut,
  kFp16,
  kFp16Saturated,  // beyond 65504: 65504
  kBf16,
  kTf32,
  kFp8E4m3,  // saturates at 448; least number 2^-9
  kFp8E5m2,  // beyond 57344: infinity; least number 2^-16
};

// Another row of the query tile, whose number is taken for a row's own.
struct RowChoice {
  enum class Kind : std::uint8_t {
    kOwn,
    kFirst,     // of every n
    kLast,      // of every n
    kFlipped,   // row ^ n
    kShifted,   // row + n
    kModulo,    // row % n
    kReversed,  // of every n
  };
  Kind kind = Kind::kOwn;
  std::int32_t n = 0;
  // The row taken for row r of the tile; it may lie outside the tile.
  constexpr std::int32_t of(std::int32_t r) const {
    switch (kind) {
      case Kind::kFirst:
        return r - r % n;
      case Kind::kLast:
        return r - r % n + n - 1;
      case Kind::kFlipped:
        return r ^ n;
      case Kind::kShifted:
        return r + n;
      case Kind::kModulo:
        return r % n;
      case Kind::kReversed:
        return r - r % n + n - 1 - r % n;
      case Kind::kOwn:
        break;
    }
    return r;
  }
  bool is_own() const { return kind == Kind::kOwn; }
  bool operator==(const RowChoice&) const = default;
};

// ---- fetch ------------------------------------------------------------------------------------

// Which index stands for another, in runs of `group` indices (0: all indices).
enum class IndexRule : std::uint8_t {
  kRight,
  kRotated,   // i + by, cyclic in its run; i ^ by where a run has 2 by
  kReversed,  // within its run
  kDealt,     // i of a run is i % by * (group / by) + i / by
  kRepeated,  // i % group: every run is the first one
  kFirst,     // the first of its run
};
struct IndexMap {
  IndexRule rule = IndexRule::kRight;
  std::int32_t group = 0, by = 0;
  bool operator==(const IndexMap&) const = default;
};

// The head from which an operand is read.
enum class HeadMap : std::uint8_t {
  kRight,
  kZero,
  kNext,             // the next head, cyclic
  kModulo,           // head % kv_heads
  kDivideByKvHeads,  // head / kv_heads
  kQueryHead,        // the query head's own number
  kGroupTooSmall,    // head / (group_size - 1)
  kPrevious,         // cyclic
  kReversed,
  kLast,
  kNeighbour,      // head ^ 1
  kGroupTooLarge,  // head / (group_size + 1)
  kRoundedUp,      // ceil(head / group_size), at most the last
  kInGroup,        // head % group_size
  kFirstOfGroup,   // of q: head - head % group_size
  kLastOfGroup,    // of q
  kOfGroup,        // of q: head / group_size
  kDealt,          // of q: head % kv_heads * group_size + head / kv_heads
};

// The distances between elements with which an operand is read.
enum class StrideSet : std::uint8_t {
  kRight,
  kOtherLayout,        // BSHD for BHSD and the reverse
  kHeadOfOtherSeqlen,  // the distance of heads from the other sequence length
  kBatchOfOtherHeads,  // the distance of batches from the other number of heads
  kHeadOfWholeTiles,   // the distance of heads from the sequence length rounded up to tiles
  kRowOfOtherDim,      // all distances from the other head dimension
};

// Which element of its 16x16 fragment stands for element [row][column].
enum class FragmentMap : std::uint8_t {
  kRight,
  kHalvesSwapped,  // [row + 8][column] with [row][column + 8], both < 8
  kTransposed8,    // within blocks of 8
  kTransposed16,
  kRowsSwapped,     // row ^ 8
  kColumnsSwapped,  // column ^ 8
  kPairsSwapped,    // column ^ 1
  // No permutations, since the lane is forgotten. For element i of a lane's accumulator ...
  kElementNumber,    // ... [0][i]
  kElementNumber8,   // ... [0][i], in fragments of 16x8
  kOfLaneZero,       // ... element i of lane 0
  kColumnOfLaneZero  // ... the column of that, in its own row
};

// Which element of its tile stands for element (row, column), a tile being block_m or block_n rows
// of an operand as they lie in shared memory.
struct TileRead {
  std::int32_t transposed_blocks = 0;  // 8, 16: every block of this size is transposed
  FragmentMap fragment = FragmentMap::kRight;
  // Stored at row * stored_stride + column, or transposed; read at row * read_stride + column, or
  // transposed. 0: the natural one. What lies between rows is 0.
  bool stored_transposed = false, read_transposed = false;
  std::int32_t stored_stride = 0, read_stride = 0;
  bool stride_within_fragments = false;  // 16 rows at a time start where they should
  IndexMap rows, columns;
  // Column c of row r is column c ^ r / swizzled_every % swizzled_rows * swizzled_by.
  std::int32_t swizzled_by = 0, swizzled_rows = 0, swizzled_every = 1;
  bool operator==(const TileRead&) const = default;
};

// What a tile holds into whose place nothing was loaded, or only before the loop.
enum class Before : std::uint8_t { kRight, kZero };

// What stands before the first and behind the last row (or column) where they are shifted.
enum class Beyond : std::uint8_t {
  kMemory,  // what lies there in memory
  kKept,    // the first or the last
  kZero,
};

// Which of the tiles that the loop visits is read for one, apart from FetchChange::tiles_late.
enum class TileOrder : std::uint8_t {
  kRight,
  kFirst,
  kLast,
  kPairsSwapped,  // the tile's number within the loop ^ 1, where there is one
  kSecondStale,   // the second is the first again
  kLastStale,     // the last is the one before it
};

// Which page of the keys is read for one, pages being runs of keys that a table finds. Past the last page
// of the last sequence nobody knows what is there.
enum class PageMap : std::uint8_t {
  kRight,
  kFirst,         // the first, for every page
  kNext,          // cyclic
  kPrevious,      // cyclic
  kNextOfAll,     // after the last one comes the first of the next sequence
  kAtMostLast,    // the next, but for the last
  kAtLeastFirst,  // the one before, but for the first
  kReversed,
  kPairsSwapped,  // page ^ 1
  kNextSequence,  // the same page of the next sequence, cyclic
  kShortTable,    // a sequence's pages begin one page early for every sequence before it
  kLongTable,     // ... late
};

struct FetchChange {
  // Row r, column d of memory stand for row r - row_shift, column d - column_shift.
  std::int32_t row_shift = 0, column_shift = 0;
  Beyond beyond = Beyond::kMemory;
  bool of_other = false;  // it is read from the buffer of v for k, of k for v
  TileOrder order = TileOrder::kRight;
  std::int32_t tile_step = 0;  // rows from one tile to the next; 0: those of a tile
  HeadMap head = HeadMap::kRight;
  bool batch_zero = false;
  StrideSet strides = StrideSet::kRight;
  std::int32_t tiles_late = 0;      // tile t holds tile t - tiles_late
  Before outside = Before::kRight;  // what a tile holds for which there is no such tile
  TileRead tile;
  Narrow type = Narrow::kNone;  // elements are rounded to it
  bool late_in_loop = false;  // there are no other tiles than those that the loop of a split visits
  PageMap pages = PageMap::kRight;
  std::int32_t page_rows = 0;
  bool batch_in_heads = false;   // block number / batches is the head, and the rest the batch
  std::int32_t loaded_rows = 0;  // of a tile; the others hold 0. 0: all
  std::int32_t loaded_of = 0;    // rows loaded are of every loaded_of rows, not of a tile
  std::int32_t unloaded_late =
      0;  // the others hold the rows of the tile this many before, if there is one
  // scaled_columns columns, from column first_scaled on, are multiplied by column_scale.
  std::int32_t first_scaled = 0, scaled_columns = 0;
  double column_scale = 1;
  bool operator==(const FetchChange&) const = default;
};

// ---- logits -----------------------------------------------------------------------------------

enum class SoftcapChange : std::uint8_t {
  kRight,
  kMissing,
  kTimesTanh,            // s * tanh(s)
  kNotMultiplied,        // tanh(s / softcap)
  kAfterMask,            // masked scores become -softcap
  kScoreTimesTanh,       // s * tanh(s / softcap)
  kAfterMaskBeforeBias,  // masked scores become -softcap, + bias_factor * bias
};

// A bias that nobody asked for, added to the score of a key.
enum class DistanceBias : std::uint8_t {
  kNone,
  kKeyMinusQuery,
  kMinusDistance,  // -|key - query|
  kKey,
};
// The factor of that bias: 2^(-8 (head + 1) / heads), 2^-(head + 1), 1.
enum class HeadSlopes : std::uint8_t { kAlibi, kHalves, kAlike };

// S = kappa * softmax_scale * q.k, capped, + bias_factor * bias
struct LogitsChange {
  std::int32_t first_column = 0;  // columns before it are not multiplied
  Narrow scaled_query =
      Narrow::kNone;  // q is multiplied by the scale, and rounded to it, before q.k
  double kappa = 1;
  double bias_factor = 1;
  bool bias_before_cap = false;
  SoftcapChange softcap = SoftcapChange::kRight;
  // Columns of q and k that are multiplied; 0: head_dim. Further ones are read from what lies next in memory.
  std::int32_t columns = 0;
  FragmentMap fragment = FragmentMap::kRight;  // of q.k
  Narrow type = Narrow::kNone;                 // q.k is rounded to it ...
  std::int32_t rounded_every = 0;              // ... after as many columns, 0: once
  Narrow scores = Narrow::kNone;               // S is rounded to it, after factor, bias and mask
  double offset = 0;                           // added to every score
  DistanceBias bias = DistanceBias::kNone;
  HeadSlopes slopes = HeadSlopes::kAlibi;
  double bias_slope = 1;
  double cap = 0;  // a softcap that nobody asked for, of the form `softcap`
  // q.k is added to the one at its place in the tile before.
  bool accumulates = false;
  bool operator==(const LogitsChange&) const = default;
};

// ---- mask -------------------------------------------------------------------------------------

enum class MaskRule : std::uint8_t {
  kRight,
  kMissing,
  kInverted,
  kOtherAlignment,
  kNoFirst,        // a window without its left end
  kNoLast,         // ... without its right end
  kEndsExchanged,  // window_left keys on the right, and the reverse
  kQueryInTile,    // the query's number within its tile is taken for its number
  kKeyInTile,      // ... the key's
  kBothInTile,
  kPackedQuery,  // query * group_size + the head's number in its group is taken for the query's
};
enum class MaskedTiles : std::uint8_t {
  kAll,
  kLastVisited,    // the mask is applied on the last tile of the loop only
  kAboveDiagonal,  // not on tiles that end before the last visible key of the query tile's last row
  kNotLastVisited,
  kFirstVisited,
  kNotFirstVisited,
  kLastOfRow,       // on the last tile that all splits together visit
  kSameNumber,      // on the tile with the query tile's number only
  kLastOfSequence,  // on the last tile of the sequence, whether or not it is visited
  kFirstOfSequence,
};
// The KV tiles that are visited for a query tile.
enum class TileLoop : std::uint8_t {
  kAll,
  kBounded,      // those in which some row of the query tile sees a key
  kFirstRow,     // the end is that of the query tile's first row
  kRoundedDown,  // the end is rounded down to whole tiles
  kOneLess,      // the last is left out
  kLastRow,      // the beginning is that of the query tile's last row
  kSquare,       // up to the tile with the query tile's number
};
// Keys past the end of the sequence, up to the tile's edge.
enum class Padding : std::uint8_t {
  kNotCounted,
  kZeros,  // score 0, v = 0
  kStale,  // the keys that were there in the tile before
  kLast,   // the last key again
  kFirst,  // the first keys again
  kNext,   // the rows that follow in memory: those of the next head or sequence
};

struct MaskChange {
  MaskRule rule = MaskRule::kRight;
  std::int32_t first_shift = 0, last_shift = 0;  // added to the first and the last key it sees
  MaskedTiles masked_tiles = MaskedTiles::kAll;
  std::int32_t masked_run = 1;  // how many tiles "the first" and "the last" are
  TileLoop loop = TileLoop::kAll;
  Padding padding = Padding::kNotCounted;
  bool boundary_key_twice = false;  // the first key of the next tile counts in this one too ...
  bool boundary_of_split = false;   // ... if that is another split's
  double masked_score =
      -std::numeric_limits<double>::infinity();  // of masked keys in visited tiles
  // Without a mask query i sees keys 0..i + reach, padding as well; -1: all.
  std::int32_t reach = -1;
  std::int32_t tile_left_out = 0;  // of the loop of every split: 1: the first, -1: the last
  std::int32_t tile_keys = 0;      // only the first keys of every tile count; 0: all
  std::int32_t tile_first = 0;     // the first tile_first keys of every tile do not count
  // The first keys_before and the last keys_behind of all keys do not count.
  std::int32_t keys_before = 0, keys_behind = 0;
  std::int32_t padded_keys = 0;  // how many keys past the end count; 0: all
  // Added to the last and the first key between which the loop over tiles runs.
  std::int32_t end_shift = 0, begin_shift = 0;
  // In runs of last_of keys: the last key it sees is rounded up to the last of its run; less than 0: down to the
  // last of the run before. first_of rounds the first key down to the first of its run; less than 0: up.
  std::int32_t last_of = 0, first_of = 0;
  std::int32_t query_of =
      0;  // every query has the mask of the first of its run of query_of; less than 0: of the last
  double masked_added = 0;  // if not 0, masked scores have it added and are not -inf
  RowChoice row;            // whose keys count
  FragmentMap fragment = FragmentMap::kRight;  // whose query and key are compared
  bool operator==(const MaskChange&) const = default;
};

}  // namespace attn_diag::reference
