// What the numbers of a kernel are, in terms of attention: read off the graph of how they were made.
//
// An element of q times the one of k in the same column is a part of a score; such parts add up to a score; a score
// less a number, exponentiated, is a weight; weights, and weights times rows of v, add up over keys. What
// fits into none of this is ill-formed, and the first number that is so in the order in which data flowed is where
// a kernel leaves attention. No tiling, order of sums, base of exponentials or place of the maximum is assumed:
//
//   weight of keys A in frame f:  sum over j in A of exp(s_j - f) [times v_jd]
//
// is P, a part of l or of o, and what is normalised, alike (f = lse); multiplying it by x moves the frame by
// -ln x, so that parts that are added must be in one frame (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; Dao et al., "FlashAttention", 2022, equations of section 3.1).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "attn_diag/harness/host/values.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::lines {

// The inputs by their number in a Term.
inline constexpr const char* kBuffers[] = {"q", "k", "v"};

enum class TermKind : std::uint8_t {
  kNumber,   // comes of no input, or of what is known only as a number
  kElement,  // of q, k or v, times `factor`
  kScore,    // sum over columns of q k, times `factor`; `shifted`: less some number
  kWeight,   // sum over keys of exp(s - frame), times column `column` of v where that is not kNone
  kInverse,  // 1 / such a sum without v
  kLog,      // its logarithm
  kIll,      // fits into none of these
};

inline constexpr std::uint32_t kNone = ~0u;

// Why a number is ill-formed.
enum class Ill : std::uint8_t {
  kNot,
  kColumns,      // q and k of different columns are multiplied
  kHeads,        // q, k or v of different heads or batches
  kKeys,         // a weight of one key is multiplied with v of another
  kRows,         // numbers of different query rows are put together
  kTwice,        // the same product is added twice
  kFactors,      // parts of a score that are scaled differently
  kFrames,       // parts of a sum that are in different frames
  kPartial,      // exponential of a score that lacks columns
  kScale,        // exponential of a score that is not scaled as it should be
  kNoScore,      // exponential of 0 less a maximum: 0 stands where a score belongs
  kSumOfScores,  // scores of different keys are added
  kOffset,       // a number is added to a sum that should begin with 0
  kUnwritten,    // NaN that comes of no input: memory that nobody wrote
  kSign,         // a weight that is not positive, a frame that is not finite
  kMeaningless,  // an operation that has no meaning here
  kUnknown,      // an operation that is not known
  kUnwatched,    // what a block made that is not watched: nothing is known of it
};

struct Term {
  TermKind kind = TermKind::kNumber;
  Ill ill = Ill::kNot;
  std::uint8_t buffer = 0;  // of kElement: 0 q, 1 k, 2 v; of kScore 1: it is 0 less one
  bool shifted = false;     // of kScore
  std::uint32_t row =
      0;  // (batch, head, query), or of k and v (batch, kv head, key), as one number
  std::uint32_t column = kNone;  // of kElement, kWeight; of kScore: the key's row
  std::uint32_t set = 0;         // of columns, or of keys
  float x = 1;                   // factor or frame
  std::uint32_t root = 0;        // of kIll: the node where it began
};

// Whether two weights may be added.
bool same_frame(const Term& a, const Term& b);

// Sets of small numbers; each is there once.
class Sets {
 public:
  using Words = std::vector<std::uint64_t>;
  explicit Sets(unsigned size);
  std::uint32_t single(unsigned i);
  std::uint32_t all();
  std::uint32_t range(unsigned begin, unsigned end);
  // kNone where they overlap.
  std::uint32_t join(std::uint32_t a, std::uint32_t b);
  unsigned count(std::uint32_t set) const { return x_counts[set]; }
  bool has(std::uint32_t set, unsigned i) const {
    return (x_sets[set][i / 64] >> (i % 64) & 1) != 0;
  }
  const Words& words(std::uint32_t set) const { return x_sets[set]; }
  unsigned size() const { return x_size; }

 private:
  std::uint32_t intern(const Words& words);
  unsigned x_size;
  std::vector<Words> x_sets;
  std::vector<unsigned> x_counts;
  std::vector<std::uint32_t> x_singles;
  std::map<Words, std::uint32_t> x_numbers;
  std::unordered_map<std::uint64_t, std::uint32_t> x_joined;
};

// The exact attention of a problem small enough to be held.
class Attention {
 public:
  Attention(const Problem& problem, const void* q, const void* k, const void* v,
            reference::Extras extras = {});

  const Problem& problem() const { return x_problem; }
  std::uint32_t q_rows() const;
  std::uint32_t k_rows() const;
  // The row, as in Term, and the column of an element, from its place in memory.
  void locate(int buffer, std::uint64_t element, std::uint32_t& row, std::uint32_t& column) const;
  void locate_output(std::uint64_t element, std::uint32_t& row, std::uint32_t& column) const;
  double element(int buffer, std::uint32_t row, std::uint32_t column) const;
  // Of an input that the kernel has as codes: what a code of each row is to be multiplied with.
  void set_coded(int buffer, std::vector<float> scale_of_row);
  bool is_coded(int buffer) const { return !x_scales[static_cast<std::size_t>(buffer)].empty(); }
  float scale_of_code(int buffer, std::uint32_t row) const {
    return x_scales[static_cast<std::size_t>(buffer)][row];
  }
  double raw(std::uint32_t row, std::uint32_t key_row);  // q k
  double score(std::uint32_t row, std::uint32_t key_row) {
    return x_problem.softmax_scale * raw(row, key_row) + bias(row, key_row);
  }
  double lse(std::uint32_t row);
  std::uint32_t key_of(std::uint32_t key_row) const {
    return key_row % static_cast<std::uint32_t>(x_problem.seqlen_k);
  }
  std::uint32_t query_of(std::uint32_t row) const {
    return row % static_cast<std::uint32_t>(x_problem.seqlen_q);
  }
  std::uint32_t batch_of(std::uint32_t row) const {
    return row / static_cast<std::uint32_t>(x_problem.seqlen_q * x_problem.heads);
  }
  // Whether a row of k or v is of the head that the query's reads.
  bool same_head(std::uint32_t row, std::uint32_t key_row) const;
  bool has_bias() const { return !x_extras.bias.empty(); }
  bool visible(std::uint32_t row, std::uint32_t key) const;

 private:
  double bias(std::uint32_t row, std::uint32_t key_row) const;

  Problem x_problem;
  reference::Extras x_extras;        // no softcap
  std::vector<float> x_q, x_k, x_v;  // by row and column
  std::array<std::vector<float>, 3> x_scales;
  std::unordered_map<std::uint32_t, std::vector<double>> x_raw;
  std::unordered_map<std::uint32_t, double> x_lse;
};

// The terms of all nodes of a graph.
class Terms {
 public:
  Terms(const host::ValueGraph& graph, Attention& attention);

  const Term& operator[](std::uint32_t node) const { return x_terms[node]; }
  // What blocks that are not watched load of q (0), k (1) or v (2): use(row, column).
  template <class Use>
  void for_each_loaded_elsewhere(int buffer, const Use& use) const {
    if (x_graph.loaded_elsewhere.empty()) return;
    const std::vector<bool>& loaded = x_graph.loaded_elsewhere[static_cast<std::size_t>(buffer)];
    for (std::size_t e = 0; e < loaded.size(); ++e) {
      std::uint32_t row = 0, column = 0;
      if (!loaded[e]) continue;
      x_attention.locate(buffer, e, row, column);
      use(row, column);
    }
  }
  const host::ValueGraph& graph() const { return x_graph; }
  Attention& attention() const { return x_attention; }
  const Sets& columns() const { return x_columns; }
  const Sets& keys() const { return x_keys; }
  // Scores of these a condition replaced by a number: the node of the choice; 0: none.
  std::uint32_t masked_at(std::uint32_t row, std::uint32_t key) const;

 private:
  Term of(std::uint32_t node);
  bool leaves_nothing(std::uint32_t node) const;
  // An element's number in a node: a code, or what it became on its way to what it means.
  Term decoded(Term element, std::uint32_t node) const;
  Term ill(Ill why, std::uint32_t node) const;
  Term multiply(const Term& a, float x, const Term& b, float y, float result, std::uint32_t node);
  Term multiply_ordered(const Term& a, float x, const Term& b, float y, float result,
                        std::uint32_t node);
  double row_log_sum(const Term& of);
  Term add(const Term& a, float x, const Term& b, float y, std::uint32_t node);
  Term subtract(const Term& a, float x, const Term& b, float y, float result, std::uint32_t node);
  Term divide(const Term& a, float x, const Term& b, float y, float result, std::uint32_t node);
  Term exponential(const Term& a, float x, float result, bool base2, std::uint32_t node);
  Term choose(const Term& a, float x, const Term& b, float y, float result, std::uint32_t node);
  Term product(std::uint32_t node);
  static Term worse(const Term& a, const Term& b);

  const host::ValueGraph& x_graph;
  Attention& x_attention;
  Sets x_columns, x_keys;
  std::vector<Term> x_terms;
  std::unordered_map<std::uint64_t, std::uint32_t> x_masked;
};

}  // namespace attn_diag::lines
