#include "harness/lines/finding_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {

namespace {

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

bool is_same_lane(const host::CheckFinding& finding) {
  const auto &a = finding.access.thread, &b = finding.other.thread;
  return a[1] == b[1] && a[2] == b[2] && a[0] != b[0] && a[0] % 32 == b[0] % 32;
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
  for (const host::CheckFinding* finding : x_errors) suspect_unpublished_barrier(*finding);
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
      if (finding.offset > 0)
        for (const std::uint32_t s : sites_of(finding.access))
          suggest_lambdas(s, "says how much is accessed there, or where");
      suspect_other_input(finding);
      suspect_base(finding);
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
    if (finding.kind == host::CheckKind::kLaunch) suggest_makers_of_barrier(finding.access);
    if (sites_of(finding.access).empty()) suggest_guard_by_text(finding.access);
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

bool FindingSuspects::same_file(const std::string& a, const std::string& b) {
  return std::filesystem::path(a).filename() == std::filesystem::path(b).filename();
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

void FindingSuspects::suspect_base(const host::CheckFinding& access) {
  const auto buffer = std::find(std::begin(kBuffers), std::end(kBuffers), access.array);
  if (x_graph.whole_blocks || buffer == std::end(kBuffers) || access.access.places.empty()) return;
  note_loaders();
  if (!x_loaders[buffer - std::begin(kBuffers)].empty()) return;
  // No element of it comes in at all: what moves it, and what else in that moves nothing that is right.
  const host::SourcePlace& at = access.access.places.back();
  const std::vector<SourceText::Mover> movers = x_text.moved_by_block(at.file, at.line, "");
  const auto own = std::find_if(movers.begin(), movers.end(), [&](const SourceText::Mover& one) {
    return one.name == access.array;
  });
  if (own == movers.end()) return;
  std::set<std::string> right;
  for (const SourceText::Mover& one : movers)
    if (std::none_of(x_errors.begin(), x_errors.end(),
                     [&](const host::CheckFinding* finding) { return finding->array == one.name; }))
      for (std::string& name : variables_of(x_text.statement(at.file, one.line)))
        right.insert(std::move(name));
  const std::string why = "makes the place of " + access.array + ", of which no element is loaded";
  for (const std::string& name : variables_of(x_text.statement(at.file, own->line)))
    if (!right.contains(name))
      if (const int made = x_text.assigned_above(at.file, own->line, name); made != 0)
        suggest(at.file, at.function, made, 0, name, why);
  suggest(at.file, at.function, own->line, 0, own->name, why);
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
    suggest_calls_of(lambda, at.file, at.function,
                     fmt::format("gives {} the index that leaves {}", lambda.name, array));
  }
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

void FindingSuspects::suggest_makers_of_barrier(const host::CheckAccess& waits) {
  for (const host::SourcePlace& place : waits.places)
    for (const std::string& name : objects_of_calls(x_text.line(place.file, place.line)))
      if (const int made = x_text.assigned_above(place.file, place.line, name); made != 0)
        suggest(place.file, place.function, made, 0, name, "makes what is waited for there");
}

void FindingSuspects::suggest_guard_by_text(const host::CheckAccess& access) {
  if (x_graph.whole_blocks || access.places.empty()) return;
  const host::SourcePlace& place = access.places.front();
  const std::vector<Statement> around = x_text.statements_around(place.file, place.line);
  const auto guard =
      std::find_if(around.rbegin(), around.rend(), [](const Statement& one) { return !one.loop; });
  if (guard != around.rend())
    suggest(place.file, place.function, guard->begin, 0, "", "decides whether that line runs");
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
    // Lanes of other warps: what is made of the lane alone has no part in it.
    if (sources == "t" && is_same_lane(finding))
      for (const NamedLine& use : uses)
        if (comes_of(use, "t") && comes_of(use, "xyz") && use.line != site(s).line &&
            computes(text_of(s, use), use.name) && !is_loop(text_of(s, use)))
          suggest(s, use, "should keep the two apart");
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
