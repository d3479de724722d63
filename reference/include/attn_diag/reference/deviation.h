// How a kernel's formula differs from attention's: plain data, one part per step of the pipeline.
// Every field at its default is the right formula. Bugs of different fields can be set together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "attn_diag/reference/deviation_inputs.h"
#include "attn_diag/reference/place.h"

namespace attn_diag::reference {
// ---- softmax ----------------------------------------------------------------------------------

enum class EmptyRow : std::uint8_t {
  kZero,
  kNan,   // exp(-inf - -inf), wherever a row sees no key in a visited tile and those before it
  kMean,  // the mean of v over the visited keys
  kMeanPadded,  // ... with padding counted
  kNanOfSplit,  // 0 / 0, where a row sees no key in a split
  kNanOfRow,    // 0 / 0, where no key counts at all
};
// e^x as 2^n times a polynomial of what remains, or by a limit.
enum class ExpKind : std::uint8_t {
  kRight,
  kLinear,          // 2^f = 1 + f, f of [0, 1)
  kTaylor1,         // e^r = 1 + r, r of [0, ln 2)
  kTaylor2,         // ... + r^2 / 2
  kTaylor3,         // ... + r^3 / 6
  kTaylor1Nearest,  // 1 + r, r of [-ln 2 / 2, ln 2 / 2)
  kTaylor2Nearest,
  kTaylor3Nearest,
  kQuadratic,  // 2^f = 1 + f - c f (1 - f)
  kLimit,      // (1 + x / c)^c
};
// Where an exponential is taken; sums of these.
enum ExpPlace : std::uint8_t {
  kExpOfProbs = 1,
  kExpOfAlpha = 2,  // from KV tile to KV tile
  kExpOfMerge = 4,  // from split to split
};
// Which lane holds key j of a tile.
enum class LaneMap : std::uint8_t {
  kNone,
  kInterleaved,  // j % lanes
  kBlocked,      // j / (block_n / lanes)
  kQuad,         // j % 8 / 2: lanes that share a row of an MMA accumulator
  kPairs,        // j / 2 % lanes
  kGroups,       // of the 32 lanes of a warp, which hold key j % 32: j % 32 / (32 / lanes)
  kTiles,        // all keys of a tile: the tile's number % lanes
};
inline constexpr std::int32_t kLanesOfWarp = 32;

// What the running max is made of.
enum class RunningMax : std::uint8_t {
  kRight,
  kFirstTile,  // that of the first tile with a key stays
  kOwnTile,    // that of the tile before is forgotten
};

// A reduction that should stay within one row runs over several: those whose numbers differ in `bits` only, or
// groups of `rows`.
struct MixedRows {
  std::int32_t bits = 0, rows = 0;
  bool max = false, sum = false;
  double times = 1;  // of the sum: a row's own is counted that many times
  bool present() const { return max || sum; }
  bool operator==(const MixedRows&) const = default;
};

struct SoftmaxChange {
  EmptyRow empty = EmptyRow::kZero;
  double m_floor = -std::numeric_limits<double>::infinity();  // m = max(m_floor, m)
  ExpKind exp = ExpKind::kRight;
  double exp_c = 0;  // c of `exp`
  // l (and o) is summed per lane relative to the lane's own max, and merged without rescaling.
  LaneMap lanes = LaneMap::kNone;
  std::int32_t num_lanes = 0;
  bool lanes_keep_max = false;  // a lane's max is over the split, not over the tile
  bool lanes_o = false;         // o too
  // m and l are reduced over these rows of the query tile.
  MixedRows mixed;
  Narrow probs = Narrow::kNone;
  bool sum_of_narrow = false;  // l sums P as rounded to `probs`
  bool l_counts_masked = false, o_counts_masked = false;
  // exp(x) is `exp` of exp_factor x, in these places; elsewhere it is right.
  double exp_factor = 1;
  std::uint8_t exp_places = kExpOfProbs;
  double flush_below = 0;  // smaller P are 0 in P V
  bool flush_l = false;    // ... and in l
  // A lane's m is the max over itself and the lanes after it, in this tile and those before; the P of its keys, and
  // alpha and l of its columns of o, are relative to that. What is recorded is lane 0's.
  LaneMap max_lanes = LaneMap::kNone;
  std::int32_t num_max_lanes = 0;
  bool max_lanes_sum = false;    // the sum over the lanes is in lane 0 only, too
  std::int32_t max_steps = -1;   // of a butterfly for the max, as LaneSum::kButterfly; -1: none
  bool max_lanes_alpha = false;  // only alpha of o uses the lane's max: P and l are right
  RunningMax running_max = RunningMax::kRight;
  Narrow max_type = Narrow::kNone;  // m is rounded to it
  RowChoice max_row;                // P is relative to the m of that row
  bool operator==(const SoftmaxChange&) const = default;
};

// ---- pv ---------------------------------------------------------------------------------------

struct PvChange {
  RowChoice row;                   // whose P is multiplied
  Narrow type = Narrow::kNone;     // a tile's product is rounded to it ...
  std::int32_t rounded_every = 0;  // ... after this many keys; 0: once
  bool probs_late = false;         // P of the visited tile before; the first has its own
  FragmentMap probs = FragmentMap::kRight;
  double factor = 1;           // of every tile's product
  std::int32_t staircase = 0;  // columns of block c of 16 are added min(c + 1, staircase) times
  bool accumulates = false;    // a tile's product is added to that of the tile before
  bool operator==(const PvChange&) const = default;
};

// ---- recurrence -------------------------------------------------------------------------------

// exp(from - to), by which sums in the frame `from` are carried over to the frame `to`.
enum class Rescale : std::uint8_t { kRight, kMissing, kInverted, kZero };
enum class Normalise : std::uint8_t {
  kAtEnd,
  kTileSum,           // every tile's product is divided by its own l
  kRunningSum,        // the accumulator is divided by the running l after every tile
  kTileByRunningSum,  // every tile's product is divided by the running l
};
// What the state of a query tile begins with.
// Sums of these.
enum CarryOver : std::uint8_t { kCarryNothing = 0, kCarryM = 1, kCarryL = 2, kCarryO = 4 };
// In which order a block takes its work items: the query tiles of a head, or a query tile of all heads.
enum class ItemOrder : std::uint8_t { kTiles, kTilesReversed, kHeads };
enum class TileChoice : std::uint8_t { kAll, kOne, kFrom, kOdd, kEven, kLast, kNotLast };
// The tiles of the loop on which a bug shows; the visited ones are numbered.
struct SomeTiles {
  TileChoice choice = TileChoice::kAll;
  std::int32_t tile = -1;  // of kOne and kFrom
  bool hold(std::int32_t number, bool is_last) const {
    switch (choice) {
      case TileChoice::kOne:
        return number == tile;
      case TileChoice::kFrom:
        return number >= tile;
      case TileChoice::kOdd:
        return number % 2 != 0;
      case TileChoice::kEven:
        return number % 2 == 0;
      case TileChoice::kLast:
        return is_last;
      case TileChoice::kNotLast:
        return !is_last;
      case TileChoice::kAll:
        break;
    }
    return true;
  }
  bool operator==(const SomeTiles&) const = default;
};
// The alpha of a row in a group that shares it.
enum class GroupAlpha : std::uint8_t {
  kOwn,
  kLargest,  // the largest alpha of the group
  kAllRise,  // a row's own; 1 unless the max rises in all rows of the group
};
// Columns of o or rows of the query tile: those with (index / size) % 2 == `odd`; size 0: all.
struct Half {
  std::int32_t size = 0;
  bool odd = false;
  bool holds(std::int64_t index) const { return size == 0 || (index / size % 2 != 0) == odd; }
  bool operator==(const Half&) const = default;
};

// From KV tile to KV tile: sum = alpha * sum + beta * tile.
struct RecurrenceChange {
  double alpha_power_l = 1, alpha_power_o = 1;      // alpha^power for alpha
  bool alpha_late_l = false, alpha_late_o = false;  // alpha of the visited tile before ...
  double first_alpha = 0;                           // ... which is this for the first one
  // P is relative to the max before the tile; on the first tile, to its own.
  bool previous_frame_l = false, previous_frame_o = false;
  Narrow sum = Narrow::kNone;  // l is rounded to it after every tile
  // Within the sequence, a split also visits the first `tiles_after` tiles of the next split (less than 0: it
  // leaves out that many of its own last ones) and the last `tiles_before` of the one before.
  std::int32_t tiles_after = 0, tiles_before = 0;
  Rescale alpha_l = Rescale::kRight, alpha_o = Rescale::kRight;
  SomeTiles alpha_tiles;            // where alpha is wrong
  Half alpha_columns, alpha_rows;   // ... for these columns of o, in these rows of the query tile
  std::int32_t carried_column = 0;  // 4: only columns 0, 4, 8 ... are carried from tile to tile
  // o = alpha * (o + P V), and l alike; the alpha of the first tile is first_alpha.
  bool alpha_after = false, alpha_after_l = false;
  bool alpha_times_l = false;                 // o = alpha l o + P V
  double skip_below = 0;                      // alpha = 1 where the max rises by less
  bool skip_l = false, skip_o = true;         // of which sums
  bool skip_alpha = true, skip_beta = false;  // of alpha, and P is relative to the old max there
  // P is relative to the tile's own max and not rescaled, on these tiles.
  bool tile_frame_l = false, tile_frame_o = false;
  SomeTiles frame_tiles;
  double tile_l_times = 1;  // l of a tile is multiplied by it, on these
  SomeTiles tile_l_tiles;
  Normalise normalise = Normalise::kAtEnd;
  SomeTiles normalised_tiles;  // on which it is normalised so
  std::uint8_t carry_over = kCarryNothing;
  RowChoice alpha_row;
  bool alpha_row_l = false, alpha_row_o = true;  // of which sums
  bool alpha_row_decides = false;  // alpha is the row's own, and 1 where the max of that row stays
  MixedRows alpha_group;           // rows that share alpha, and for which sums
  GroupAlpha group_alpha = GroupAlpha::kOwn;
  Narrow alpha_type = Narrow::kNone;  // alpha is rounded to it
  bool alpha_type_l = true, alpha_type_o = true;
  Narrow accumulator = Narrow::kNone;  // o is rounded to it after every tile
  std::int32_t carry_distance = 1;     // of `carry_over`, in work items
  ItemOrder carry_order = ItemOrder::kTiles;
  bool tile_of_sequence = false;  // alpha_tiles counts all KV tiles, not those the loop visits
  bool skip_keeps_m = false;      // where alpha is skipped, m stays what it was
  bool skip_old_probs = false;    // ... and P is relative to the max before any tile but the first
  double first_l = 0;  // l begins with it (m with m_floor), and the first tile does not rescale it
  // The tile that the loop of every split visits twice. 1: the first, -1: the last.
  std::int32_t tile_twice = 0;
  double tile_sinks = 0;  // every visited tile counts this many more keys of score 0 and v = 0
  bool operator==(const RecurrenceChange&) const = default;
};

// ---- combine ----------------------------------------------------------------------------------

// Which split's, head's, batch's or row's partial is read for one.
enum class PartialMap : std::uint8_t {
  kRight,
  kFirstSplit,
  kNextSplit,
  kReversedSplits,
  kFirstHead,
  kFirstBatch,
  kFirstRow,    // of the query tile
  kFirstQuery,  // query 0
  kNextHead,    // cyclic, as the following
  kNextBatch,
  kNextQuery,
  kPreviousHead,
  kPreviousBatch,
  kPreviousQuery,
  kReversedHeads,
  kReversedBatches,
  kReversedQueries,
  kLastHead,
  kLastBatch,
  kLastQuery,
  kKvHead,           // head / group_size
  kHeadModulo,       // head % kv_heads
  kHeadOfGroup,      // the first of the head's group
  kHeadPairs,        // head ^ 1
  kQueryPairs,       // query ^ 1
  kQueryOfFragment,  // query ^ 8
  kSplits,           // split n is read from CombineChange::split_map[n]
};
// The order of axes in the memory between the two kernels: batch, head, query, split.
enum class PartialOrder : std::uint8_t {
  kBhqn,
  kBhnq,
  kBnhq,
  kNbhq,
  kHbqn,
  kHbnq,
  kBqhn,
  kQbhn,
  kNbqh,
  kNhbq,
  kBqnh,
};
// Splits with o = 0 and the lse extra_lse.
enum class ExtraSplit : std::uint8_t {
  kNone,
  kEmpty,      // one more
  kEachEmpty,  // every split in which the row sees no key
};

// The merged lse, where l is the denominator of o.
enum class MergedLse : std::uint8_t {
  kOfSums,     // m + ln l
  kRight,      // it is computed apart
  kOverBase,   // (max_factor m + ln l) / max_factor
  kOfLargest,  // relative to the largest lse of a split: max_n L_n + ln l'
  kOfWeights,  // max_factor m + ln l
};

// Splits whose weights can each be multiplied by a factor of its own.
inline constexpr std::size_t kWeightedSplits = 8;
using SplitFactors = std::array<double, kWeightedSplits>;
inline constexpr SplitFactors kRightFactors = {1, 1, 1, 1, 1, 1, 1, 1};

// How the merge takes split after split: sums in the frame of the highest m so far, or an o that is divided
// by the l so far.
enum class OnlineMerge : std::uint8_t { kNone, kSums, kDivided };

// o = sum_n w_n A_n l_n^o_power / sum_n w_n l_n^l_power, w_n = exp(max_factor (m_n - m))
struct CombineChange {
  double max_factor = 1, o_power = 0, l_power = 1;
  // If not 0, these hold only for splits n whose bit 2^n is set, with w_n = exp(max_factor m_n - m). Others are right.
  std::uint32_t only_splits = 0;
  bool max_factor_o = true,
       max_factor_l = true;  // of which sum's weights; those of the other are right
  // alpha brings the sums so far to the frame of all splits so far, beta the sums of the split.
  OnlineMerge online = OnlineMerge::kNone;
  Rescale alpha_o = Rescale::kRight, alpha_l = Rescale::kRight;
  Rescale beta_o = Rescale::kRight, beta_l = Rescale::kRight;
  std::int32_t scaled_split = -1;  // the split whose weight is multiplied by `factor`; -1: none
  double factor = 1;
  std::int32_t only_split = -1;  // all others are left out
  MergedLse lse = MergedLse::kOfSums;
  bool max_of_counted = false;  // m is that of the splits that are not left out
  PartialMap map = PartialMap::kRight;
  std::array<std::uint8_t, kWeightedSplits> split_map = {};
  // The extents used to compute where it is read; 0: the right ones.
  std::int32_t read_splits = 0, read_queries = 0, read_heads = 0;
  std::int32_t read_shift = 0;  // ... and this far behind
  bool map_o_only = false;      // m and l are read right
  ExtraSplit extra = ExtraSplit::kNone;
  double extra_lse = 0;
  std::int32_t stale_split = -1;         // the o of the extra split is that of this one; -1: 0
  bool stale_divided = false;            // ... divided by its l
  bool nan_of_infinite = false;          // an infinite lse gives inf - inf
  double sinks = 0;                      // that many keys of score 0 and v = 0 are counted
  bool sinks_of_splits = false;          // ... for every split with a key for the row
  Narrow partial = Narrow::kNone;        // accumulators are rounded to it before the merge ...
  bool partial_divided = false;          // ... after they were divided by l
  Narrow partial_lse = Narrow::kNone;    // so is m + ln l
  Narrow partial_l = Narrow::kNone;      // so is l
  Narrow partial_m = Narrow::kNone;      // so is m
  SplitFactors factors = kRightFactors;  // of the weights of the first splits, besides `factor`
  bool skips_zero_l = false;  // a split whose l is 0 has no weight, whatever its accumulator
  // The order in which partials are written, and in which they are read.
  PartialOrder written = PartialOrder::kBhqn, read = PartialOrder::kBhqn;
  bool map_sums_only = false;  // m and l are those of another partial, o is its own
  // `factors` and `factor` are in the sum of o only, or in that of l only.
  bool factors_o_only = false, factors_l_only = false;
  bool operator==(const CombineChange&) const = default;
};

// ---- finish -----------------------------------------------------------------------------------

enum class LseForm : std::uint8_t {
  kRight,
  kBase2,        // lse * log2 e
  kTimesLn2,     // lse * ln 2
  kWithoutMax,   // ln l
  kWithoutLog,   // m
  kLogOfBase2,   // m + log2 l
  kSum,          // m + l
  kMaxUnscaled,  // m / softmax_scale + ln l
  kMaxTwice,     // m * softmax_scale + ln l
  kNegated,      // ln l - m
  kMaxOfBase2,   // m log2 e + ln l
  kMaxTimesLn2,  // m ln 2 + ln l
  kLogTimesLn2,  // m + ln 2 ln l
  // For rows that see no key; the others are right.
  kEmptyInfinite,
  kEmptyZero,
  kEmptyNan,
  kEmptyLowest,  // the largest negative number of fp32
};
// What goes wrong where each lane sums alone and the sums are then added over the lanes of a row: lane d % lanes
// divides column d.
enum class LaneSum : std::uint8_t {
  kRight,
  kOwn,          // no reduction at all
  kShuffleDown,  // the sum is right in lane 0 only
  kButterfly,  // of its steps only those in `lane_steps` are done: lane i has the sum over the lanes
               // whose numbers differ from i in these bits
};

// What the accumulator is divided by.
enum class Divisor : std::uint8_t { kL, kLse, kExpOfLse, kM, kExpOfM, kLogOfL, kLTimesM, kLPlusM };

// o = gain * accumulator / (l_factor l + l_added)^l_power
struct FinishChange {
  Narrow o_type = Narrow::kNone, lse_type = Narrow::kNone;  // rounded to it before they are stored
  double gain = 1;
  double l_power = 1, l_factor = 1, l_added = 0;
  Divisor divisor = Divisor::kL;
  Narrow inverse_type = Narrow::kNone;  // 1 / l is rounded to it
  Half columns, rows;  // the changes to o are in these columns and rows of the query tile only
  RowChoice l_row;
  bool l_row_lse = false, m_row_lse = false;  // lse uses that row's l, that row's m
  LaneSum lane_sum = LaneSum::kRight;
  LaneMap lane_map = LaneMap::kInterleaved;  // of keys and of columns
  std::int32_t lanes = 32, lane_steps = 0;
  bool lane_sum_in_loop = false;  // every tile's l is that of lane 0, too
  bool lse_of_lane = false;       // lse is made of l of lane 0
  LseForm lse = LseForm::kRight;
  bool lane_guard = false;  // a lane whose sum is 0 divides by nothing: o = 0
  // Lane n of the merge holds the l of split n, weighted, and lanes without a split hold 0.
  bool lanes_of_splits = false;
  // After the loop, l (and m, with o and l brought to it) is reduced over these rows.
  MixedRows mixed;
  bool operator==(const FinishChange&) const = default;
};

// ---- store ------------------------------------------------------------------------------------

// What stands where nothing is written.
enum class Unwritten : std::uint8_t {
  kUnknown,
  kZero,
  kOfRowBefore,  // rows that no warp has: what the row before them left in its registers
};

// The row whose lse stands in a row's place.
enum class LsePlace : std::uint8_t {
  kRight,
  kOtherOrder,  // it is written as (batch, query, head)
  kNextRow,     // the row after it: lse is written a row early
  kRowBefore,
};

struct StoreChange {
  LsePlace lse = LsePlace::kRight;
  std::int32_t row_shift = 0;                  // row r of o is written to row r + row_shift
  std::int32_t first_column = 0;               // columns before it are not written
  FragmentMap fragment = FragmentMap::kRight;  // of o
  bool other_layout = false;
  HeadMap head = HeadMap::kRight;
  bool batch_zero = false;
  std::int32_t columns = 0;     // only these are written; 0: all
  std::int32_t rows_owned = 0;  // rows of a query tile that some warp writes; 0: all
  Unwritten unwritten = Unwritten::kUnknown;
  bool batch_in_heads = false;   // as FetchChange has it
  IndexMap row_map, column_map;  // row r of a query tile, column c hold those these map to
  std::int32_t owned_of = 0;     // rows_owned are of every owned_of rows, not of a tile
  // Rows of a query tile that nobody writes, from the first one on.
  std::int32_t unowned_first = 0, unowned_rows = 0;
  bool whole_tiles = false;  // a last query tile that is not full is not written
  bool operator==(const StoreChange&) const = default;
};

struct Deviation {
  FetchChange q, k, v;
  LogitsChange logits;
  MaskChange mask;
  SoftmaxChange softmax;
  PvChange pv;
  RecurrenceChange recurrence;
  CombineChange combine;
  FinishChange finish;
  StoreChange store;
  // Where these changes hold: on these tiles those to q.k, the mask and P V of a tile; in these rows all changes.
  Place place;
  bool operator==(const Deviation&) const = default;
};

}  // namespace attn_diag::reference
