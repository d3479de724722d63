// What is read and nobody has written: who should have stored it, and what kept them from it.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/lines/finding_suspects.h"
#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {

void FindingSuspects::suspect_unset(const host::CheckFinding& read) {
  if (read.access.places.empty() || read.array.empty()) return;
  const host::SourcePlace& at = read.access.places.front();
  const std::vector<int> stores = x_text.lines_that_store(at.file, read.array);
  const int declared = x_text.declared_above(at.file, at.line, read.array);
  const bool adds = std::find(stores.begin(), stores.end(), at.line) != stores.end();
  const bool is_set = std::any_of(stores.begin(), stores.end(),
                                  [&](int line) { return declared <= line && line < at.line; });
  if (!adds || declared == 0 || is_set) return;
  suggest(at.file, at.function, declared, 0, read.array,
          "declares it, and nothing stores to it before it is added to");
  suggest_barrier_before(read);
  suggest_stores_beside(at, read.array, declared);
}

void FindingSuspects::suggest_barrier_before(const host::CheckFinding& read) {
  if (x_graph.whole_blocks || read.space != "shared" || read.access.places.empty() ||
      read.written_below >= 0 || read.written_above >= 0)
    return;
  const host::SourcePlace& at = read.access.places.back();
  const int barrier = x_text.barrier_above(at.file, at.line);
  const int first = x_text.function_begin(at.file, at.line);
  const auto is_before = [&](const std::string& file, int line) {
    return file == at.file && first <= line && line < barrier;
  };
  if (barrier == 0) return;
  for (const std::uint32_t s : stores_before(read)) {
    const std::vector<NamedLine> calls = lines_in(site(s).callers);
    if (is_before(site(s).file, site(s).line) ||
        std::any_of(calls.begin(), calls.end(),
                    [&](const NamedLine& call) { return is_before(file_of(s, call), call.line); }))
      return;
  }
  // By another name, as "Stage& to = stages[0];", it may be stored to all the same.
  if (!x_text.is_shared(at.file, read.array)) return;
  const int declared = x_text.declared_above(at.file, at.line, read.array);
  for (const int line : x_text.lines_that_name(at.file, at.line, read.array))
    if (is_before(at.file, line) && line != declared) return;
  suggest(at.file, at.function, barrier, 0, "",
          "waits for what is stored to " + read.array + ", and nothing is before it");
}

void FindingSuspects::suspect_registers(const host::CheckFinding& read) {
  if (x_graph.whole_blocks || read.space != "local" || read.array.empty()) return;
  for (const host::SourcePlace& at : read.access.places) {
    const std::vector<int> lines = x_text.lines_that_name(at.file, at.line, read.array);
    const int declared = x_text.declared_above(at.file, at.line, read.array);
    if (declared == 0 || !x_text.lines_that_store(at.file, read.array).empty()) continue;
    for (const int line : lines)
      if (declared < line && line < at.line)
        suggest(at.file, at.function, line, 0, read.array, "names it before, and leaves this out");
  }
}

void FindingSuspects::suspect_never_stored(const host::CheckFinding& read) {
  if (x_graph.whole_blocks || read.access.places.empty()) return;
  const host::SourcePlace& at = read.access.places.front();
  // The host has written some of it.
  if ((read.written_below >= 0 || read.written_above >= 0) && read.writer.places.empty()) return;
  for (const std::string& name : names_of(read)) {
    std::vector<int> stores = x_text.lines_that_store(at.file, name);
    const bool adds = std::erase(stores, at.line) > 0;  // "sum[i] += x;"
    if (!stores.empty() || !has_name(x_text.line(at.file, at.line), {name})) continue;
    suggest_ends_without(at, name);
    if (!adds) suggest_stores_beside(at, name, x_text.declared_above(at.file, at.line, name));
  }
  // "from.v[j]", a member of what is an element of the array.
  for (const std::string& member : indexed_members(x_text.line(at.file, at.line)))
    if (const int declared = x_text.member_declared_above(at.file, at.line, member);
        declared != 0 && x_text.lines_that_store(at.file, member).empty())
      suggest_stores_beside(at, member, declared);
  // A helper is given its address: "atomic_max(m + row, x);".
  if (read.space != "global" || read.access.places.size() < 2) return;
  const host::SourcePlace& call = read.access.places[1];
  const std::string& text = x_text.line(call.file, call.line);
  for (const std::string& name : variables_of(text))
    if (is_plain_argument(text, name) && x_text.lines_that_store(call.file, name).empty() &&
        !x_text.is_integer(call.file, call.line, name))
      suggest_ends_without(call, name);
}

void FindingSuspects::suggest_ends_without(const host::SourcePlace& at, const std::string& name) {
  for (const int end : x_text.ends_of_functions_that_ignore(at.file, name)) {
    suggest(at.file, at.function, end, 0, name, "ends, and nothing was stored to it");
    int last = end - 1;
    while (last > 0 && tokens_of(x_text.line(at.file, last)).empty()) --last;
    suggest(at.file, at.function, last, 0, "", "is the last before that");
  }
}

void FindingSuspects::suggest_stores_beside(const host::SourcePlace& at, const std::string& name,
                                            int declared) {
  if (declared == 0) return;
  struct Beside {
    std::string name;
    int line = 0;
    bool alike =
        false;  // it has the same extents: k's tile where v's is missing, not that of scores
  };
  std::vector<Beside> others;
  const std::string extents = extents_of(x_text.line(at.file, declared), name);
  for (const int line : {declared, declared + 1, declared - 1})
    for (const std::string& other : indexed_names(x_text.line(at.file, line)))
      if (const std::vector<int> stores = x_text.lines_that_store(at.file, other);
          other != name && !stores.empty() && line < stores.front() && stores.front() < at.line)
        others.push_back(
            {other, stores.front(), extents_of(x_text.line(at.file, line), other) == extents});
  std::stable_partition(others.begin(), others.end(), [](const Beside& one) { return one.alike; });
  if (others.empty()) return;
  suggest(at.file, at.function, others.front().line, 0, others.front().name,
          "stores to what is declared beside " + name +
              ", to which nothing is stored before it is read");
}

bool FindingSuspects::points_into(std::uint32_t s, const std::string& array) {
  const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
  return std::any_of(uses.begin(), uses.end(), [&](const NamedLine& use) {
    return use.name == site(s).variable && has_name(text_of(s, use), {array});
  });
}

std::vector<std::string> FindingSuspects::names_of(const host::CheckFinding& finding) {
  std::vector<std::string> names = {finding.array};
  // A pointer into it, as the access knows it.
  if (stores_to(names).empty())
    for (const std::uint32_t s : sites_of(finding.access))
      if (!site(s).variable.empty() && (finding.space == "global" || points_into(s, finding.array)))
        names.push_back(site(s).variable);
  // Other pointers that are made of the same one: "mine = part + i;", and then "its = part + j;".
  if (finding.space == "global" && !x_graph.whole_blocks && !finding.access.places.empty() &&
      stores_to(names).empty()) {
    const host::SourcePlace& at = finding.access.places.front();
    const int made = x_text.assigned_above(at.file, at.line, names.back());
    bool moves = false;
    const std::vector<std::string> of =
        made == 0 || !makes_pointer(x_text.line(at.file, made), names.back())
            ? std::vector<std::string>{}
            : made_of(x_text.line(at.file, made), names.back(), moves);
    std::set<std::string> others;
    for (const ValueSite& one : x_graph.sites)
      if (one.op == ValueOp::kStore && one.file == at.file && !one.variable.empty())
        if (const int line = x_text.assigned_above(one.file, one.line, one.variable);
            line != 0 && makes_pointer(x_text.line(one.file, line), one.variable) && !of.empty() &&
            has_name(x_text.line(one.file, line), {of.front()}))
          others.insert(one.variable);
    names.insert(names.end(), others.begin(), others.end());
  }
  return names;
}

bool FindingSuspects::strays(const host::CheckFinding& read) {
  const std::vector<long> at = indices_of(read.element);
  const Problem& p = x_attention.problem();
  if (at.size() > 1 && at.back() >= std::max(p.head_dim, p.head_dim_v)) return true;
  // Of what a kernel was given: by a pointer to another part.
  if (read.space == "global" && read.array.find_first_of("# ") == std::string::npos) {
    const std::vector<std::uint32_t> sites = sites_of(read.access);
    const auto comes_of_it = [&](std::uint32_t s) {
      const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
      return std::any_of(uses.begin(), uses.end(), [&](const NamedLine& use) {
        return has_name(text_of(s, use), {read.array});
      });
    };
    return !x_graph.whole_blocks && (!sites.empty() || read.access.places.size() > 1) &&
           std::none_of(read.access.places.begin(), read.access.places.end(),
                        [&](const host::SourcePlace& place) {
                          return has_name(x_text.statement(place.file, place.line), {read.array});
                        }) &&
           std::none_of(sites.begin(), sites.end(), comes_of_it);
  }
  if (read.space != "shared") return false;
  // By the name of another part of the array, which is stored to by its own name.
  bool own = false, other = false;
  for (const std::uint32_t s : sites_of(read.access)) {
    own = own || site(s).variable == read.array ||
          has_name(x_text.line(site(s).file, site(s).line), {read.array});
    other = other || (!site(s).variable.empty() && !stores_to({site(s).variable}).empty());
  }
  return other && !own && !stores_to({read.array}).empty();
}

bool FindingSuspects::ends_early(const host::CheckFinding& read) const {
  const std::vector<long> at = indices_of(read.element);
  return at.size() > 1 && at.back() == 0 && at[at.size() - 2] > 0 && !has(host::CheckKind::kRace);
}

std::vector<std::uint32_t> FindingSuspects::stores_before(const host::CheckFinding& finding) {
  const std::vector<std::string> names = names_of(finding);
  std::vector<std::uint32_t> stores = stores_to(names);
  // A fragment that has the name of a pointer elsewhere is no memory.
  if (finding.space == "global")
    std::erase_if(stores, [&](std::uint32_t s) {
      const ValueSite& at = site(s);
      return x_text.declares_fragment_above(at.file, at.line, at.variable) != 0;
    });
  if (!stores.empty()) return stores;
  // By another name, as in another kernel: what the line reads elsewhere.
  if (!x_stores_known)
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
      if (const std::uint32_t from = is_load(n) ? node(n).operand[0] : 0;
          from != 0 && op(from) == ValueOp::kStore)
        x_stores_read[node(n).site].insert(node(from).site);
  x_stores_known = true;
  // Not what the line reads of other arrays.
  std::vector<std::uint32_t> sites = sites_of(finding.access);
  const auto is_other = [&](std::uint32_t s) {
    return !site(s).variable.empty() && !has_name(site(s).variable, names);
  };
  if (finding.space == "shared") std::erase_if(sites, is_other);
  std::set<std::uint32_t> found;
  for (const std::uint32_t s : sites)
    if (const auto read = x_stores_read.find(s); read != x_stores_read.end())
      found.insert(read->second.begin(), read->second.end());
  stores.assign(found.begin(), found.end());
  return stores;
}

void FindingSuspects::suggest_few_blocks(const std::vector<std::uint32_t>& stores) {
  const std::set<std::string> files = files_of_sites();
  for (const std::uint32_t s : stores)
    for (const std::string& file : files)
      for (const int line : x_text.lines_that_launch(file)) {
        const std::string& launch = x_text.statement(file, line);
        if (has_name(launch, {site(s).function.substr(0, site(s).function.find('<'))}) &&
            rounds_blocks_down(launch))
          suggest(file, "", line, 0, "", kBlocksAtLaunch);
      }
}

void FindingSuspects::suspect_reader_or_writers(const host::CheckFinding& read) {
  const bool below = read.written_below >= 0, above = read.written_above >= 0;
  if (x_graph.whole_blocks || read.space != "global" || !(below || above))
    return suspect_left_out(read);
  const auto told_by = [&](const auto& act) {
    std::vector<LineSuspect> before = std::exchange(x_out.suspects, {});
    act();
    return std::exchange(x_out.suspects, std::move(before));
  };
  suggest_few_blocks(stores_before(read));
  const std::vector<LineSuspect> writers = told_by([&] { suspect_left_out(read); });
  const std::vector<LineSuspect> reader = told_by([&] {
    if (above) {
      suspect_subscript(read);
      for (const std::uint32_t s : sites_of(read.access)) {
        std::vector<NamedLine> computed = variables_in(site(s).uses, ',');
        std::erase_if(computed, [&](const NamedLine& use) { return is_loop(text_of(s, use)); });
        suggest_computed(s, computed, "makes an index there");
      }
    }
    suspect_limits(read.access);
    suspect_makers(read.access, read.array);
    suspect_site(read.access, read.array, false);
  });
  // Between what is written something was left out; past its end somebody reads too far. Or the other way round.
  const std::vector<LineSuspect>&first = above ? writers : reader,
        &second = above ? reader : writers;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i)
    for (const std::vector<LineSuspect>* const list : {&first, &second})
      if (i < list->size()) {
        const LineSuspect& one = (*list)[i];
        suggest(one.place.file, one.place.function, one.place.line, one.place.column,
                one.place.variable, one.why);
      }
}

void FindingSuspects::suspect_ranges(const host::CheckFinding& finding) {
  for (const std::uint32_t s : stores_before(finding))
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop && !is_plain_loop(text_of(s, condition.at), true))
        return suggest(s, condition.at, "ends before all of it is stored");
}

void FindingSuspects::suggest_what_keeps_from(const std::vector<std::uint32_t>& stores) {
  // A copy from memory to memory is known by its load.
  for (const ValueSite& one : x_graph.sites)
    for (const std::uint32_t s : stores)
      if ((one.ran || one.stored) && one.line == site(s).line && one.file == site(s).file) return;
  if (is_cut()) return;
  for (const std::uint32_t s : stores)
    if (const std::vector<Condition> conditions = conditions_in(site(s).conditions);
        !conditions.empty())
      suggest(s, conditions.front().at, "lets nothing be stored there");
}

void FindingSuspects::suspect_left_out(const host::CheckFinding& finding) {
  const host::CheckAccess& read = finding.access;
  std::vector<std::uint32_t> stores = stores_before(finding);
  // Who stored what lies beside it should have stored it as well.
  if (!finding.writer.places.empty())
    std::stable_partition(stores.begin(), stores.end(), [&](std::uint32_t s) {
      return site(s).line == finding.writer.places.front().line &&
             same_file(site(s).file, finding.writer.places.front().file);
    });
  // "sum[i] += x;" reads itself.
  std::stable_partition(stores.begin(), stores.end(), [&](std::uint32_t s) {
    return read.places.empty() || site(s).line != read.places.front().line;
  });
  for (const std::uint32_t s : stores) suggest_late_loops(s);
  suggest_barrier_before(finding);
  if (stores.empty()) suggest_stores_by_text(names_of(finding));
  if (stores.empty()) suggest_copies_to_members(read);
  suggest_what_keeps_from(stores);
  // Blocks that take parts of the work in turn: "for (work = blockIdx.x; work < n; work += gridDim.x)".
  for (const std::uint32_t s : stores)
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (finding.space == "global" && condition.loop &&
          text_of(s, condition.at).find("gridDim") != std::string::npos)
        suggest(s, condition.at, "decides which parts are made and stored");
  for (const std::uint32_t s : stores) {
    suggest_range_of_store(s);
    std::vector<NamedLine> of_thread = variables_in(site(s).uses, ',');
    std::erase_if(of_thread, [&](const NamedLine& use) {
      const bool of_blocks = finding.space == "global" && !use.sources.empty();
      return use.line == site(s).line || (!of_blocks && use.sources.find('t') == std::string::npos);
    });
    suggest_computed(s, of_thread, "makes the index of a store to it");
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop) {
        suggest(s, condition.at, "decides what is stored to it");
        break;
      }
    suggest_lambdas(s, "makes what the line that stores to it is given");
    suggest(s, "stores to it");
  }
}

void FindingSuspects::suggest_lambdas(std::uint32_t s, const std::string& why) {
  const ValueSite& at = site(s);
  for (const std::string& name : called_names(x_text.statement(at.file, at.line)))
    if (const int line = x_text.assigned_above(at.file, at.line, name);
        line != 0 && x_text.line(at.file, line).find('[') != std::string::npos)
      suggest(at.file, at.function, line, 0, name, why);
}

void FindingSuspects::suggest_range_of_store(std::uint32_t s) {
  const std::string& text = x_text.line(site(s).file, site(s).line);
  // A pointer to it may have another name: "to[i] = from[i];".
  std::string array = site(s).variable;
  if (const std::vector<std::string> stored = stored_arrays(text);
      !stored.empty() && subscript_names(text, array).empty())
    array = stored.front();
  if (!is_plain_subscript(text, array)) return;
  const std::vector<std::string> names = subscript_names(text, array);
  if (names.size() != 1) return;
  for (const NamedLine& use : variables_in(site(s).uses, ','))
    if (use.name == names.front() && is_loop(text_of(s, use))) {
      const std::string why = "decides which elements are stored to it";
      // "i < n": n.
      if (is_plain_loop(text_of(s, use), true))
        for (const Condition& condition : conditions_in(site(s).conditions))
          if (condition.at.line == use.line) suggest_limits(s, condition, why);
      suggest(s, use, why);
    }
}

void FindingSuspects::suggest_stores_by_text(const std::vector<std::string>& names) {
  const std::set<std::string> files = files_of_sites();
  for (const std::string& name : names)
    for (const std::string& file : files)
      for (const int line : x_text.lines_that_store(file, name)) {
        suggest(file, "", line, 0, name, "stores to it");
        suggest_taker_beside(file, line);
        suggest_loop_of_store(file, line, name);
        suggest_calls_of_lambda(file, line);
      }
}

void FindingSuspects::suggest_copies_to_members(const host::CheckAccess& read) {
  if (x_graph.whole_blocks || read.places.empty()) return;
  const host::SourcePlace& at = read.places.front();
  for (const std::string& member : indexed_members(x_text.line(at.file, at.line))) {
    if (x_text.member_declared_above(at.file, at.line, member) == 0) continue;
    for (const int line : x_text.lines_that_store(at.file, member)) {
      for (const std::string& name : variables_of(x_text.statement(at.file, line)))
        if (const int made = x_text.assigned_above(at.file, line, name);
            made != 0 && x_text.is_integer(at.file, line, name) &&
            !is_loop(x_text.line(at.file, made)))
          suggest(at.file, at.function, made, 0, name,
                  "says how much is stored to it, or from where");
      suggest(at.file, at.function, line, 0, member, "stores to it");
    }
  }
}

void FindingSuspects::suggest_taker_beside(const std::string& file, int line) {
  for (const std::string& name : assigned_names(x_text.line(file, line))) {
    if (x_text.lines_that_name(file, line, name).size() != 1) continue;
    for (const int beside : {line + 1, line - 1})
      for (const std::string& other : assigned_names(x_text.line(file, beside)))
        for (const int takes : x_text.lines_that_name(file, beside, other))
          if (takes > std::max(line, beside))
            return suggest(file, "", takes, 0, other,
                           "takes " + other + ", and nothing takes " + name);
  }
}

void FindingSuspects::suggest_loop_of_store(const std::string& file, int line,
                                            const std::string& name) {
  // "for (int i = thread; i < width / 8; i += threads)": of "i < n" n was made elsewhere.
  const std::vector<Statement> around = x_text.statements_around(file, line);
  const auto loop =
      std::find_if(around.rbegin(), around.rend(), [](const Statement& one) { return one.loop; });
  if (loop == around.rend()) return;
  const std::string why = "decides how much of it is stored";
  if (!is_plain_loop(x_text.line(file, loop->begin), true))
    return suggest(file, "", loop->begin, 0, name, why);
  for (const std::string& limit : loop_limits(x_text.line(file, loop->begin)))
    if (const int made = x_text.assigned_above(file, loop->begin, limit); made != 0)
      suggest(file, "", made, 0, limit, why);
}

void FindingSuspects::suggest_calls_of_lambda(const std::string& file, int line) {
  for (const SourceText::Lambda& lambda : x_text.lambdas_around(file, line))
    for (const int call : lambda.calls) {
      const std::vector<Statement> around = x_text.statements_around(file, call);
      if (!around.empty() && !around.back().loop)
        suggest(file, "", around.back().begin, 0, "", "decides whether it is stored to");
    }
}

void FindingSuspects::suspect_stores(const host::CheckFinding& finding) {
  const std::vector<std::uint32_t> stores = stores_before(finding);
  for (const std::uint32_t s : stores) suggest_late_loops(s);
  if (stores.empty()) suggest_stores_by_text(names_of(finding));
  suggest_what_keeps_from(stores);
  for (const std::uint32_t s : stores) {
    suggest_range_of_store(s);
    suggest(s, "stores to it");
    suggest_conditions(s, nullptr, "decides what is stored to it");
    suggest_indices(s, "makes the index of a store to it");
  }
}

}  // namespace attn_diag::lines
