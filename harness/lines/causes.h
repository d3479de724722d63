// Why an element of o or lse is wrong, by the term of what was stored there.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/lines/graph_walk.h"

namespace attn_diag::lines {

// One element of o, or of lse.
struct OutputElement {
  std::uint64_t index = 0;  // in memory
  bool wrong = false;
  bool of_lse = false;
  double bound = 0;  // how far it may be off and is right all the same; of `wrong` ones not known
  double value = 0;
};

enum class What : std::uint8_t {
  kIll,
  kUnstored,
  kNothing,  // a number that comes of no input
  kOtherRow,
  kOtherColumn,
  kMissing,
  kExtra,
  kFrame,
  kOther,  // ill-formed in no way, and wrong all the same
};

// Why an element is wrong.
struct Cause {
  What what = What::kOther;
  Ill ill = Ill::kNot;
  std::uint32_t node = 0;  // where it began
  std::uint32_t site = 0;
  std::uint32_t row = 0, column = 0;
  std::vector<unsigned> keys;  // of kMissing, kExtra
  bool of_l = false;           // of these: in the sum that o is divided by
  bool undivided = false;      // of kFrame: o is relative to what l is relative to

  auto kind() const { return std::tuple(what, ill, site); }
};

class Causes : public Walk {
 public:
  using Walk::Walk;

  Cause cause_of(const OutputElement& element);
  // Whether what made the element is not in the graph.
  bool is_unseen(const OutputElement& element, const Cause& cause) const;
  // Whether a right element would be right in any case: o of one key whose score is wrong; of whole blocks, one that lacks
  // keys, or has some too many, whose weights move it by less than its bound. Its being right says nothing.
  bool is_right_by_luck(const OutputElement& element, const Cause& cause);

 private:
  Cause cause_of_lse(const Term& term, Cause cause, bool wrong) const;
  // Whether a sum over keys lacks some, or has some that it should not have.
  bool keys_differ(const Term& term, Cause& cause) const;
  // Whether there is an l of the same keys in the same frame.
  bool is_undivided(const Term& term);
  // o is what it should be but for a factor: is it the sum that it is divided by?
  void frame_cause(Cause& cause);

  bool x_sums_known = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<float>>
      x_frames;  // of weights without v, by row and set
};

}  // namespace attn_diag::lines
