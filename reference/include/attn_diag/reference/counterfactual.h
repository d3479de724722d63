// What attention would compute if it had a known bug: for every bug of the catalogue
// (docs/catalogue.md) the formula of q, k and v that it leaves behind, in fp64, with the rounding
// bound of each number. A kernel whose output equals such a prediction within its bound, and differs
// from the right output, has that bug or one that is the same function of these inputs.
//
// A Hypothesis is one bug: a name, a statement, a citation, what to look for in the code. A Variant is
// a hypothesis with its parameters fixed (split 2, delta = 1, kappa = 0.125), or with one of them free,
// to be fitted. predict() evaluates rows under a variant; combine() makes the variant of a kernel with
// both bugs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"
#include "attn_diag/reference/deviation.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag::reference {

// What a caller's formula has beyond Problem; none of our kernels does.
struct Extras {
  // Added to the scaled scores before the mask: dense [batch or 1][heads or 1][seqlen_q][seqlen_k].
  std::vector<float> bias;
  std::int32_t bias_batch = 1, bias_heads = 1;
  // Scaled scores become softcap * tanh(score / softcap), before the bias is added; 0: not.
  double softcap = 0;
};

// A stage tensor as a kernel recorded it, whole: dense row-major over its logical shape (stage.h).
// Where the inputs of a stage are given, predictions start from them.
struct GivenTensor {
  Tensor id = Tensor::kS;  // S, m, l, P or partial_o
  std::vector<float> values;
};

// Everything a prediction reads, widened once and kept in memory order. Copies share the data.
class PredictionInputs {
 public:
  // Throws std::invalid_argument where they do not fit together.
  PredictionInputs(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
                   const Inputs& inputs, Extras extras = {}, std::vector<GivenTensor> given = {});

  const Problem& problem() const;
  const Geometry& geometry() const;
  const Arithmetic& arithmetic() const;
  // This data cut into other tiles and splits. Given tensors are dropped.
  PredictionInputs with_geometry(const Geometry& geometry) const;

  struct Data;  // reference/counterfactual/prediction_inputs_data.h
  const Data& data() const { return *x_data; }

 private:
  std::shared_ptr<const Data> x_data;
};

// The order of the catalogue's chapters, and of the pipeline.
enum class Family : std::uint8_t {
  kLogits,      // temperature, bias, columns of q.k
  kMask,        // which keys count, empty rows, padding
  kFetch,       // which elements of q, k, v are read: strides, heads, stale or transposed tiles
  kSoftmax,     // max and sum of a row, exp, precision
  kPv,          // P.V and its fragments
  kRecurrence,  // rescale from tile to tile
  kCombine,     // merge of splits
  kFinish,      // division by l, gain, lse
  kStore,       // where and whether o is written
};
inline constexpr std::size_t kNumFamilies = 9;
std::string_view name(Family family);

struct HypothesisInfo {
  std::string_view id;         // "alpha-missing-o": stable, kebab-case
  std::string_view statement;  // "the accumulator is not rescaled when the row max grows"
  std::string_view formula;    // of the catalogue: "F13"
  Family family = Family::kLogits;
  Stage stage = Stage::kQk;                  // the first stage whose tensors it changes
  std::vector<std::string_view> parameters;  // names of what it fits; may be empty
  std::string_view citation;  // where it was seen: "flash-attention#991"; may be empty
  std::string_view remedy;    // what to look for in the code
  bool needs_tiles = false;   // the prediction depends on tile sizes
  bool needs_splits = false;  // the prediction depends on num_splits
};

struct ParameterValue {
  std::string_view name;  // "kappa"
  double value = 0;
  std::string named;    // "softmax_scale": what the value is, where it is a known one
  bool choice = false;  // one of a few names: the number is but their count
};

// A parameter that is not fixed yet.
struct FreeParameter {
  std::string_view name;
  double low = 0, high = 0;           // where to search; both > 0 means by orders of magnitude
  std::vector<double> starts;         // where to begin
  std::vector<ParameterValue> named;  // known values of it in this case, to snap to
};

class Hypothesis;

struct Variant {
  // The hypotheses of which it is made: one, or two for a pair.
  std::vector<const Hypothesis*> hypotheses;
  std::vector<ParameterValue> parameters;
  Deviation deviation;
  std::optional<FreeParameter> free;
  // false: one of many alike, not worth trying with every other bug.
  bool in_pairs = true;
  std::string where = {};  // the place of the deviation in words; empty: everywhere

  // The variant with its free parameter fixed. Without a free one: the variant itself.
  Variant at(double value, std::string named = {}) const;
  // "temperature(kappa = softmax_scale)"
  std::string label() const;
};

class Hypothesis {
 public:
  virtual ~Hypothesis() = default;
  virtual const HypothesisInfo& info() const = 0;
  // Every variant worth trying on a case; empty where the bug cannot be there (one split, no mask).
  // Variants that equal the right formula on the case's geometry are left out.
  virtual std::vector<Variant> variants(const PredictionInputs& c) const = 0;
  // Sets the free parameter of `variant` in its deviation.
  virtual void set(Deviation& deviation, double value) const = 0;
};

// The variant on some tiles or in some rows alone. None where it cannot be: of tiles, only what is made of a tile
// alone can be on some of them, that is what is read of q, k and v, scores, mask and P V.
std::optional<Variant> in_place(const Variant& variant, const NamedPlace& place);

// Every known bug, in the order of the catalogue. Lives as long as the program.
const std::vector<const Hypothesis*>& catalogue();
// Null if there is none of that id.
const Hypothesis* find_hypothesis(std::string_view id);

// The variant of a kernel that has both bugs. None where they are variants of one hypothesis or exclude
// each other (both set the same thing), or either still has a free parameter and so has the other.
std::optional<Variant> combine(const Variant& a, const Variant& b);
// Every field of both that is not at its default; none where both set one field.
std::optional<Deviation> unite(const Deviation& a, const Deviation& b);

// Predicted numbers of some rows: dense [row][cells per row]. A cell that the bug leaves unwritten, or
// whose value the formula cannot know (what stood in memory before), has `known` 0: its value is judged by
// nobody. Where the bug leaves it unwritten, `unwritten` is 1 too.
struct Prediction {
  struct Values {
    std::vector<double> value, bound;
    std::vector<std::uint8_t> known, unwritten;
  };
  std::array<Values, kNumTensors> tensor;  // filled where wanted and defined for the geometry

  Values& operator[](Tensor t) { return tensor[static_cast<std::size_t>(t)]; }
  const Values& operator[](Tensor t) const { return tensor[static_cast<std::size_t>(t)]; }
};

// Evaluates rows under a deviation; Deviation{} gives the right numbers. `tensors`: bit t for Tensor t;
// what is not wanted is not stored. Thread-safe; uses the calling thread alone. Reuses out's memory.
//
// The bound of a number is that of rounding in arithmetic() to first order, carried through the
// deviation's own formula: a weight P_j is off by P_j (e_S + e_m + rho(m - S_j) + u |m - S_j| + r), with r
// for rescaling from tile to tile and split to split, u_probs and gamma_n where it multiplies V
// (docs/bounds.md has e_S, rho and gamma; e_S is taken from |q||k|). The bound of NaN says nothing. Where an
// exponent may be off by more than 1/2, first order is not enough, and the bound is beyond any number.
//
// A given m, l or partial_o is its own prediction; where S is given, so is S. From given S or P what comes
// before has no say.
void predict(const PredictionInputs& c, std::span<const RowIndex> rows, const Deviation& deviation,
             std::uint32_t tensors, Prediction& out);

}  // namespace attn_diag::reference
