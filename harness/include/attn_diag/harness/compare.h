// Comparing: returns data, prints nothing.
//
// An element passes if err <= limit, written positively so that NaN never passes, unless the expected
// value is NaN itself (NaN inputs); where both sides are infinite they must have the same sign. limit is the reference's rounding bound, or atol +
// rtol*|expected|.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag {

struct Tolerance {
  bool use_bound = true;  // else atol, rtol
  double atol = 0.0, rtol = 0.0;
};

struct Mismatch {
  std::array<std::int64_t, 5> index{};  // absolute; the first info(tensor).rank are valid
  double actual = 0, expected = 0, limit = 0;
};

// A cell of the error picture: the largest err/limit over one (query tile, KV tile) of one head.
struct TileError {
  double max_err_over_bound = 0;
  std::int64_t mismatched = 0, compared = 0;
};

struct TensorComparison {
  Tensor tensor = Tensor::kS;
  std::int64_t compared = 0, mismatched = 0;
  std::int64_t nan_actual = 0;  // NaN where the expected value is not
  std::int64_t nan_both = 0;    // NaN where the expected value is NaN too: passes, told apart
  // Not among the compared: cells whose rounding bound is infinite (overflow, or NaN or infinity in
  // what they come from) and that do not equal what is expected.
  std::int64_t unjudged = 0;
  double max_abs_err = 0;           // over finite pairs
  double max_rel_err = 0;           // over finite pairs with expected != 0
  double max_err_over_bound = 0;    // +inf if an element cannot pass (NaN, wrong infinity, 0 bound)
  double max_ulp = 0;               // in the tensor's storage type
  double zeros_err_over_bound = 0;  // what an all-zeros tensor would have scored
  std::optional<Mismatch> first;    // lowest index
  std::optional<Mismatch> worst;    // largest err/limit
  std::array<std::int64_t, 5> max_abs_index{}, max_rel_index{};
  // Rows (batch, head, query) with a mismatch, lowest first, and how many cells of each.
  struct Row {
    std::int32_t batch, head, query;
    std::int64_t mismatched;
    double max_err_over_bound;
  };
  std::vector<Row> wrong_rows;
  // [batch][head][query tile][kv tile or 1], dense over the compared region's tiles.
  std::vector<TileError> picture;
  std::array<std::int64_t, 4> picture_shape{};

  bool agrees() const { return compared > 0 && mismatched == 0; }
};

struct Comparison {
  std::vector<TensorComparison> tensors;  // in pipeline order
  std::vector<std::string> notes;         // "the inputs differ: q" and the like
  bool agrees() const;                    // false if nothing was compared
};

// Against the fp64 reference, streamed by row block: no fp64 copy of the reference is made.
// Uses capture.isolated to choose the bound. Tensors the capture does not have are not compared.
Comparison compare_with_reference(const Capture& capture, const Tolerance& tolerance,
                                  int threads = 0);

// Two captures of the same problem and region. Each may be a rounding bound away from the exact
// value, so with use_bound the limit is twice the bound of `expected`. Throws Error where they cannot
// be compared: another problem, region or cut into tiles, a tensor that only one of them has.
Comparison compare_captures(const Capture& actual, const Capture& expected,
                            const Tolerance& tolerance);

// Two dumps, likewise, tensor by tensor in slabs of 1 MiB; memory does not grow with the tensors.
// Bounds are taken from /bound of the expected or else the actual file, or else computed from the
// expected file's inputs.
Comparison compare_dumps(const std::string& actual_path, const std::string& expected_path,
                         const Tolerance& tolerance);

}  // namespace attn_diag
