// X-ray: what a kernel that can only be run, not tapped, makes of q and k.
//
// With v one-hot (v[j][d] = c where j = first + d, else 0) a column of o is c times the weight of one
// key: ceil(seqlen_k / head_dim_v) launches give the whole normalised P of every batch entry and head.
// With lse, S = ln P + lse; of these S the tensors m, l and P follow in the kernel's own tiles and frame.
// They hold what o's rounding leaves of it: TensorData::uncertainty says how much that is, cell by cell.
// docs/xray.md derives it.
//
// What is seen are the weights with which v enters o. A fault after P (a rescale, a merge of splits)
// shows as weights that are wrong tile by tile or split by split.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"

namespace attn_diag {

struct XrayOptions {
  std::function<void(int step, int steps, const std::string& what)> on_step;
  // For properties alone: take their limits from norms of q, k and v (reference/coarse_bounds.h), not from the
  // reference. Looser, and affordable at any size.
  bool coarse = false;
  // Bit p: Property p is tried.
  std::uint32_t properties = (1u << 10) - 1;
};

struct XrayResult {
  // o and lse as the kernel wrote them; S, m, l and P reconstructed. Its repetition says whether o and lse differ
  // between two runs: on a GPU of the same, on the host in another order of threads. Where rounding can
  // take them as far, that is a note.
  Capture capture;
  Comparison comparison;  // of the capture, with the reference
  int launches = 0;       // with one-hot v
  // Cells of S: seen with a value; seen to have no weight; too small to be seen.
  std::int64_t seen = 0, without_weight = 0, unknown = 0;
  double median_uncertainty = 0;  // of the cells of S that are seen
  // Rows whose weights are right up to a factor, but do not go with lse (or there is none): their S is
  // fixed by the reference's instead. A constant added to a row of S is not visible in o.
  std::int64_t rows_without_lse = 0;
  double least_sum = 0, largest_sum = 0;  // of the weights of a row that sees a key; should be 1

  bool agrees() const { return comparison.agrees(); }
};

// Examines the production kernel: gate and taps are ignored. Throws Error for what it does not support.
XrayResult xray(const Experiment& experiment, const XrayOptions& options);

// What holds of attention whatever the numbers, tried on a kernel. Each is one or a few runs, judged by
// the rounding bounds of both sides; what has to be the same to the bit is compared so.
enum class Property : std::uint8_t {
  kDoubledV,        // o of 2v is 2o
  kSumOfV,          // o of v1 + v2 is the sum of both
  kShiftedKeys,     // adding one vector to all keys changes lse by scale q.c, and o not at all
  kPermutedKeys,    // with v, o does not change
  kDuplicatedKeys,  // with v, o does not change, and lse grows by ln 2
  kConstantV,       // o is that constant
  kZeroQ,           // o is the mean of v over the visible keys, lse the log of their number
  kOtherHeads,      // a head's o does not depend on another head, or batch entry
  kOtherQueries,    // a row's o does not depend on another row of q
  kMaskedKeys,      // nor on keys it does not see
};
inline constexpr std::size_t kNumProperties = 10;

struct PropertyInfo {
  Property id;
  const char* name;       // "permuted-keys"
  const char* statement;  // what holds
  const char* meaning;    // what it means where it does not hold
};
const PropertyInfo& info(Property property);

struct PropertyResult {
  // kExplained: it does not hold, and only in rows in which another is broken that this would follow from.
  enum class Verdict : std::uint8_t { kHolds, kBroken, kNotTried, kExplained };
  Property property = Property::kDoubledV;
  Verdict verdict = Verdict::kNotTried;
  std::string why_not;                            // kNotTried
  Property explained_by = Property::kMaskedKeys;  // kExplained
  // By row (batch, head, query) of the case: 0 nothing was compared, 1 it holds, 2 it does not.
  std::vector<std::uint8_t> rows;
  std::int64_t compared = 0, broken = 0;
  double max_err_over_bound = 0;  // inf: a difference where none is allowed
  // The first cell where it does not hold.
  Tensor tensor = Tensor::kO;
  std::array<std::int64_t, 4> index{};  // batch, head, query, dim; lse has no dim
  double actual = 0, expected = 0;
};

// Where o or lse is NaN for these inputs, or moves between two runs by more than rounding, no property is tried: all
// of them say why in the same words.
std::vector<PropertyResult> check_properties(const Experiment& experiment,
                                             const XrayOptions& options);

}  // namespace attn_diag
