#include "harness/lines/finding_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {

namespace {

bool same_file(const std::string& a, const std::string& b) {
  return std::filesystem::path(a).filename() == std::filesystem::path(b).filename();
}

// In which indices of its block and thread two accesses differ, as NamedLine::sources has them: "y", "xt".
std::string differing_sources(const host::CheckAccess& a, const host::CheckAccess& b) {
  std::string out;
  for (std::size_t i = 0; i < 3; ++i)
    if (a.block[i] != b.block[i]) out += "xyz"[i];
  return out.empty() ? "t" : out;
}

// Blocks that store equal values to one place, while what lies at another of the same array nobody has stored: one of them
// should have stored there.
bool is_left_elsewhere(const host::CheckFinding& race, const host::CheckReport& report) {
  return race.kind == host::CheckKind::kRace && race.space == "global" && race.access.write &&
         race.has_other && race.other.write && race.access.block != race.other.block &&
         std::any_of(report.findings.begin(), report.findings.end(), [&](const auto& read) {
           return read.kind == host::CheckKind::kUninitialisedRead &&
                  read.severity == host::Severity::kError && read.array == race.array;
         });
}

}  // namespace

bool FindingSuspects::suspect(host::CheckReport report, bool moves, bool late_copies) {
  const std::size_t before = x_out.suspects.size();
  std::erase_if(report.findings, [](const host::CheckFinding& finding) {
    return finding.kind == host::CheckKind::kUnwrittenOutput;  // numbers tell of those
  });
  const bool any_error = std::any_of(
      report.findings.begin(), report.findings.end(),
      [](const host::CheckFinding& finding) { return finding.severity == host::Severity::kError; });
  for (host::CheckFinding& finding : report.findings) {
    const bool may_move = moves && !any_error && finding.kind == host::CheckKind::kRace &&
                          finding.severity == host::Severity::kLatent;
    name_files(finding.access.places);
    name_files(finding.other.places);
    name_files(finding.wait.places);
    for (std::vector<host::SourcePlace>& places : finding.others_wait) name_files(places);
    if (finding.severity == host::Severity::kLatent && finding.kind == host::CheckKind::kRace)
      x_latent.push_back(&finding);
    const bool misplaces =
        finding.severity == host::Severity::kBenign && is_left_elsewhere(finding, report);
    // Else it is benign: it reaches an output.
    if (reads_absent_lane(finding) && finding.severity == host::Severity::kLatent && !any_error) {
      if (finding.message.find("returned") != std::string::npos) suspect_divided_warp(finding);
      for (const host::SourcePlace& place : finding.access.places)
        suggest(place.file, place.function, place.line, 0, "", finding.message);
      if (x_out.what.empty() && x_out.suspects.size() > before) x_out.what = finding.message;
    }
    if (finding.severity != host::Severity::kError && !may_move && !misplaces) continue;
    finding.returned_before.file = known_file(finding.returned_before.file);
    x_errors.push_back(&finding);
  }
  // What is out of bounds comes first: what else is found may follow from it.
  std::stable_sort(x_errors.begin(), x_errors.end(), [](const auto* a, const auto* b) {
    const auto rank = [](const host::CheckFinding& finding) {
      return finding.kind == host::CheckKind::kOutOfBounds ? 0
             : finding.severity == host::Severity::kBenign ? 1
                                                           : 2;
    };
    return rank(*a) < rank(*b);
  });
  for (const host::CheckFinding* finding : x_errors) suspect_early_return(*finding);
  if (late_copies)
    for (const host::CheckFinding* finding : x_errors) suspect_waits(*finding);
  suspect_named_barrier();
  // Parts of shared memory that are used for one thing after the other overlap, and only want a barrier between.
  if (!suspect_missing_barrier() && !suspect_unpublished())
    for (const host::CheckFinding* finding : x_errors) suspect_overlap_of(*finding);
  // An index that leaves its array may well leave the stage that a copy was waited for, or come to that of another.
  const bool index_first = has(host::CheckKind::kOutOfBounds);
  const auto suspect_copies = [&] {
    for (const host::CheckFinding* finding : x_errors) suspect_copies_over(*finding);
    for (const host::CheckFinding* finding : x_errors) suspect_stage(*finding);
    for (const host::CheckFinding* finding : x_errors) suspect_waits(*finding);
  };
  if (!index_first) suspect_copies();
  for (const host::CheckFinding* finding : x_errors)
    if (finding->written_above < 0) suspect_guard(*finding);
  for (const host::CheckFinding* finding : x_errors) {
    if (is_one_past(*finding) && is_offset_there(*finding))
      suspect_access(finding->access, finding->element, finding->message);
    if (finding->kind == host::CheckKind::kUninitialisedRead) {
      suspect_registers(*finding);
      suspect_never_stored(*finding);
      suspect_unset(*finding);
      for (const std::string& name : names_of(*finding))
        if (!finding->access.places.empty())
          suggest_other_branch(finding->access.places.front().file,
                               finding->access.places.front().function, name);
    }
    if (is_one_past(*finding) || finding->kind == host::CheckKind::kUninitialisedRead)
      suspect_last_step(*finding);
    if (finding->kind == host::CheckKind::kUninitialisedRead && finding->space == "global")
      for (const std::uint32_t s : sites_of(finding->access)) suggest_guards_of_key(s);
  }
  note_what_is_right_elsewhere();
  for (const host::CheckFinding* finding : x_errors)
    if (is_one_past(*finding)) {
      suspect_unclamped(*finding);
      suspect_computed_end(*finding);
    }
  for (const host::CheckFinding* finding : x_errors) suspect_outer_index(*finding);
  const std::size_t told = x_out.suspects.size();
  if (!has(host::CheckKind::kMisaligned)) suspect_shared_cause();
  for (const host::CheckFinding* error : x_errors) {
    const host::CheckFinding& finding = *error;
    const std::string& array = finding.element.empty() ? finding.array : finding.element;
    if (finding.kind == host::CheckKind::kUninitialisedRead &&
        !has(host::CheckKind::kOutOfBounds)) {
      if (strays(finding)) suspect_access(finding.access, array, finding.message);
      if (ends_early(finding)) suspect_ranges(finding);
      suspect_reader_or_writers(finding);
    }
    // One row of an array, or one number.
    const auto row = static_cast<std::uint64_t>(x_attention.problem().head_dim);
    if (x_graph.whole_blocks && finding.offset == 0 && finding.folded < row) suspect_mask(finding);
    if (!finding.has_other && finding.kind != host::CheckKind::kMisaligned) {
      if (is_offset_there(finding)) suspect_access(finding.access, array, finding.message);
      if (x_only_later_heads) suspect_makers(finding.access, finding.array);
      suspect_subscript(finding);
      suspect_makers(finding.access, finding.array);
    }
    if (finding.kind == host::CheckKind::kOutOfBounds) {
      suspect_other_input(finding);
      suspect_given_index(finding);
    }
    // Two threads store to one place: by an index that is too coarse.
    if (finding.has_other && finding.access.write && finding.other.write) {
      suspect_subscript(finding);
      if (computes_index(finding)) suspect_access(finding.access, array, finding.message);
      suspect_shared_place(finding);
    }
    suspect_unseen_address(finding);
    suspect_stop(finding);
    suspect_access(finding.access, array, finding.message);
    if (finding.kind == host::CheckKind::kOutOfBounds && finding.offset > 0)
      suggest_size_at_launch(finding);
    if (is_one_past(finding)) suspect_limits(finding.access);
    if (finding.has_other) suspect_access(finding.other, array, "the other access");
    if (finding.kind == host::CheckKind::kUninitialisedRead) suspect_stores(finding);
    // What lies before an array, or behind an array of known extents, is an index that is wrong; what lies behind an
    // input or an output a guard as well.
    suspect_site(finding.access, finding.array,
                 finding.offset < 0 || !finding.element.empty() ||
                     finding.kind == host::CheckKind::kAsyncCopy);
    if (finding.has_other) suspect_site(finding.other, finding.array, finding.offset < 0);
    if (x_out.what.empty() && x_out.suspects.size() > before) x_out.what = finding.message;
  }
  if (index_first) suspect_copies();
  spare_what_is_right_elsewhere(told);
  x_errors.clear();
  x_latent.clear();
  return x_out.suspects.size() > before;
}

void FindingSuspects::name_files(std::vector<host::SourcePlace>& places) const {
  for (host::SourcePlace& place : places) place.file = known_file(place.file);
}

std::string FindingSuspects::known_file(const std::string& file) const {
  for (const ValueSite& known : x_graph.sites)
    if (same_file(known.file, file)) return known.file;
  return file;
}

bool FindingSuspects::has(host::CheckKind kind) const {
  return std::any_of(x_errors.begin(), x_errors.end(),
                     [&](const host::CheckFinding* finding) { return finding->kind == kind; });
}

void FindingSuspects::suspect_overlap_of(const host::CheckFinding& race) {
  if (race.kind != host::CheckKind::kRace || race.space != "shared" || !race.access.write ||
      !race.other.write || race.access.places.empty() || race.other.places.empty())
    return;
  const host::SourcePlace &a = race.access.places.front(), &b = race.other.places.front();
  const std::vector<std::string> of_a = stored_arrays(x_text.line(a.file, a.line));
  const std::vector<std::string> of_b = stored_arrays(x_text.line(b.file, b.line));
  if (a.file != b.file || a.line == b.line || of_a.size() != 1 || of_b.size() != 1) return;
  suggest_overlap(a.file, shared_part(a.file, a.line, of_a.front()),
                  shared_part(b.file, b.line, of_b.front()));
}

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
  suggest_stores_beside(at, read.array);
}

void FindingSuspects::suspect_divided_warp(const host::CheckFinding& shuffle) {
  if (x_graph.whole_blocks || shuffle.access.places.empty()) return;
  const host::SourcePlace& at = shuffle.access.places.back();
  for (const int leaves : x_text.returns_above(at.file, at.line)) {
    const std::vector<Statement> around = x_text.statements_around(at.file, leaves);
    const int decides = around.empty() ? leaves : around.back().begin;
    for (const std::string& name : variables_of(x_text.line(at.file, decides))) {
      const int made = x_text.assigned_above(at.file, decides, name);
      if (made != 0 && x_text.is_integer(at.file, made, name) &&
          x_text.line(at.file, made).find("threadIdx") != std::string::npos)
        suggest(at.file, at.function, made, 0, name, "decides which lanes of a warp return");
    }
    suggest(at.file, at.function, decides, 0, "", "lets lanes return that others want to read");
  }
}

void FindingSuspects::suspect_other_input(const host::CheckFinding& access) {
  const auto is_input = [](const std::string& name) {
    return std::find(std::begin(kBuffers), std::end(kBuffers), name) != std::end(kBuffers);
  };
  if (x_graph.whole_blocks || access.space != "global" || !is_input(access.array)) return;
  for (const std::uint32_t s : sites_of(access.access))
    if (is_input(site(s).variable) && site(s).variable != access.array)
      suggest_callers(s, fmt::format("hands on {} for {}", access.array, site(s).variable));
}

void FindingSuspects::suspect_given_index(const host::CheckFinding& access) {
  if (x_graph.whole_blocks || access.access.places.empty()) return;
  const host::SourcePlace& at = access.access.places.front();
  const std::string array = access.element.substr(0, access.element.find('['));
  const std::vector<std::string> names = subscript_names(x_text.line(at.file, at.line), array);
  for (const SourceText::Lambda& lambda : x_text.lambdas_around(at.file, at.line)) {
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return has_name(name, lambda.parameters); }))
      continue;
    for (const int call : x_text.lines_that_name(at.file, at.line, lambda.name))
      if (call > lambda.end && variables_of(x_text.line(at.file, call)).size() > 1)
        suggest(at.file, at.function, call, 0, "",
                fmt::format("gives {} the index that leaves {}", lambda.name, array));
  }
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
    if (!adds) suggest_stores_beside(at, name);
  }
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

void FindingSuspects::suggest_stores_beside(const host::SourcePlace& at, const std::string& name) {
  const int declared = x_text.declared_above(at.file, at.line, name);
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

void FindingSuspects::note_what_is_right_elsewhere() {
  x_accused.clear();
  x_right.clear();
  x_right_limits.clear();
  const auto accuse = [&](std::uint32_t s) { x_accused.insert({site(s).file, site(s).line}); };
  bool only_stores = false;
  for (const host::CheckFinding* finding : x_errors) {
    if (finding->kind == host::CheckKind::kRace) {
      if (!finding->access.write || !finding->other.write) return;  // that is no index
      // What keeps heads apart may be right for all that lies in one block.
      if (finding->access.block != finding->other.block) return;
      only_stores = true;
    }
    for (const std::uint32_t s : sites_of(finding->access)) {
      accuse(s);
      // What was read once unwritten is not found again where the next line reads it.
      for (std::uint32_t other = 1; other < x_graph.sites.size(); ++other)
        if (finding->kind == host::CheckKind::kUninitialisedRead && !site(s).variable.empty() &&
            site(other).variable == site(s).variable && site(other).function == site(s).function)
          accuse(other);
    }
    for (const std::uint32_t s : sites_of(finding->other)) accuse(s);
    if (finding->kind == host::CheckKind::kUninitialisedRead)
      for (const std::uint32_t s : stores_before(*finding)) accuse(s);
  }
  note_loaders();
  std::set<std::pair<std::string, int>> ran;  // a copy from memory to memory is known by its load
  for (const ValueSite& one : x_graph.sites)
    if (one.ran) ran.insert({one.file, one.line});
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueOp is = site(s).op;
    const bool reads = is == ValueOp::kLoad || is == ValueOp::kLoadNumber || is == ValueOp::kInput;
    if (x_accused.contains({site(s).file, site(s).line})) continue;
    if (is == ValueOp::kStore ? !ran.contains({site(s).file, site(s).line})
                              : !reads || only_stores || !site(s).ran)
      continue;
    std::set<Variable> here;
    for (const NamedLine& use : variables_in(site(s).uses, ',')) here.insert(key_of(s, use));
    // The limit of what goes over an input: behind that, another one would be left as well.
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop && (x_loaders[1].contains(s) || x_loaders[2].contains(s)) &&
          std::any_of(condition.tests.begin(), condition.tests.end(),
                      [&](const NamedLine& test) { return here.contains(key_of(s, test)); }))
        for (const NamedLine& test : condition.tests) x_right_limits.insert(key_of(s, test));
    x_right.merge(here);
  }
}

void FindingSuspects::spare_what_is_right_elsewhere(std::size_t from) {
  std::stable_partition(x_out.suspects.begin() + static_cast<std::ptrdiff_t>(from),
                        x_out.suspects.end(), [&](const LineSuspect& suspect) {
                          const LinePlace& at = suspect.place;
                          return !x_right.contains({at.variable, at.file, at.line}) ||
                                 x_accused.contains({at.file, at.line}) ||
                                 is_loop(x_text.statement(at.file, at.line));
                        });
}

void FindingSuspects::suspect_access(const host::CheckAccess& access, const std::string& array,
                                     const std::string& why) {
  if (access.places.empty()) return;
  const host::SourcePlace& place = access.places.front();
  if (place.function.find("operator()") ==
      place.function.npos)  // a lambda stands in the line that has its index
    for (std::size_t i = 1; i < access.places.size(); ++i)
      suggest(access.places[i].file, access.places[i].function, access.places[i].line, 0, "",
              why + ", in what it calls");
  suggest(place.file, place.function, place.line, 0, array, why);
}

std::vector<std::uint32_t> FindingSuspects::sites_of(const host::CheckAccess& access) const {
  std::vector<std::uint32_t> sites;
  if (access.places.empty()) return sites;
  const host::SourcePlace& place = access.places.front();
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueSite& at = site(s);
    const bool accesses = at.op == ValueOp::kStore || at.op == ValueOp::kLoad ||
                          at.op == ValueOp::kLoadNumber || at.op == ValueOp::kInput;
    if (accesses && at.line == place.line && same_file(at.file, place.file)) sites.push_back(s);
  }
  // Of a helper the calls that are not the access's own.
  const auto is_of_other_call = [&](std::uint32_t s) {
    const std::vector<NamedLine> calls = lines_in(site(s).callers);
    return !calls.empty() && calls.front().line != access.places[1].line;
  };
  if (access.places.size() > 1 && !std::all_of(sites.begin(), sites.end(), is_of_other_call))
    std::erase_if(sites, is_of_other_call);
  // "cache[to] = k[from]": one of them.
  const auto is_other = [&](std::uint32_t s) {
    return (site(s).op == ValueOp::kStore) != access.write;
  };
  if (!std::all_of(sites.begin(), sites.end(), is_other)) std::erase_if(sites, is_other);
  return sites;
}

void FindingSuspects::suspect_subscript(const host::CheckFinding& finding) {
  if (x_graph.whole_blocks) return;
  const std::vector<std::uint32_t> sites = sites_of(finding.access);
  const bool named = std::any_of(sites.begin(), sites.end(), [&](std::uint32_t s) {
    return site(s).variable == finding.array;
  });
  for (const std::uint32_t s : sites) {
    if (named && site(s).variable != finding.array) continue;
    if (finding.space == "global" && x_text.is_shared(site(s).file, site(s).variable)) continue;
    const std::string& text = x_text.line(site(s).file, site(s).line);
    std::string array = site(s).variable;
    // A member has no name of its own there: "p.lse[at] = x;".
    if (const std::vector<std::string> stored = stored_arrays(text);
        finding.access.write && stored.size() == 1 && subscript_names(text, array).empty())
      array = stored.front();
    if (!is_plain_subscript(text, array)) continue;
    const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
    for (const std::string& name : subscript_names(text, array))
      for (const NamedLine& use : uses) {
        if (use.name != name || use.line == site(s).line) continue;
        const std::string& made = text_of(s, use);
        const bool in_loop = is_loop(made) && !is_plain_loop(made, true);
        if (in_loop || (!is_loop(made) && computes(made, name)))
          suggest(s, use, "makes the index there");
        if (in_loop)
          for (const Condition& condition : conditions_in(site(s).conditions))
            if (condition.at.line == use.line)
              suggest_computed(s, condition.tests, "makes the range of the index there");
      }
  }
}

bool FindingSuspects::computes_index(const host::CheckFinding& finding) {
  if (x_graph.whole_blocks || finding.access.block != finding.other.block) return false;
  const std::vector<std::uint32_t> sites = sites_of(finding.access);
  return std::any_of(sites.begin(), sites.end(), [&](std::uint32_t s) {
    const std::string& text = x_text.line(site(s).file, site(s).line);
    const std::vector<std::string> stored = stored_arrays(text);
    return stored.size() == 1 && !is_plain_subscript(text, stored.front());
  });
}

void FindingSuspects::suspect_makers(const host::CheckAccess& access, const std::string& array) {
  const std::vector<std::uint32_t> sites = sites_of(access);
  const bool named = std::any_of(sites.begin(), sites.end(),
                                 [&](std::uint32_t s) { return site(s).variable == array; });
  for (const std::uint32_t s : sites)
    if (!named || site(s).variable == array)
      suggest_what_it_is_of(s, "makes what is accessed there");
}

void FindingSuspects::suspect_shared_place(const host::CheckFinding& finding) {
  const std::string sources = differing_sources(finding.access, finding.other);
  // "float* mine = part + (head + h) * n;", and then "mine[0] = x;".
  for (const std::uint32_t s : sites_of(finding.access))
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (sources.find_first_of("xyz") != sources.npos && use.name == site(s).variable &&
          use.line != site(s).line && !x_text.statements_around(site(s).file, use.line).empty() &&
          computes(text_of(s, use), use.name))
        suggest(s, use, "makes where it is stored");
  for (const std::uint32_t s : sites_of(finding.access)) {
    // What is made of these alone says where a block, or a thread, has its part.
    // Of blocks of two heads it is what depends on the head alone; where nothing does, where the pointer was made.
    const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
    const bool heads = sources.find_first_of("yz") != sources.npos;
    bool any = false;
    for (const NamedLine& use : uses) {
      any = any || comes_of(use, sources);
      if ((use.sources == sources || (heads && is_of_block(use))) && use.line != site(s).line &&
          computes(text_of(s, use), use.name))
        suggest(s, use, "should keep the two apart");
    }
    for (const NamedLine& use : uses)
      if (heads && !any && use.name == site(s).variable && computes(text_of(s, use), use.name))
        suggest(s, use, "does not keep the two apart");
    if (heads && !any) suggest_mover_of_others(s);
  }
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
  if (stores.empty()) suggest_stores_by_text(names_of(finding));
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
        suggest_loop_of_store(file, line, name);
        suggest_calls_of_lambda(file, line);
      }
}

void FindingSuspects::suggest_loop_of_store(const std::string& file, int line,
                                            const std::string& name) {
  // "for (int i = thread; i < width / 8; i += threads)": of "i < n" n was made elsewhere.
  const std::vector<Statement> around = x_text.statements_around(file, line);
  const auto loop = std::find_if(around.rbegin(), around.rend(),
                                 [](const Statement& one) { return one.loop; });
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
    for (const int call : x_text.lines_that_name(file, line, lambda.name)) {
      if (call <= lambda.end) continue;
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

void FindingSuspects::suspect_site(const host::CheckAccess& access, const std::string& array,
                                   bool indices_first) {
  std::vector<std::uint32_t> sites = sites_of(access);
  std::stable_partition(sites.begin(), sites.end(),
                        [&](std::uint32_t s) { return site(s).variable == array; });
  for (const std::uint32_t s : sites) {
    if (indices_first) {
      suggest_indices(s, "makes an index there");
      suggest_conditions(s, "loop", "decides how often that line runs");
    }
    // The nearest guard, what the index is computed from, then whatever else decides.
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop) {
        suggest(s, condition.at, "decides whether that line runs");
        break;
      }
    if (site(s).variable == array) {
      const std::vector<std::string> names =
          subscript_names(x_text.line(site(s).file, site(s).line), array);
      std::vector<NamedLine> within = variables_in(site(s).uses, ',');
      std::erase_if(within, [&](const NamedLine& use) {
        return std::find(names.begin(), names.end(), use.name) == names.end();
      });
      suggest_computed(s, within, "makes an index there");
    }
    suggest_computed(s, variables_in(site(s).uses, ','), "makes an index there");
    suggest_conditions(s, "if", "decides whether that line runs");
    suggest_indices(s, "makes an index there");
    suggest_conditions(s, "loop", "decides how often that line runs");
    suggest_callers(s, "calls it");
  }
}

}  // namespace attn_diag::lines
