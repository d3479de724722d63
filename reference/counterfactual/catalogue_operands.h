// One change made to several operands, for the entries that enumerate what is read of q, k and v.
#pragma once

#include <utility>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

struct Operands {
  bool q, k, v;
  const char* name;
};

inline constexpr Operands kQ{true, false, false, "q"}, kK{false, true, false, "k"},
    kV{false, false, true, "v"}, kKv{false, true, true, "k and v"},
    kQkv{true, true, true, "q, k and v"};

// Makes one change to each operand of `which`, under the given loop over KV tiles.
inline void change(const Operands& which, const FetchChange& fetch, TileLoop loop, Variants& out,
                   std::vector<ParameterValue> parameters) {
  parameters.insert(parameters.begin(),
                    named("operand", which.q * 4 + which.k * 2 + which.v, which.name));
  out.with(
      [&](Deviation& d) {
        if (which.q) d.q = fetch;
        if (which.k) d.k = fetch;
        if (which.v) d.v = fetch;
        d.mask.loop = loop;
      },
      std::move(parameters));
}
inline void change(const Operands& which, const FetchChange& fetch, Variants& out,
                   std::vector<ParameterValue> parameters = {}) {
  change(which, fetch, TileLoop::kAll, out, std::move(parameters));
}

}  // namespace attn_diag::reference
