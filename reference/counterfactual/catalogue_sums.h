// Bugs of sums: that l may have alone, o alone, or both; and of the type a sum is kept in.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

inline constexpr std::pair<bool, bool> kSums[] = {
    {false, true}, {true, false}, {true, true}};  // l, o

inline ParameterValue of(bool l, bool o) {
  return named("of", l * 2 + o, l && o ? "l and o" : l ? "l" : "o");
}

// Every other run of columns or of rows of the query tile, down to a register of an MMA fragment.
struct HalfIn {
  Half half;
  bool columns;
};
inline std::vector<HalfIn> halves_of(const PredictionInputs& c) {
  std::vector<HalfIn> all;
  const std::int32_t dim = c.problem().head_dim_v, rows = c.geometry().tile.block_m;
  for (const bool odd : {false, true}) {
    std::set<std::int32_t> sizes = {1, 8, 16, 32, dim / 2};
    for (const std::int32_t n : sizes)
      if (n > 0 && n < dim) all.push_back({{n, odd}, true});
    sizes = {1, 8, 16, 32, rows / 2};
    for (const std::int32_t n : sizes)
      if (n > 0 && n < std::min(rows, c.problem().seqlen_q)) all.push_back({{n, odd}, false});
  }
  return all;
}

// A sum that is kept in a narrow type: rounded after every `every` terms; 0: once, at its end.
template <class Set>
void narrow_sum(Narrow type, const char* name, std::int32_t every, Variants& out, Set set) {
  out.with([&](Deviation& d) { set(d, type, every); },
           {named("type", static_cast<double>(type), name), number("every", every)});
}

// In fp16 and bf16: at the end, with every step of an MMA, with every term.
template <class Set>
void narrow_sums(std::int32_t terms, Variants& out, Set set) {
  for (const std::int32_t every : {0, 16, 1}) {
    if (every >= terms) continue;
    narrow_sum(Narrow::kFp16, "fp16", every, out, set);
    narrow_sum(Narrow::kBf16, "bf16", every, out, set);
  }
}

}  // namespace attn_diag::reference
