// What is out of bounds: the index, the guard, the limit or the size that lets it be so.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "harness/lines/finding_suspects.h"

namespace attn_diag::lines {

namespace {

// Which index of the element lies outside; none: that is not known.
std::optional<std::size_t> outer_index_of(const host::CheckFinding& finding) {
  const std::vector<long> at = indices_of(finding.element), extents = indices_of(finding.extents);
  for (std::size_t i = 0; i < std::min(at.size(), extents.size()); ++i)
    if (at[i] < 0 || at[i] >= extents[i]) return i;
  return std::nullopt;
}

// Whether the line keeps a number below another, or chooses by whether it is.
bool clamps(const std::string& line) {
  return line.find("min(") != line.npos || line.find('?') != line.npos;
}

}  // namespace

std::vector<long> indices_of(const std::string& element) {
  std::vector<long> out;
  for (std::size_t at = element.find('['); at != element.npos; at = element.find('[', at + 1))
    out.push_back(std::strtol(element.c_str() + at + 1, nullptr, 10));
  return out;
}

bool is_one_past(const host::CheckFinding& finding) {
  if (finding.kind != host::CheckKind::kOutOfBounds) return false;
  const std::vector<long> at = indices_of(finding.element), extents = indices_of(finding.extents);
  for (std::size_t i = 0; i < std::min(at.size(), extents.size()); ++i)
    if (at[i] == extents[i]) return true;
  // "index 16 is past the end of an array of type 'float[16][32]'"
  constexpr std::string_view kIndex = "index ";
  const std::vector<long> of_type = indices_of(finding.message);
  if (finding.message.starts_with(kIndex) && !of_type.empty() &&
      std::strtol(finding.message.c_str() + kIndex.size(), nullptr, 10) == of_type.front())
    return true;
  return finding.message.find("right behind the end of") != std::string::npos;
}

bool FindingSuspects::is_of_index(std::uint32_t s, const Condition& loop) const {
  const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
  return uses.empty() || std::any_of(uses.begin(), uses.end(), [&](const NamedLine& use) {
           return has_name(use.name, lines::names_of(loop.tests));
         });
}

void FindingSuspects::suspect_last_step(const host::CheckFinding& finding) {
  std::vector<std::uint32_t> sites = sites_of(finding.access);
  const auto is_named = [&](std::uint32_t s) { return site(s).variable == finding.array; };
  if (std::any_of(sites.begin(), sites.end(), is_named))
    std::erase_if(sites, [&](std::uint32_t s) { return !is_named(s); });
  for (const std::uint32_t s : sites)
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop ? goes_up_to(text_of(s, condition.at)) && is_of_index(s, condition)
                         : is_one_past(finding) && lets_the_end_through(text_of(s, condition.at))) {
        // "last = n - 1;", and then "j <= last".
        for (const NamedLine& test : condition.tests)
          if (condition.loop && computes_last(text_of(s, test), test.name))
            suggest(s, test, "says how far the index goes");
        suggest(s, condition.at, "lets the index go one step too far");
      }
}

void FindingSuspects::suspect_guard(const host::CheckFinding& finding) {
  if (x_graph.whole_blocks || finding.offset < 0 ||
      (finding.kind != host::CheckKind::kOutOfBounds &&
       finding.kind != host::CheckKind::kUninitialisedRead))
    return;
  for (const std::uint32_t s : sites_of(finding.access))
    for (const Condition& condition : conditions_in(site(s).conditions)) {
      if (condition.loop) continue;
      const auto [larger, limit] = larger_of_guard(text_of(s, condition.at));
      const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
      const auto is_in_index = [&](const std::vector<std::string>& names, bool of_thread) {
        return std::any_of(uses.begin(), uses.end(), [&](const NamedLine& use) {
          return has_name(use.name, names) && (!of_thread || comes_of(use, "txyz"));
        });
      };
      if (is_in_index(larger, true) && !is_in_index(limit, false))
        return suggest(s, condition.at, "lets through what is beyond a limit, and nothing else");
    }
}

void FindingSuspects::suspect_unclamped(const host::CheckFinding& finding) {
  if (x_graph.whole_blocks) return;
  for (const std::uint32_t s : sites_of(finding.access)) {
    const std::vector<Condition> conditions = conditions_in(site(s).conditions);
    std::vector<NamedLine> limits;
    bool clamped = clamps(x_text.statement(site(s).file, site(s).line));
    for (const Condition& condition : conditions) {
      clamped = clamped || !condition.loop || clamps(text_of(s, condition.at));
      if (!condition.loop) continue;
      for (const NamedLine& test : condition.tests) {
        if (x_right_limits.contains(key_of(s, test))) continue;
        const std::string& text = text_of(s, test);
        if (text.find("max(") != text.npos)
          return suggest(s, test, "does not keep the index below an end");
        clamped = clamped || clamps(text);
        if (test.line != condition.at.line && !is_loop(text)) limits.push_back(test);
      }
    }
    if (!clamped)
      for (const NamedLine& limit : limits)
        suggest(s, limit, "does not keep the index below an end");
  }
}

bool FindingSuspects::is_offset_there(const host::CheckFinding& finding) {
  const std::optional<std::size_t> outside = outer_index_of(finding);
  if (!outside || finding.access.places.empty()) return false;
  const host::SourcePlace& place = finding.access.places.front();
  const std::string& text = x_text.line(place.file, place.line);
  // "[3][0][0]" of 3 is right behind the last one: any of the three may have gone a step too far.
  const std::vector<long> at = indices_of(finding.element);
  const bool behind_all = std::all_of(at.begin() + static_cast<std::ptrdiff_t>(*outside) + 1,
                                      at.end(), [](long index) { return index == 0; });
  for (std::size_t i = *outside; i < (behind_all ? at.size() : *outside + 1); ++i)
    if (offsets_subscript(text, finding.array, i)) return true;
  return false;
}

void FindingSuspects::suspect_computed_end(const host::CheckFinding& finding) {
  if (finding.extents.empty()) return;
  // Whether the index that lies outside was made before the loop.
  const auto is_made_before = [&](const std::string& file, int loop) {
    return std::any_of(x_errors.begin(), x_errors.end(), [&](const host::CheckFinding* error) {
      const std::optional<std::size_t> outside = outer_index_of(*error);
      if (!outside || error->array != finding.array || error->access.places.empty()) return false;
      const host::SourcePlace& at = error->access.places.front();
      const std::string name =
          subscript_name(x_text.line(at.file, at.line), error->array, *outside);
      const int made = name.empty() ? 0 : x_text.assigned_above(at.file, at.line, name);
      return at.file == file && made != 0 && made < loop;
    });
  };
  for (const std::uint32_t s : sites_of(finding.access))
    for (const Condition& condition : conditions_in(site(s).conditions)) {
      const std::string& text = text_of(s, condition.at);
      if (condition.loop && is_loop(text) && !is_plain_loop(text, true) && !clamps(text) &&
          !is_made_before(file_of(s, condition.at), condition.at.line))
        return suggest(s, condition.at, "ends behind the array");
    }
}

void FindingSuspects::suspect_mask(const host::CheckFinding& finding) {
  for (const std::uint32_t s : sites_of(finding.access))
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop)
        return suggest(s, condition.at, "lets through what lies right behind the end");
}

void FindingSuspects::suspect_outer_index(const host::CheckFinding& finding) {
  const std::optional<std::size_t> outside = outer_index_of(finding);
  if (x_graph.whole_blocks || !outside || finding.access.places.empty()) return;
  const host::SourcePlace& at = finding.access.places.front();
  const std::string name = subscript_name(x_text.line(at.file, at.line), finding.array, *outside);
  if (name.empty()) return;
  const std::string why = "makes the index that lies outside";
  const int line = x_text.assigned_above(at.file, at.line, name);
  if (line != 0) {
    const std::string& text = x_text.line(at.file, line);
    if (!computes(text, name) || is_loop(text)) return;
    suggest(at.file, at.function, line, 0, name, why);
    // Another name may be meant.
    suggest(at.file, at.function, at.line, 0, finding.element, finding.message);
  } else if (finding.access.places.size() > 1) {
    const host::SourcePlace& call = finding.access.places[1];
    suggest(call.file, call.function, call.line, 0, name, "gives the index that lies outside");
  }
}

std::vector<std::string> FindingSuspects::names_made_above(const host::SourcePlace& at, int line) {
  std::vector<std::string> names = variables_of(x_text.line(at.file, line));
  std::erase_if(names, [&](const std::string& name) {
    const int made = x_text.assigned_above(at.file, line, name);
    return made == 0 || made == line;
  });
  return names;
}

void FindingSuspects::suggest_makers_above(const host::SourcePlace& at,
                                           const std::vector<std::string>& names,
                                           const std::string& why) {
  constexpr std::size_t kNear = 12;
  std::vector<int> reached = {at.line}, loops;
  for (std::size_t i = 0; i < reached.size() && reached.size() < kNear; ++i)
    for (const std::string& name : i == 0 ? names : names_made_above(at, reached[i])) {
      const int line = x_text.assigned_above(at.file, reached[i], name);
      if (std::find(reached.begin(), reached.end(), line) != reached.end()) continue;
      reached.push_back(line);
      const std::string& text = x_text.line(at.file, line);
      if (text.find("const ") != text.npos && text.find("static ") != text.npos) continue;
      if (computes(text, name) && !is_plain_loop(text, true))
        suggest(at.file, at.function, line, 0, name, why);
      else if (is_loop(text))
        loops.push_back(line);
    }
  for (const int line : loops) suggest(at.file, at.function, line, 0, "", why);
}

void FindingSuspects::suspect_unseen_address(const host::CheckFinding& finding) {
  if (x_graph.whole_blocks || finding.access.places.empty()) return;
  const bool of_address = finding.message.find("shared-memory address") != std::string::npos;
  const bool of_copy =
      finding.kind == host::CheckKind::kLaunch &&
      (of_address || finding.message.find("asynchronous copy") != std::string::npos);
  const bool is_index = finding.kind == host::CheckKind::kOutOfBounds;
  if (!of_copy && !(is_index && sites_of(finding.access).empty())) return;
  const std::vector<host::SourcePlace>& places = finding.access.places;
  if (is_index &&
      !is_plain_subscript(x_text.line(places.front().file, places.front().line), finding.array))
    return;
  // What a helper is given, it does not make.
  const auto at = std::find_if(places.begin(), places.end(), [&](const auto& place) {
    return !names_made_above(place, place.line).empty();
  });
  if (at == places.end()) return;
  if (of_address && at != places.begin())
    suggest(at->file, at->function, at->line, 0, "", "gives it the address");
  std::vector<std::string> names = names_made_above(*at, at->line);
  // The second one of what it is given is where it copies from.
  if (finding.message.find("whose source is") != std::string::npos) {
    const std::vector<std::vector<std::string>> arguments =
        arguments_of(x_text.line(at->file, at->line),
                     at == places.begin() ? "async" : bare_name(at[-1].function));
    if (arguments.size() > 1)
      std::erase_if(names, [&](const auto& name) { return !has_name(name, arguments[1]); });
  }
  suggest_makers_above(*at, names, "makes the address there");
}

bool FindingSuspects::is_own_mask(const host::CheckFinding& finding) {
  if (finding.message.find("warp collective with a mask") == std::string::npos) return false;
  const host::SourcePlace& at = finding.access.places.front();
  const std::vector<std::vector<std::string>> arguments =
      arguments_of(x_text.line(at.file, at.line), "_sync");
  return !arguments.empty() &&
         std::none_of(arguments[0].begin(), arguments[0].end(), [&](const std::string& name) {
           return x_text.is_integer(at.file, at.line, name);
         });
}

void FindingSuspects::suspect_stop(const host::CheckFinding& finding) {
  if (finding.kind != host::CheckKind::kLaunch || finding.access.places.empty()) return;
  const host::SourcePlace& own = finding.access.places.front();
  if (is_own_mask(finding)) suggest(own.file, own.function, own.line, 0, "", finding.message);
  if (finding.unending) suggest_loops_around(finding.access.places);
  std::vector<host::SourcePlace> calls(std::next(finding.access.places.begin()),
                                       finding.access.places.end());
  // Whichever waits in vain may do so by its own fault.
  for (const std::vector<host::SourcePlace>& places : finding.others_wait)
    calls.insert(calls.end(), std::next(places.begin()), places.end());
  // A helper that only hands on what it was given comes last.
  const auto computes_nothing = [&](const host::SourcePlace& call) {
    const std::string& text = x_text.line(call.file, call.line);
    return names_made_above(call, call.line).empty() &&
           text.find_first_of("+-*/%&|^[?") == std::string::npos;
  };
  const auto last = std::stable_partition(
      calls.begin(), calls.end(), [&](const auto& call) { return !computes_nothing(call); });
  const auto suggest_calls = [&](auto begin, auto end) {
    for (auto call = begin; call != end; ++call)
      suggest(call->file, call->function, call->line, 0, "", "calls what stops there");
  };
  if (last != calls.begin()) {
    suggest_calls(calls.begin(), std::next(calls.begin()));
    suggest_late_loops_around(calls.front().file, calls.front().function, calls.front().line);
  }
  suggest_calls(calls.begin(), last);
  for (auto call = calls.begin(); call != last; ++call) {
    const std::vector<std::string> names = names_made_above(*call, call->line);
    std::map<int, std::string, std::greater<>> near;  // what makes each, else nothing
    for (const Statement& around : x_text.statements_around(call->file, call->line))
      if (around.begin < call->line) near[around.begin] = "";
    for (const std::string& name : names)
      near[x_text.assigned_above(call->file, call->line, name)] = name;
    for (const auto& [line, name] : near)
      suggest(call->file, call->function, line, 0, name,
              name.empty() ? "decides whether it comes there" : "makes what that is given");
    suggest_makers_above(*call, names, "makes what that is made of");
  }
  suggest_calls(last, calls.end());
}

void FindingSuspects::suggest_loops_around(const std::vector<host::SourcePlace>& places) {
  for (const host::SourcePlace& place : places) {
    std::vector<Statement> around = x_text.statements_around(place.file, place.line);
    std::erase_if(around, [](const Statement& one) { return !one.loop; });
    for (auto loop = around.rbegin(); loop != around.rend(); ++loop)
      suggest(place.file, place.function, loop->begin, 0, "", "is around where it goes on");
  }
}

void FindingSuspects::suspect_shared_cause() {
  if (x_graph.whole_blocks) return;
  std::vector<std::uint32_t> sites;  // one of each line
  bool one_past = false;
  for (const host::CheckFinding* finding : x_errors) {
    if (finding->kind != host::CheckKind::kOutOfBounds) continue;
    std::vector<std::uint32_t> there = sites_of(finding->access);
    if (there.empty()) return;
    std::stable_partition(there.begin(), there.end(),
                          [&](std::uint32_t s) { return site(s).variable == finding->array; });
    one_past = one_past || is_one_past(*finding);
    if (std::none_of(sites.begin(), sites.end(),
                     [&](std::uint32_t s) { return site(s).line == site(there.front()).line; }))
      sites.push_back(there.front());
  }
  if (sites.size() < 2) return;
  const auto is_of_all = [&](const auto& is_there) {
    return std::all_of(sites.begin() + 1, sites.end(), is_there);
  };
  const std::uint32_t first = sites.front();
  // What it tests may be what an access without a fault goes by as well: then that is as it should be.
  const auto is_right_elsewhere = [&](const Condition& one) {
    const std::vector<std::string> names = tested_names(text_of(first, one.at));
    return std::any_of(x_right.begin(), x_right.end(), [&](const Variable& right) {
      const auto& [_, file, line] = right;
      const std::string& made = x_text.line(file, line);
      return !is_loop(made) && has_name(made, names);
    });
  };
  const auto suggest_shared_conditions = [&] {
    for (const Condition& one : conditions_in(site(first).conditions))
      if (!is_right_elsewhere(one) && is_of_all([&](std::uint32_t s) {
            return is_among(one, conditions_in(site(s).conditions));
          }) &&
          !(one.loop && is_plain_loop(text_of(first, one.at), true)) &&
          !(one.loop && clamps(text_of(first, one.at)) && !goes_up_to(text_of(first, one.at)))) {
        suggest(first, one.at, "decides about each of the accesses that are out of bounds");
        if (one.loop) suggest_known_limit(first, one);
        return;
      }
  };
  // "for (t = 0; t < tokens; ++t)", of an index that is the first behind the last: tokens.
  const auto suggest_shared_limits = [&] {
    for (const Condition& one : conditions_in(site(first).conditions)) {
      if (!one.loop || !is_plain_loop(text_of(first, one.at), true) ||
          !is_of_all(
              [&](std::uint32_t s) { return is_among(one, conditions_in(site(s).conditions)); }))
        continue;
      for (const NamedLine& test : one.tests)
        if (const std::string& text = text_of(first, test);
            test.line != one.at.line && !is_loop(text) && computes(text, test.name) &&
            has_name(text_of(first, one.at), {test.name}) &&
            !x_right_limits.contains(key_of(first, test)))
          suggest(first, test, "makes the limit of each index that is out of bounds");
    }
  };
  if (one_past && !x_only_later_heads) {
    suggest_shared_conditions();
    suggest_shared_limits();
  }
  for (const NamedLine& use : variables_in(site(first).uses, ',')) {
    const auto is_used = [&](std::uint32_t s) {
      const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
      return std::any_of(uses.begin(), uses.end(), [&](const NamedLine& one) {
        return one.line == use.line && one.file == use.file && one.name == use.name;
      });
    };
    if (is_of_all(is_used) && computes(text_of(first, use), use.name))
      suggest(first, use, "is in each index that is out of bounds");
  }
  suggest_shared_conditions();
}

void FindingSuspects::suggest_limits(std::uint32_t s, const Condition& loop,
                                     const std::string& why) {
  std::vector<NamedLine> limits = loop.tests;
  std::erase_if(limits, [&](const NamedLine& test) {
    return !has_name(test.name, loop_limits(text_of(s, loop.at)));
  });
  suggest_computed(s, limits, why);
}

void FindingSuspects::suggest_known_limit(std::uint32_t s, const Condition& loop) {
  const std::string& file = file_of(s, loop.at);
  for (const std::string& name : loop_limits(text_of(s, loop.at))) {
    const auto is_seen = [&](const NamedLine& test) { return test.name == name; };
    if (std::any_of(loop.tests.begin(), loop.tests.end(), is_seen)) continue;
    suggest_computed_above(file, site(s).function, loop.at.line, name,
                           "makes the limit of the index");
  }
}

void FindingSuspects::suspect_limits(const host::CheckAccess& access) {
  if (x_graph.whole_blocks) return;
  // The loop over rows first: that over columns ends where a row does.
  for (const std::uint32_t s : sites_of(access)) {
    const std::vector<std::string> rows =
        row_names(x_text.line(site(s).file, site(s).line), site(s).variable);
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop && has_name(text_of(s, condition.at), rows) &&
          is_plain_loop(text_of(s, condition.at), true) &&
          std::none_of(condition.tests.begin(), condition.tests.end(), [&](const NamedLine& test) {
            return test.line != condition.at.line && computes(text_of(s, test), test.name);
          }))
        suggest(s, condition.at, "goes to a row behind the last");
  }
  for (const std::uint32_t s : sites_of(access))
    for (const Condition& condition : conditions_in(site(s).conditions)) {
      if (condition.loop && !is_plain_loop(text_of(s, condition.at), true))
        suggest(s, condition.at, "makes the limit of the index");
      suggest_computed(s, condition.tests, "makes the limit of the index");
    }
}

void FindingSuspects::suggest_size_at_launch(const host::CheckFinding& finding) {
  if (finding.message.find("the end of dynamic shared memory") == std::string::npos) return;
  struct Launch {
    std::string file;
    int line = 0;
    std::vector<std::string> names;  // in its size
    bool of_kernel = false;
  };
  const std::set<std::string> files = files_of_sites();
  const std::string kernel = finding.kernel.substr(0, finding.kernel.find('<'));
  std::vector<Launch> found;
  for (const std::string& file : files)
    for (const int line : x_text.lines_that_launch(file)) {
      const std::string& launch = x_text.statement(file, line);
      if (const auto names = shared_size_names(launch))
        found.push_back({file, line, *names, has_name(launch, {kernel})});
    }
  // What a generic lambda launches has no name of its own.
  if (std::any_of(found.begin(), found.end(), [](const Launch& one) { return one.of_kernel; }))
    std::erase_if(found, [](const Launch& one) { return !one.of_kernel; });
  else if (found.size() > 1)
    return;
  for (const Launch& one : found) {
    const std::size_t told = x_out.suspects.size();
    for (const std::string& name : one.names)
      suggest_computed_above(one.file, "", one.line, name, kSizeAtLaunch);
    if (x_out.suspects.size() == told) suggest(one.file, "", one.line, 0, "", kSizeAtLaunch);
  }
}

}  // namespace attn_diag::lines
