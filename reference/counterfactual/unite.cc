#include "reference/counterfactual/unite.h"

#include <cstdio>
#include <tuple>
#include <utility>

namespace attn_diag::reference {
namespace {

// Every field of a deviation, once, for what has to look at each.
auto fields(Deviation& d) {
  return std::tie(d.logits.kappa,                              //
                  d.mask.first_shift, d.mask.last_shift,       //
                  d.recurrence.alpha_l, d.recurrence.alpha_o,  //
                  d.combine.scaled_split, d.combine.factor,    //
                  d.finish.gain, d.finish.l_power);
}

template <class Tuple, std::size_t... i>
bool unite_fields(Tuple into, Tuple from, Tuple right, std::index_sequence<i...>) {
  const auto unite_one = [](auto& x, const auto& y, const auto& neutral) {
    if (y == neutral) return true;
    if (!(x == neutral)) return false;
    x = y;
    return true;
  };
  return (unite_one(std::get<i>(into), std::get<i>(from), std::get<i>(right)) && ...);
}

}  // namespace

std::optional<Deviation> unite(const Deviation& a, const Deviation& b) {
  Deviation both = a, other = b, right;
  if (a == right || b == right) return std::nullopt;
  const auto into = fields(both);
  constexpr std::size_t kFields = std::tuple_size_v<std::remove_const_t<decltype(into)>>;
  if (!unite_fields(into, fields(other), fields(right), std::make_index_sequence<kFields>()))
    return std::nullopt;
  return both;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace attn_diag::reference
