// Comparing: returns data, prints nothing.
//
// An element passes if err <= limit, written positively so that NaN never passes, unless the expected
// value is NaN itself (NaN inputs); where both sides are infinite they must have the same sign. limit is
// the reference's rounding bound, or atol + rtol*|expected|. An element that cannot fail, because its
// bound is infinite, is not judged, whatever it is: not even where it happens to equal what is expected.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/kernels/stage.h"
#include "attn_diag/reference/counterfactual.h"

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

// What a comparison says, of a tensor, a row, a stage or a whole case. Every command's verdict and exit code
// come from here.
enum class Answer : std::uint8_t {
  kAgrees,     // as far as cells were judged: reports say beside it how far that is
  kDiverges,   // a judged cell is wrong
  kNotJudged,  // no cell was judged: neither right nor wrong
};
constexpr Answer answer_of(std::int64_t judged, std::int64_t mismatched) {
  return mismatched > 0 ? Answer::kDiverges : judged > 0 ? Answer::kAgrees : Answer::kNotJudged;
}

struct TensorComparison {
  Tensor tensor = Tensor::kS;
  std::int64_t compared = 0, mismatched = 0;  // cells that were judged, and those that are wrong
  std::int64_t nan_actual = 0;                // NaN where the expected value is not
  std::int64_t nan_both = 0;  // NaN where the expected value is NaN too: passes, told apart
  // Not among the compared: cells whose rounding bound is infinite (overflow, or NaN or infinity in
  // what they come from).
  std::int64_t unjudged = 0;
  double max_abs_err = 0;         // over finite pairs
  double max_rel_err = 0;         // over finite pairs with expected != 0
  double max_err_over_bound = 0;  // +inf if an element cannot pass (NaN, wrong infinity, 0 bound)
  double max_ulp = 0;  // in the storage type, of cells whose bound leaves half its digits
  double zeros_err_over_bound = 0;  // what an all-zeros tensor would have scored
  bool by_bound = true;             // Tolerance::use_bound; else who compares said what is allowed
  std::optional<Mismatch> first;    // lowest index
  std::optional<Mismatch> worst;    // largest err/limit
  std::array<std::int64_t, 5> max_abs_index{}, max_rel_index{};
  // Rows (batch, head, query) with a mismatch, lowest first, and how many cells of each.
  struct WrongRow {
    std::int32_t batch, head, query;
    std::int64_t mismatched;
    double max_err_over_bound;
  };
  std::vector<WrongRow> wrong_rows;
  // [batch][head][query tile][kv tile or 1], dense over the compared region's tiles.
  std::vector<TileError> picture;
  std::array<std::int64_t, 4> picture_shape{};

  Answer answer() const { return answer_of(compared, mismatched); }
  bool agrees() const { return answer() == Answer::kAgrees; }
};

// Whether it agrees, and zeros would as well, though not all that was expected are zeros: it shows nothing.
bool lets_zeros_pass(const TensorComparison& tensor);

struct Comparison {
  std::vector<TensorComparison> tensors;  // in pipeline order
  std::vector<std::string> notes;         // "the inputs differ: q" and the like
  std::string unjudged_because;  // why cells have no bound; empty where every cell was judged
  // After a sample of rows: an invariant that other rows break, in the words of broken_invariants(). Then this
  // diverges.
  std::string broken_elsewhere;

  // kNotJudged where no cell of any tensor was judged, or o is there and none of its cells was, or so much is allowed
  // that an o of zeros would agree where zeros are wrong: what S says is no verdict on the output.
  Answer answer() const;
  bool agrees() const { return answer() == Answer::kAgrees; }
  std::int64_t judged() const, unjudged() const, mismatched() const;  // cells
};

// For kNotJudged: "none of the 256 elements of o can be judged, having no bound: NaN or infinity in q, k or v
// reaches them".
std::string why_not_judged(const Comparison& comparison);

// The answer for a run. A cell that was not written once, an input that was written, or a second run that differs
// by more than rounding is a divergence too, whatever the comparison says.
Answer answer_of(const Capture& capture, const Comparison& comparison);

// Against the fp64 reference, streamed by row block: no fp64 copy of the reference is made.
// Uses capture.isolated to choose the bound. Tensors the capture does not have are not compared.
Comparison compare_with_reference(const Capture& capture, const Tolerance& tolerance,
                                  int threads = 0);
// For a formula that has more than Problem: a bias, a softcap. Compares o and lse, whole.
Comparison compare_with_reference(const Capture& capture, const reference::Extras& extras,
                                  const Tolerance& tolerance, int threads = 0);

// Two captures of the same problem and region. Each may be a rounding bound away from the exact
// value, so with use_bound the limit is twice the bound of `expected`. Throws Error where they cannot
// be compared: another problem, region or cut into tiles, a tensor that only one of them has.
Comparison compare_captures(const Capture& actual, const Capture& expected,
                            const Tolerance& tolerance);

// As above, for two dumps: tensor by tensor in slabs of 1 MiB, so that memory does not grow with the tensors.
// Bounds are taken from /bound of the expected or else the actual file, or else computed from the
// expected file's inputs.
Comparison compare_dumps(const std::string& actual_path, const std::string& expected_path,
                         const Tolerance& tolerance);

}  // namespace attn_diag
