// A row of the catalogue: what is said about a bug, and which deviations of a case it can be.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::reference {

// What an entry enumerates its variants into.
class Variants {
 public:
  explicit Variants(const Hypothesis& hypothesis) : x_hypothesis(&hypothesis) {}

  void add(const Deviation& deviation, std::vector<ParameterValue> parameters = {}) {
    x_list.push_back({{x_hypothesis}, std::move(parameters), deviation, std::nullopt, x_in_pairs});
  }
  // Adds the deviation that `set` makes of the right formula.
  template <class Set>
  void with(Set set, std::vector<ParameterValue> parameters = {}) {
    Deviation deviation;
    set(deviation);
    add(deviation, std::move(parameters));
  }
  void add_free(const Deviation& deviation, FreeParameter free,
                std::vector<ParameterValue> parameters = {}) {
    x_list.push_back(
        {{x_hypothesis}, std::move(parameters), deviation, std::move(free), x_in_pairs});
  }
  // Sets Variant::in_pairs of the variants added from now on.
  void in_pairs(bool yes) { x_in_pairs = yes; }
  std::vector<Variant> take() { return std::move(x_list); }

 private:
  const Hypothesis* x_hypothesis;
  std::vector<Variant> x_list;
  bool x_in_pairs = true;
};

// Parameters that are numbers, and those that are one of a few names.
inline ParameterValue number(std::string_view name, double value) {
  return {name, value, {}, false};
}
inline ParameterValue named(std::string_view name, double value, std::string text) {
  return {name, value, std::move(text), true};
}

struct Entry {
  HypothesisInfo info;
  void (*enumerate)(const PredictionInputs& c, Variants& out);
  // Null where no parameter is free.
  void (*set)(Deviation& deviation, double value) = nullptr;
};

// One list per family, in the order of the catalogue.
std::span<const Entry> logits_entries();
std::span<const Entry> unasked_entries();
std::span<const Entry> mask_entries();
std::span<const Entry> visit_entries();
std::span<const Entry> fetch_entries();
std::span<const Entry> tile_entries();
std::span<const Entry> softmax_entries();
std::span<const Entry> pv_entries();
std::span<const Entry> recurrence_entries();
std::span<const Entry> rescale_entries();  // what belongs to recurrence and to splits alike
std::span<const Entry> combine_entries();
std::span<const Entry> partial_entries();
std::span<const Entry> finish_entries();
std::span<const Entry> store_entries();

// What enumerations ask of a case.
std::int32_t longest_split(const PredictionInputs& c);  // KV tiles of the split that has most
std::int32_t used_splits(const PredictionInputs& c);    // splits that hold a tile
// Numbers of rows, fewer than `rows`, that warps may cover: half, three quarters, multiples of 16, and for n = 1
// to 16 warps the largest multiple of n.
std::set<std::int32_t> rows_by_warps(std::int32_t rows);
inline bool merges(const PredictionInputs& c) { return c.geometry().num_splits > 1; }

}  // namespace attn_diag::reference
