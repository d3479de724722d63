#include "harness/lines/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace attn_diag::lines {

void Suspects::note_heads(const std::vector<OutputElement>& elements) {
  bool first_wrong = false, first_right = false;
  for (const OutputElement& element : elements) {
    std::uint32_t row = static_cast<std::uint32_t>(element.index), column = 0;
    if (!element.of_lse) x_attention.locate_output(element.index, row, column);
    if (row < static_cast<std::uint32_t>(x_attention.problem().seqlen_q))
      (element.wrong ? first_wrong : first_right) = true;
  }
  x_only_later_heads = first_right && !first_wrong;
}

void Suspects::suggest(const std::string& file, const std::string& function, int line, int column,
                       const std::string& variable, const std::string& why) {
  if (line == 0 || x_text.is_comment(file, line)) return;
  const bool own = variable.find("attn_diag_") != std::string::npos;
  for (LineSuspect& known : x_out.suspects)
    if (known.place.line == line && known.place.file == file) {
      if (known.place.variable.empty() && !own) known.place.variable = variable;
      return;
    }
  LineSuspect one;
  one.place = {file, function, line, column, "", own ? "" : variable};
  one.why = why;
  x_out.suspects.push_back(std::move(one));
}

std::set<std::string> Suspects::files_of_sites() const {
  std::set<std::string> files;
  for (const ValueSite& s : x_graph.sites) files.insert(s.file);
  return files;
}

void Suspects::suggest(std::uint32_t site_number, const std::string& why) {
  const ValueSite& s = site(site_number);
  suggest(s.file, s.function, s.line, s.column, s.variable, why);
}

void Suspects::suggest(std::uint32_t site_number, const NamedLine& at, const std::string& why) {
  // Where the launch gives them their values is no line of the kernel.
  for (const char* const given : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
    if (at.name == given) return;
  if (begins_kernel(text_of(site_number, at)) || is_assertion(text_of(site_number, at)) ||
      is_of_other_loop(site_number, at))
    return;
  suggest(file_of(site_number, at), site(site_number).function, at.line, 0, at.name, why);
}

bool Suspects::is_of_other_loop(std::uint32_t site_number, const NamedLine& at) {
  const ValueSite& s = site(site_number);
  const std::string& file = file_of(site_number, at);
  if (!declares_counter(x_text.statement(file, at.line), at.name)) return false;
  const int end = x_text.end_of_statement(file, at.line);
  const auto is_in = [&](const std::string& of, int line) {
    return of == file && at.line <= line && line <= end;
  };
  if (is_in(s.file, s.line)) return false;
  const std::vector<NamedLine> calls = lines_in(s.callers);
  return std::none_of(calls.begin(), calls.end(), [&](const NamedLine& call) {
    return is_in(file_of(site_number, call), call.line);
  });
}

void Suspects::suggest_node(std::uint32_t n, const std::string& why) {
  if (n == 0 || node(n).site == 0) return;
  if (!x_graph.whole_blocks && is_shared_helper(node(n).site))
    return suggest_callers(node(n).site, why);
  // For inline assembly or a conversion in a helper the call says more; for a block operation its own line does.
  const bool is_helper = op(n) == ValueOp::kProduct || op(n) == ValueOp::kRound ||
                         is_own(node(n).site) ||
                         x_text.has_assembly(site(node(n).site).file, site(node(n).site).line);
  if (is_helper && !x_graph.whole_blocks) suggest_callers(node(n).site, why);
  suggest(node(n).site, why);
}

void Suspects::suggest_way_to(std::uint32_t n, std::size_t enough) {
  constexpr std::size_t kMost = 1024;
  std::vector<std::uint32_t> pending = {n};
  std::unordered_set<std::uint32_t> known = {n};
  const auto add = [&](std::uint32_t operand) {
    if (known.insert(operand).second) pending.push_back(operand);
  };
  for (std::size_t i = 0; i < std::min(pending.size(), kMost); ++i) {
    if (x_out.suspects.size() >= enough) return;
    const std::uint32_t at = pending[i];
    if (i > 0 && !is_host_copy(at)) suggest_node(at, "is on the way to it");
    for (const std::uint32_t operand : operands(at)) add(operand);
    if (op(at) != ValueOp::kProduct) continue;
    if (const auto pairs = x_graph.pairs_of(node(at)); !pairs.empty()) {
      add(pairs.front().left);
      add(pairs.front().right);
    }
  }
}

bool Suspects::is_shared_helper(std::uint32_t s) {
  const ValueSite& at = site(s);
  if (at.callers.empty() || x_text.line(at.file, at.line).find("return ") == std::string::npos)
    return false;
  // What one line calls is its own, however often that runs.
  const auto nearest = [](const ValueSite& one) {
    return one.callers.substr(0, one.callers.find(','));
  };
  return std::any_of(x_graph.sites.begin() + 1, x_graph.sites.end(), [&](const ValueSite& other) {
    return other.line == at.line && other.file == at.file && nearest(other) != nearest(at);
  });
}

void Suspects::suggest_indices(std::uint32_t site_number, const std::string& why) {
  const std::vector<NamedLine> uses =
      by_likelihood(site_number, variables_in(site(site_number).uses, ','));
  suggest_computed(site_number, uses, why);
  suggest_unseen_indices(site_number, why);
  for (const NamedLine& use : uses) suggest(site_number, use, why);
}

void Suspects::suggest_unseen_pointers(std::uint32_t site_number, const std::string& why) {
  const ValueSite& s = site(site_number);
  if (x_graph.whole_blocks || s.line == 0) return;
  const std::vector<std::string> seen = names_of(variables_in(s.uses, ','));
  for (const std::string& name : variables_of(x_text.line(s.file, s.line))) {
    const int made = x_text.assigned_above(s.file, s.line, name);
    if (made != 0 && std::find(seen.begin(), seen.end(), name) == seen.end() &&
        makes_pointer(x_text.statement(s.file, made), name))
      suggest(s.file, s.function, made, 0, name, why);
  }
}

void Suspects::suggest_unseen_indices(std::uint32_t site_number, const std::string& why) {
  const ValueSite& s = site(site_number);
  if (x_graph.whole_blocks || s.line == 0) return;
  const std::vector<std::string> seen = names_of(variables_in(s.uses, ','));
  const std::string& text = x_text.line(s.file, s.line);
  for (const std::string& array : indexed_names(text))
    for (const std::string& name : subscript_names(text, array))
      if (std::find(seen.begin(), seen.end(), name) == seen.end())
        suggest_computed_above(s.file, s.function, s.line, name, why);
}

void Suspects::suggest_computed(std::uint32_t site_number, const std::vector<NamedLine>& variables,
                                const std::string& why) {
  for (const NamedLine& one : by_likelihood(site_number, variables))
    if (computes(text_of(site_number, one), one.name)) {
      suggest_step(site_number, one);
      suggest(site_number, one, why);
    }
}

void Suspects::suggest_step(std::uint32_t site_number, const NamedLine& at) {
  const std::string text = text_of(site_number, at);
  const std::size_t step = text.find("+=");
  if (step == std::string::npos || x_graph.whole_blocks || is_loop(text)) return;
  const std::size_t end = std::min(text.find(';', step), text.size());
  const std::vector<std::string> names = variables_of(text.substr(step + 2, end - step - 2));
  if (names.size() != 1) return;
  const std::string& file = file_of(site_number, at);
  suggest_computed_above(file, site(site_number).function, at.line, names.front(),
                         "makes the step of " + at.name);
}

bool Suspects::never_ran(std::uint32_t s) const {
  if (is_cut()) return false;
  const ValueSite& at = site(s);
  return std::none_of(x_graph.sites.begin() + 1, x_graph.sites.end(), [&](const ValueSite& one) {
    return one.line == at.line && one.file == at.file && one.op == at.op &&
           (at.op == ValueOp::kStore ? one.stored : one.ran);
  });
}

bool Suspects::is_among(const Condition& condition, const std::vector<Condition>& others) {
  return std::any_of(others.begin(), others.end(), [&](const Condition& one) {
    return one.at.line == condition.at.line && one.at.file == condition.at.file;
  });
}

void Suspects::suggest_condition(std::uint32_t site_number, const Condition& condition,
                                 const std::string& why, bool lacks) {
  if (condition.loop && is_plain_loop(text_of(site_number, condition.at), !lacks)) {
    std::vector<NamedLine> range = condition.tests;
    std::erase_if(range, [&](const NamedLine& test) {
      return test.line == condition.at.line || (lacks && is_place_of_output(site_number, test));
    });
    suggest_computed(site_number, range, why);
    // What the compiler knows is no variable any more.
    const std::string& file = file_of(site_number, condition.at);
    for (const std::string& limit : loop_limits(text_of(site_number, condition.at)))
      if (const int made = x_text.assigned_above(file, condition.at.line, limit);
          lacks && made != 0 && rounds_down(x_text.statement(file, made), limit))
        suggest(file, site(site_number).function, made, 0, limit, why);
  }
  if (!condition.loop && !x_graph.whole_blocks)
    if (const std::string bits = tested_bits(text_of(site_number, condition.at)); !bits.empty())
      suggest_computed_above(file_of(site_number, condition.at), site(site_number).function,
                             condition.at.line, bits, why);
  // "in ? p : 0", "if (in)", "if (!in) return;": what is in was decided before.
  const std::string& text = text_of(site_number, condition.at);
  for (const NamedLine& test : condition.tests)
    if (!condition.loop && !x_graph.whole_blocks &&
        (text.find(test.name + " ?") != text.npos ||
         text.find("(" + test.name + ")") != text.npos ||
         (text.find("(!" + test.name + ")") != text.npos && text.find("return") != text.npos)) &&
        computes(text_of(site_number, test), test.name) && !is_loop(text_of(site_number, test))) {
      suggest(site_number, test, why);
      suggest_short_calls(file_of(site_number, test), test.line, why);
    }
  suggest(site_number, condition.at, why);
  for (const NamedLine& test : condition.tests) suggest(site_number, test, why);
}

void Suspects::suggest_short_calls(const std::string& file, int line, const std::string& why) {
  if (x_graph.whole_blocks) return;
  for (const std::string& name : called_names(x_text.statement(file, line)))
    if (const std::vector<int> lines = x_text.lines_of_function(file, name);
        lines.size() == 1 && has_name(x_text.line(file, lines.front()), {"return"}))
      suggest(file, name, lines.front(), 0, "", why);
}

bool Suspects::is_place_of_output(std::uint32_t site_number, const NamedLine& at) const {
  if (x_graph.whole_blocks) return false;
  const auto key = key_of(site_number, at);
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    if (site(s).op != ValueOp::kStore || !site(s).stored || site(s).home != site(site_number).home)
      continue;
    const std::vector<Condition> conditions = conditions_in(site(s).conditions);
    const auto is_loop_of = [](const Condition& condition) { return condition.loop; };
    if (std::any_of(conditions.begin(), conditions.end(), is_loop_of)) continue;
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (key_of(s, use) == key) return true;
  }
  return false;
}

std::vector<std::uint32_t> Suspects::stores_to(const std::vector<std::string>& names) const {
  std::vector<std::uint32_t> stores;
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kStore &&
        std::find(names.begin(), names.end(), site(s).variable) != names.end())
      stores.push_back(s);
  return stores;
}

void Suspects::suggest_late_loops(std::uint32_t site_number) {
  for (const Condition& condition : conditions_in(site(site_number).conditions))
    if (condition.loop && begins_late(text_of(site_number, condition.at)))
      suggest(site_number, condition.at, "leaves its first steps out");
}

void Suspects::suggest_late_loops_of_uses(std::uint32_t site_number) {
  if (x_graph.whole_blocks) return;
  for (const NamedLine& use : variables_in(site(site_number).uses, ','))
    suggest_late_loops_around(file_of(site_number, use), site(site_number).function, use.line);
}

void Suspects::suggest_late_loops_around(const std::string& file, const std::string& function,
                                         int line) {
  for (const Statement& around : x_text.statements_around(file, line))
    if (around.loop && begins_late(x_text.line(file, around.begin)))
      suggest(file, function, around.begin, 0, "", "leaves its first steps out");
}

void Suspects::suggest_calls_of(const SourceText::Lambda& lambda, const std::string& file,
                                const std::string& function, const std::string& why) {
  for (const int call : lambda.calls)
    if (variables_of(x_text.line(file, call)).size() > 1) suggest(file, function, call, 0, "", why);
}

const std::string& Suspects::text_of(std::uint32_t site_number, const NamedLine& at) {
  return x_text.statement(file_of(site_number, at), at.line);
}

void Suspects::suggest_of_block(std::uint32_t site_number, const std::string& why) {
  bool any = false;
  for (const NamedLine& use : variables_in(site(site_number).uses, ','))
    if (is_of_block(use)) {
      any = true;
      suggest(site_number, use, why);
    }
  if (!any) suggest_mover_of_others(site_number);
}

void Suspects::suggest_unmoved_by_block(std::uint32_t site_number) {
  const std::vector<NamedLine> uses = variables_in(site(site_number).uses, ',');
  if (std::none_of(uses.begin(), uses.end(),
                   [](const NamedLine& use) { return comes_of(use, "xyz"); }))
    suggest_mover_of_others(site_number);
}

void Suspects::suggest_mover_of_others(std::uint32_t site_number) {
  const ValueSite& at = site(site_number);
  const std::vector<SourceText::Mover> movers =
      x_text.moved_by_block(at.file, at.line, at.variable);
  if (movers.empty()) return;
  // q lies as o does, and k as v.
  note_loaders();
  std::set<std::string> alike;
  if (x_loaders[0].contains(site_number)) {
    for (const auto& output : x_graph.outputs[0])
      if (const std::uint32_t s = store_of(output); s != 0) alike.insert(site(s).variable);
  } else {
    for (const std::uint32_t s : x_loaders[x_loaders[1].contains(site_number) ? 2 : 1])
      alike.insert(site(s).variable);
  }
  const auto found = std::find_if(movers.begin(), movers.end(), [&](const SourceText::Mover& one) {
    return alike.contains(one.name);
  });
  suggest(at.file, at.function, (found == movers.end() ? movers.back() : *found).line, 0, "",
          fmt::format("moves other arrays on to a block's own part, and not {}", at.variable));
}

void Suspects::suggest_head(std::uint32_t site_number, const std::string& why) {
  if (x_graph.whole_blocks) return;
  note_loaders();
  using Keys = std::set<std::tuple<std::string, std::string, int>>;
  std::array<Keys, 3> keys;
  for (std::size_t buffer = 0; buffer < 3; ++buffer)
    for (const std::uint32_t loader : x_loaders[buffer])
      for (const NamedLine& use : variables_in(site(loader).uses, ','))
        keys[buffer].insert(key_of(loader, use));
  // Where q depends on the block's place in x alone, as where every block has one query, that is the head.
  std::string of_q;
  for (const std::uint32_t loader : x_loaders[0])
    for (const NamedLine& use : variables_in(site(loader).uses, ',')) of_q += use.sources;
  const bool heads_in_x = of_q.find('x') != of_q.npos && of_q.find_first_of("yz") == of_q.npos;
  std::vector<NamedLine> uses = variables_in(site(site_number).uses, ',');
  std::erase_if(uses, [&](const NamedLine& use) {
    const bool of_head = heads_in_x ? use.sources == "x" : is_of_block(use);
    const bool of_other = use.sources.find_first_not_of(of_q + "t") != use.sources.npos;
    return !of_head || of_other || use.name == site(site_number).variable ||
           keys[0].count(key_of(site_number, use)) != 0;
  });
  // Where both k and v are of a wrong head, what both have.
  if (x_row != kNone && loads_none(1, x_row) && loads_none(2, x_row))
    std::stable_partition(uses.begin(), uses.end(), [&](const NamedLine& use) {
      return keys[1].count(key_of(site_number, use)) != 0 &&
             keys[2].count(key_of(site_number, use)) != 0;
    });
  // What divides makes a head of k and v of one of q; what is computed of that only goes by it.
  std::stable_partition(uses.begin(), uses.end(), [&](const NamedLine& use) {
    return text_of(site_number, use).find_first_of("/%") != std::string::npos;
  });
  suggest_computed(site_number, uses, why);
}

std::vector<NamedLine> Suspects::with_nearest_first(std::uint32_t site_number,
                                                    std::vector<NamedLine> uses) const {
  const ValueSite& s = site(site_number);
  const auto distance = [&](const NamedLine& use) {
    return use.line <= s.line ? s.line - use.line : 1'000'000 + use.line;
  };
  // Each variable keeps the places that it has among the others.
  for (std::size_t i = 0; i < uses.size(); ++i)
    for (std::size_t j = i + 1; j < uses.size(); ++j)
      if (uses[j].name == uses[i].name && uses[j].file == uses[i].file &&
          distance(uses[j]) < distance(uses[i]))
        std::swap(uses[i], uses[j]);
  return uses;
}

std::vector<NamedLine> Suspects::by_likelihood(std::uint32_t site_number,
                                               std::vector<NamedLine> uses) {
  if (!x_graph.whole_blocks) return with_nearest_first(site_number, std::move(uses));
  if (x_accesses.empty())
    for (const ValueSite& s : x_graph.sites) {
      const bool accesses =
          s.op == ValueOp::kInput || s.op == ValueOp::kLoad || s.op == ValueOp::kStore;
      if (!accesses || s.line == 0) continue;
      for (const NamedLine& use : variables_in(s.uses, ','))
        x_accesses[{use.name, use.line}].insert(s.line);
    }
  const auto rank = [&](const NamedLine& use) {
    const std::string& text = text_of(site_number, use);
    const bool range = text.find("arange") != text.npos;  // from 0: seldom wrong
    // What advances is right in the first step, and what it begins with in the others.
    const bool advances = text.find("+=") != text.npos;
    const bool other_step = (x_first_step && advances) || (x_later_step && !advances);
    return std::tuple(range, other_step, x_accesses[{use.name, use.line}].size());
  };
  std::stable_sort(uses.begin(), uses.end(),
                   [&](const NamedLine& a, const NamedLine& b) { return rank(a) < rank(b); });
  return uses;
}

void Suspects::suggest_callers(std::uint32_t site_number, const std::string& why) {
  const ValueSite& s = site(site_number);
  for (const NamedLine& line : lines_in(s.callers))
    suggest(site_number, line,
            x_text.launches_within(file_of(site_number, line), line.line) ? "launches it" : why);
}

void Suspects::suggest_returns(std::uint32_t site_number, const std::string& why) {
  const ValueSite& at = site(site_number);
  for (const std::string& name : called_names(x_text.statement(at.file, at.line)))
    for (const int line : x_text.lines_of_function(at.file, name))
      if (has_name(x_text.line(at.file, line), {"return"}))
        suggest(at.file, name, line, 0, "", why);
}

void Suspects::suggest_call(std::uint32_t site_number, const std::string& why) {
  const std::vector<NamedLine> calls = lines_in(site(site_number).callers);
  if (x_graph.whole_blocks || calls.empty()) return;
  const std::string& file = file_of(site_number, calls.front());
  const int line = calls.front().line;
  suggest(site_number, calls.front(), why);
  for (const std::string& name : variables_of(x_text.statement(file, line)))
    if (x_text.is_integer(file, line, name)) suggest_computed_above(file, "", line, name, why);
}

void Suspects::suggest_conditions(std::uint32_t site_number, const char* kind,
                                  const std::string& why, bool lacks) {
  const ValueSite& s = site(site_number);
  for (const Condition& condition : conditions_in(s.conditions))
    if (kind == nullptr || condition.loop == (std::string_view(kind) == "loop"))
      suggest_condition(site_number, condition, why, lacks);
}

void Suspects::suggest_conditions_behind(std::uint32_t ran, std::uint32_t site_number,
                                         const std::string& why) {
  if (site(ran).home != site(site_number).home) return;
  const std::vector<Condition> held = conditions_in(site(ran).conditions);
  for (const Condition& condition : conditions_in(site(site_number).conditions))
    if (std::none_of(held.begin(), held.end(),
                     [&](const Condition& one) { return one.at.line == condition.at.line; }))
      suggest_condition(site_number, condition, why, true);
}

void Suspects::suggest_what_it_is_of(std::uint32_t access, const std::string& why) {
  const ValueSite& s = site(access);
  if (x_graph.whole_blocks) {
    // Which index of a program is that of a head is not known.
    if (x_only_later_heads || is_plain_subscript(x_text.line(s.file, s.line), s.variable))
      suggest_pointer(access, why);
    else if (is_plain_offset(x_text.line(s.file, s.line), s.variable))
      suggest_computed(access, variables_in(s.uses, ','), why);
    return;
  }
  if (x_only_later_heads) suggest_of_block(access, why);
  if (is_plain_offset(x_text.line(s.file, s.line), s.variable))
    suggest_computed(access, variables_in(s.uses, ','), why);
  if (is_plain_subscript(x_text.line(s.file, s.line), s.variable)) suggest_pointer(access, why);
}

void Suspects::suggest_pointer(std::uint32_t access, const std::string& why) {
  std::vector<NamedLine> pointer = variables_in(site(access).uses, ',');
  std::erase_if(pointer, [&](const NamedLine& use) { return use.name != site(access).variable; });
  if (begins_right(access))
    std::stable_partition(pointer.begin(), pointer.end(), [&](const NamedLine& use) {
      const std::string& text = text_of(access, use);
      return is_loop(text) || text.find("+=") != std::string::npos;
    });
  suggest_computed(access, pointer, why);
}

void Suspects::suggest_chosen_by(std::uint32_t s, const std::string& why) {
  const ValueSite& at = site(s);
  const std::string& text = x_text.line(at.file, at.line);
  const std::size_t equals = text.find('='), question = text.find('?');
  if (equals >= question || question == std::string::npos) return;
  for (const std::string& name : variables_of(text.substr(equals + 1, question - equals - 1))) {
    // "keep = key < n": what is compared there, where each step of the loop around makes it anew.
    const int made = x_text.assigned_above(at.file, at.line, name);
    const std::vector<Statement> around = x_text.statements_around(at.file, made);
    bool moves = false;
    if (made != 0 && !x_graph.whole_blocks && !around.empty() && around.back().loop)
      for (const std::string& compared : made_of(x_text.line(at.file, made), name, moves)) {
        const int line = x_text.assigned_above(at.file, made, compared);
        if (around.back().begin < line && line < made)
          suggest_computed_above(at.file, at.function, made, compared, why);
      }
    suggest_computed_above(at.file, at.function, at.line, name, why);
  }
}

std::pair<int, std::string> Suspects::choice_stored_by(std::uint32_t store,
                                                       const std::string& array) {
  const ValueSite& at = site(store);
  const std::string name = stored_name(x_text.line(at.file, at.line), array);
  const int line = name.empty() ? 0 : x_text.assigned_above(at.file, at.line, name);
  if (line == 0 || x_text.statement(at.file, line).find('?') == std::string::npos) return {0, ""};
  return {line, name};
}

void Suspects::suggest_stored_choice(std::uint32_t store) {
  if (x_graph.whole_blocks) return;
  const ValueSite& at = site(store);
  const auto [line, name] = choice_stored_by(store, at.variable);
  if (line == 0) return;
  for (const std::string& compared : plainly_compared(x_text.statement(at.file, line)))
    suggest_computed_above(at.file, at.function, line, compared,
                           "is compared where a number is chosen for a score");
  suggest(at.file, at.function, line, 0, name, "chooses a number for a score");
}

void Suspects::suggest_computed_above(const std::string& file, const std::string& function,
                                      int line, const std::string& name, const std::string& why) {
  const int made = x_text.assigned_above(file, line, name);
  if (made != 0 && computes(x_text.line(file, made), name))
    suggest(file, function, made, 0, name, why);
}

void Suspects::suggest_uses(std::uint32_t s, const std::string& why) {
  suggest_unseen_indices(s, why);
  for (const NamedLine& use : variables_in(site(s).uses, ',')) suggest(s, use, why);
}

void Suspects::suggest_moves(std::uint32_t n, const std::string& why) {
  const std::uint32_t made = made_by(n);
  for (; n != made; n = node(n).operand[0]) {
    suggest_node(n, why);
    if (node(n).site == 0) return;
  }
  suggest_node(made, why);
}

const std::vector<bool>& Suspects::reaches_output(bool by_thread) {
  std::vector<bool>& alive = x_alive[by_thread ? 1 : 0];
  if (!alive.empty()) return alive;
  alive.resize(x_graph.nodes.size());
  for (const auto& output : x_graph.outputs)
    for (const host::ValueOutput& element : output) alive[element.node] = true;
  for (std::uint32_t n = static_cast<std::uint32_t>(alive.size()) - 1; n > 0; --n) {
    if (!alive[n] || node(n).site == 0 || node(n).is_input()) continue;
    const ValueOp is = op(n);
    if (is == ValueOp::kProduct) {
      if (node(n).operand[0] < n) alive[node(n).operand[0]] = true;
      for (const auto& [left, right] : x_graph.pairs_of(node(n))) alive[left] = alive[right] = true;
      continue;
    }
    if ((is == ValueOp::kMaximum || is == ValueOp::kMinimum) &&
        x_terms[n].kind == TermKind::kNumber)
      continue;
    for (unsigned i = 0; i < (is == ValueOp::kPick ? 1 : 3); ++i) {
      const std::uint32_t operand = node(n).operand[i];
      if (operand >= n) continue;
      // Not by memory, where stores and the executor's own work leave it.
      const bool in_memory =
          is_load(n) && (op(operand) == ValueOp::kStore || op(operand) == ValueOp::kProduct ||
                         node(operand).is_input());
      if (!by_thread || in_memory || node(operand).where == node(n).where) alive[operand] = true;
    }
  }
  return alive;
}

void Suspects::suggest_readers_beside(std::uint32_t store, const std::string& why) {
  if (x_graph.whole_blocks) return;
  std::set<std::uint32_t> readers;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (const std::uint32_t from = is_load(n) ? node(n).operand[0] : 0;
        from != 0 && op(from) == ValueOp::kStore && node(from).site == node(store).site &&
        node(from).where != node(n).where)
      readers.insert(node(n).site);
  for (const std::uint32_t s : readers) {
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop && !is_plain_loop(text_of(s, condition.at), false))
        suggest(s, condition.at, why);
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop && !is_among(condition, conditions_in(site(node(store).site).conditions)))
        suggest(s, condition.at, "decides whether what other threads stored is taken");
    suggest(s, why);
  }
}

std::uint32_t Suspects::added_by_atomic(std::uint32_t n) const {
  for (std::uint32_t at = n + 1; at < x_graph.nodes.size(); ++at)
    if (op(at) == ValueOp::kAtomicAdd && !node(at).is_input() &&
        (node(at).operand[0] == n || node(at).operand[1] == n))
      return at;
  return 0;
}

void Suspects::suggest_loop_over_lanes(std::uint32_t s) {
  const std::string& text = x_text.line(site(s).file, site(s).line);
  for (const Condition& condition : conditions_in(site(s).conditions))
    if (text.find("shfl") != std::string::npos && condition.loop &&
        has_name(text, names_of(condition.tests)))
      suggest(s, condition.at, "decides which lanes take part");
}

void Suspects::suggest_missing_step(std::uint32_t s) {
  const ValueSite& at = site(s);
  const auto step_at = [&](int line) { return shuffle_step(x_text.line(at.file, line)); };
  if (step_at(at.line) == 0) return;
  int first = at.line, last = at.line;
  while (step_at(first - 1) != 0) --first;
  while (step_at(last + 1) != 0) ++last;
  // Of 32 lanes: steps of 16, 8, 4, 2 and 1, or from the other end.
  std::map<int, int> lines;  // of each step
  for (int line = first; line <= last; ++line) lines[step_at(line)] = line;
  int count = 0;
  for (const int step : {1, 2, 4, 8, 16}) count += lines.contains(step);
  if (count != 4) return;
  int missing = 1;
  while (lines.contains(missing)) missing *= 2;
  const auto near = lines.find(missing > 1 ? missing / 2 : 2);
  const bool falls = step_at(first) > step_at(last);
  suggest(at.file, at.function, near->second, 0, at.variable,
          fmt::format("no step of {} lanes is {} it", missing,
                      falls == (missing > 1) ? "before" : "behind"));
}

bool Suspects::suggest_guards_of_uses(const ValueSite& made) {
  const std::size_t before = x_out.suspects.size();
  const std::vector<Statement> own = x_text.statements_around(made.file, made.line);
  const int end = own.empty() ? 0 : own.back().end;
  for (int line = made.line + 1; line <= end; ++line) {
    if (!has_name(x_text.line(made.file, line), {made.variable})) continue;
    for (const Statement& around : x_text.statements_around(made.file, line))
      if (!around.loop && around.begin > made.line)
        suggest(made.file, made.function, around.begin, 0, "",
                "decides whether " + made.variable + " is taken further");
  }
  return x_out.suspects.size() > before;
}

bool Suspects::suggest_what_drops(std::uint32_t n, bool by_thread) {
  const std::string held = term_text(n);
  const ValueSite& made = site(node(n).site);
  // A maximum takes the key nowhere.
  const bool of_maximum = x_text.line(made.file, made.line).find("max") != std::string::npos;
  // A load of which nothing is made: its own line.
  if (is_load(n)) {
    if (of_maximum) return false;
    x_out.what += "; " + held + " is loaded, and not taken further";
    suggest_node(n, "loads it, and nothing is made of it");
    return true;
  }
  // A shuffle that takes another lane's number where the two belong together.
  for (std::uint32_t taken = n + 1; by_thread && taken < x_graph.nodes.size(); ++taken)
    if (is_load(taken) && node(taken).operand[0] == n && op(n) != ValueOp::kStore &&
        node(taken).where != node(n).where) {
      x_out.what += "; " + held + " is taken by another lane alone";
      suggest_node(taken, "takes what another lane has, whose own goes no further");
      return true;
    }
  if (made.variable.empty() || op(n) == ValueOp::kStore || of_maximum) return false;
  const std::string why = "replaces what " + made.variable + " was: " + held;
  // What the variable is next, in the same thread; or where the source assigns a number to it next.
  std::uint32_t next = n + 1;
  while (next < x_graph.nodes.size() &&
         (node(next).site == 0 || node(next).where != node(n).where ||
          site(node(next).site).variable != made.variable ||
          site(node(next).site).function != made.function ||
          site(node(next).site).callers != made.callers))
    ++next;
  const int next_line = next < x_graph.nodes.size() ? site(node(next).site).line : 0;
  // The same sum goes on, and the variable does not begin anew.
  const Term &before = x_terms[n], &behind = x_terms[next < x_graph.nodes.size() ? next : n];
  const bool goes_on = next_line != 0 && behind.kind == before.kind && behind.row == before.row &&
                       behind.column == before.column;
  std::pair<std::uint32_t, NamedLine> assigned;
  for (std::uint32_t s = 1; s < x_graph.sites.size() && !(goes_on && next_line == made.line); ++s)
    for (NamedLine& use : variables_in(site(s).uses, ','))
      if (use.name == made.variable && site(s).function == made.function && use.line > made.line &&
          (next_line <= made.line || use.line < next_line) &&
          (assigned.first == 0 || use.line < assigned.second.line))
        assigned = {s, std::move(use)};
  x_out.what += "; " + held + " is not taken further";
  if (lacks_steps(before)) suggest_loop_over_lanes(node(n).site);
  suggest_missing_step(node(n).site);
  if (goes_on && assigned.first == 0) be_sure();
  const bool own_of_step = next_line == made.line && assigned.first == 0 && !goes_on &&
                           x_text.declared_above(made.file, made.line, made.variable) == made.line;
  if (own_of_step && suggest_guards_of_uses(made)) return true;
  if (assigned.first != 0)
    suggest(assigned.first, assigned.second, why);
  else if (next_line >= made.line)
    suggest_node(next, why);
  else if (const std::uint32_t added = added_by_atomic(n); added != 0)
    suggest_node(added, "adds it to what is of something else");
  else
    suggest_node(n, "makes it, and nothing is made of it");
  return true;
}

}  // namespace attn_diag::lines
