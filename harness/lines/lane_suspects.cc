// The lines that make places of the thread's index.
#include <algorithm>
#include <iterator>

#include "harness/lines/suspects.h"

namespace attn_diag::lines {

bool Suspects::suggest_place_of_thread(std::uint32_t n, const std::string& why) {
  while (n != 0 && !node(n).is_input() && !is_load(n) && op(n) != ValueOp::kStore)
    n = first_operand(n, x_terms[n].kind);
  if (n == 0 || node(n).site == 0) return false;
  const std::uint32_t s = node(n).site;
  const std::string& text = x_text.statement(site(s).file, site(s).line);
  const std::vector<std::string> added = added_in_subscripts(text);
  bool any = false;
  for (const std::string& name : subscript_names(text, site(s).variable)) {
    if (std::find(added.begin(), added.end(), name) == added.end()) continue;
    for (const NamedLine& use : variables_in(site(s).uses, ',')) {
      const std::string& made = text_of(s, use);
      if (use.name != name || !comes_of(use, "t") || comes_of(use, "xyz") ||
          use.line == site(s).line || is_loop(made) || !computes(made, name))
        continue;
      suggest(s, use, why);
      any = true;
    }
  }
  return any;
}

void Suspects::put_odd_one_first(std::size_t from) {
  const auto stands_alone = [&](const LineSuspect& one) {
    const std::string text = x_text.trimmed(one.place.file, one.place.line);
    const std::vector<int> lines =
        x_text.lines_of_function(one.place.file, bare_name(one.place.function));
    return std::count_if(lines.begin(), lines.end(), [&](int line) {
             return x_text.trimmed(one.place.file, line) == text;
           }) == 1;
  };
  if (x_out.suspects.size() != from + 2) return;
  const auto first = x_out.suspects.begin() + static_cast<std::ptrdiff_t>(from);
  if (!stands_alone(first[0]) && stands_alone(first[1])) std::iter_swap(first, first + 1);
}

}  // namespace attn_diag::lines
