// Of what `check` finds, where threads should have waited: for each other, or for copies.
#include <algorithm>
#include <optional>
#include <set>

#include "harness/lines/finding_suspects.h"

namespace attn_diag::lines {
namespace {

std::vector<host::SourcePlace> last_first(std::vector<host::SourcePlace> places) {
  std::sort(places.begin(), places.end(),
            [](const host::SourcePlace& a, const host::SourcePlace& b) { return a.line > b.line; });
  return places;
}

}  // namespace

void FindingSuspects::suspect_named_barrier() {
  for (const host::CheckFinding* race : x_errors) {
    if (race->kind != host::CheckKind::kRace || race->access.block != race->other.block ||
        race->access.write == race->other.write || race->access.interval != race->other.interval ||
        race->access.places.empty() || race->other.places.empty())
      continue;
    const host::CheckAccess& write = race->access.write ? race->access : race->other;
    const host::CheckAccess& read = race->access.write ? race->other : race->access;
    const host::SourcePlace &from = write.places.front(), &to = read.places.front();
    if (from.file != to.file || from.function != to.function) continue;
    for (int line = from.line + 1; line < to.line; ++line) {
      // One that is told which barrier it is: "bar_sync(1 + warp, 64)".
      const std::vector<std::string> names = variables_of(x_text.line(from.file, line));
      if (!names.empty() && x_text.has_barrier(from.file, line - 1, line + 1))
        suggest(from.file, from.function, line, 0, names.front(),
                "stands between the two, and does not keep these threads apart");
    }
  }
}

void FindingSuspects::suspect_unpublished_barrier(const host::CheckFinding& race) {
  if (race.kind != host::CheckKind::kRace || !race.has_other || race.space != "shared") return;
  // One initialises it, the other is at it already.
  for (const auto& [init, use] :
       {std::pair(&race.access, &race.other), std::pair(&race.other, &race.access)}) {
    if (!init->write || init->atomic || !use->atomic || init->places.empty() || use->places.empty())
      continue;
    if (std::none_of(init->places.begin(), init->places.end(), [&](const host::SourcePlace& at) {
          return x_text.statement(at.file, at.line).find("init") != std::string::npos;
        }))
      continue;
    const host::SourcePlace &at = init->places.back(), &other = use->places.back();
    int end = x_text.end_of_statement(at.file, at.line);
    for (const Statement& around : x_text.statements_around(at.file, at.line))
      if (other.file != at.file || !around.has(other.line)) {
        end = around.end;
        break;
      }
    suggest(at.file, at.function, end, 0, race.array,
            "a barrier is missing behind it, before others use " + race.array);
    suggest(at.file, at.function, at.line, 0, race.array, "initialises it");
  }
}

bool FindingSuspects::suspect_missing_barrier() {
  std::optional<Gap> gap;
  std::string array;
  // Two stores that race where a load does as well may want the same barrier; by themselves it is their index.
  const bool any_read =
      std::any_of(x_errors.begin(), x_errors.end(), [](const host::CheckFinding* finding) {
        return finding->kind == host::CheckKind::kRace && finding->has_other &&
               !(finding->access.write && finding->other.write);
      });
  for (const host::CheckFinding* error : x_errors) {
    const host::CheckFinding& finding = *error;
    // What is out of bounds, and what two threads write, is an index; a copy wants its own wait.
    if (finding.kind == host::CheckKind::kOutOfBounds ||
        (finding.kind == host::CheckKind::kAsyncCopy && finding.wait.places.empty() &&
         (reads_own_copy(finding) || !is_race_as_well(finding))))
      return false;
    const bool of_wait = !finding.wait.places.empty();
    if ((finding.kind != host::CheckKind::kRace && !of_wait) || !finding.has_other) continue;
    const bool both_write = finding.access.write && finding.other.write;
    if (both_write && !any_read) return false;
    const std::optional<Gap> one = gap_of(finding);
    if (!one) return false;
    if (!gap || (one->of_one_line && !gap->of_one_line)) {
      gap = one;
      array = finding.array;
    } else if (one->file == gap->file && one->goes_round == gap->goes_round) {
      // What lies in all of them.
      const int begin =
          gap->goes_round ? std::min(gap->begin, one->begin) : std::max(gap->begin, one->begin);
      const int end = gap->goes_round ? std::max(gap->end, one->end) : std::min(gap->end, one->end);
      gap->of_copy = gap->of_copy || one->of_copy;
      if (begin < end) {
        gap->begin = begin;
        gap->end = end;
      } else if (!gap->goes_round && begin < std::min(gap->last, one->last)) {
        // Within the loop that one of them is before.
        if (one->begin > gap->begin) gap = one;
      }
    }
  }
  if (!gap) return false;
  if (!gap->goes_round)
    if (const std::optional<Gap> steps = gap_of_steps_before(*gap, array)) gap = steps;
  // Others are told that a copy is there behind its wait.
  if (const int wait = gap->of_copy && !gap->goes_round
                           ? x_text.last_wait_for_copies(gap->file, gap->begin, gap->end)
                           : 0;
      wait != 0)
    gap->begin = x_text.end_of_statement(gap->file, wait);
  const std::string why = "a barrier is missing ";
  if (gap->goes_round) {
    suggest(gap->file, "", gap->end, 0, array, why + "behind it");
    suggest(gap->file, "", gap->begin, 0, array, why + "before it");
    // Mostly it stands at the end of the loop.
    for (const Statement& around : x_text.statements_around(gap->file, gap->end))
      if (around.loop && around.has(gap->begin))
        for (int line = gap->end + 1; line < around.end; ++line)
          if (x_text.line(gap->file, line).find_first_not_of(" \t") != std::string::npos) {
            suggest(gap->file, "", around.end, 0, array, why + "before it");
            break;
          }
  } else {
    // Behind the block that the one access is in, and the other is not.
    const auto closes_blocks = [&](int line) {
      const std::string text = x_text.trimmed(gap->file, line);
      return !text.empty() && text.find_first_not_of('}') == std::string::npos;
    };
    while (gap->begin + 1 < gap->end && closes_blocks(gap->begin + 1)) ++gap->begin;
    suggest(gap->file, "", gap->begin, 0, array, why + "behind it");
    suggest(gap->file, "", gap->end, 0, array, why + "before it");
  }
  return true;
}

bool FindingSuspects::suspect_unpublished() {
  const host::CheckFinding* race = nullptr;
  bool both_write = false;
  for (const host::CheckFinding* finding : x_errors) {
    if (finding->kind != host::CheckKind::kRace || !finding->has_other ||
        finding->access.block == finding->other.block || finding->access.places.empty() ||
        finding->other.places.empty())
      return false;
    if (finding->access.write == finding->other.write)
      both_write = true;
    else if (race == nullptr)
      race = finding;
  }
  // "sum[i] = sum[i] * a + b;" of two blocks reads what the other writes, and they write both, at one line.
  const auto line_of = [](const host::CheckAccess& access) { return access.places.front().line; };
  if (race == nullptr || (both_write && line_of(race->access) != line_of(race->other)))
    return false;
  const host::CheckAccess& write = race->access.write ? race->access : race->other;
  const host::CheckAccess& read = race->access.write ? race->other : race->access;
  const host::SourcePlace at = places_in_kernel(write, read).front();
  const int line = x_text.tells_other_blocks(at.file, at.line);
  if (line != 0)
    suggest(at.file, "", line, 0, race->array,
            "lets other blocks read on: a barrier or a fence is missing before it");
  const host::SourcePlace by = places_in_kernel(read, write).front();
  const bool behind = by.file == at.file && by.line > at.line;
  if (line == 0 && !(behind && x_text.has_grid_barrier(at.file))) return false;
  const int next = line != 0 ? line : by.line;
  suggest(at.file, "", statement_of(at.file, at.line, next, true), 0, race->array,
          "is read by another block: a barrier is missing behind it");
  // "if (!is_last) return;"
  for (const int leaves : x_text.returns_above(by.file, by.line))
    if (line != 0 && by.file == at.file && leaves > line)
      suggest(by.file, "", leaves, 0, "", "decides which blocks read it");
  return true;
}

bool FindingSuspects::reads_own_copy(const host::CheckFinding& copy) {
  return copy.has_other && copy.access.thread == copy.other.thread &&
         copy.access.block == copy.other.block;
}

bool FindingSuspects::is_race_as_well(const host::CheckFinding& copy) const {
  const auto is_at = [](const host::CheckAccess& a, const host::CheckAccess& b) {
    return !a.places.empty() && !b.places.empty() &&
           a.places.front().line == b.places.front().line &&
           a.places.front().file == b.places.front().file;
  };
  return std::any_of(x_errors.begin(), x_errors.end(), [&](const host::CheckFinding* race) {
    return race->kind == host::CheckKind::kRace &&
           ((is_at(race->access, copy.access) && is_at(race->other, copy.other)) ||
            (is_at(race->access, copy.other) && is_at(race->other, copy.access)));
  });
}

std::vector<host::SourcePlace> FindingSuspects::places_in_kernel(
    const host::CheckAccess& access, const host::CheckAccess& other) const {
  // Two lines of one function, or the lines where the kernel calls them.
  if (access.places.front().function == other.places.front().function)
    return {access.places.front()};
  if (access.places.back().function == other.places.back().function) return {access.places.back()};
  return calls_in_kernel(access);
}

std::vector<host::SourcePlace> FindingSuspects::calls_in_kernel(
    const host::CheckAccess& access) const {
  std::vector<host::SourcePlace> out;
  for (const std::uint32_t s : sites_of(access)) {
    const std::vector<NamedLine> calls = lines_in(site(s).callers);
    if (calls.size() < access.places.size()) continue;
    const NamedLine& call = calls[access.places.size() - 1];
    out.push_back({file_of(s, call), call.line, ""});
  }
  if (out.empty()) out.push_back(access.places.back());
  return out;
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_of(const host::CheckFinding& race) {
  if (race.access.places.empty() || race.other.places.empty() ||
      race.access.block != race.other.block)
    return std::nullopt;
  if (!race.wait.places.empty())
    if (const std::optional<Gap> gap = gap_behind_wait(race)) return gap;
  const std::vector<host::SourcePlace> places = places_in_kernel(race.access, race.other);
  const std::vector<host::SourcePlace> others = places_in_kernel(race.other, race.access);
  const bool some = places.size() + others.size() > 2;
  const bool of_block = race.severity == host::Severity::kError;  // of lanes it is latent
  std::optional<Gap> gap;
  for (const host::SourcePlace& a : places)
    for (const host::SourcePlace& b : others) {
      if (a.file != b.file) continue;
      // A copy is in order with what was read before it was issued, whether it is in flight or not.
      const bool of_copy = race.access.async || race.other.async || !race.wait.places.empty();
      const bool first_copies = race.access.async || (!race.other.async && race.access.write);
      const std::optional<Gap> one = a.line == b.line ? gap_of_step(a.file, a.line)
                                     : of_copy
                                         ? gap_of_copy(a.file, first_copies ? b.line : a.line,
                                                       first_copies ? a.line : b.line, of_block)
                                         : gap_between(a.file, std::min(a.line, b.line),
                                                       std::max(a.line, b.line), some, of_block);
      if (!one || (gap && gap->goes_round <= one->goes_round)) continue;
      gap = one;
      gap->of_copy = of_copy;
    }
  return gap;
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_of_steps_before(const Gap& behind,
                                                                         const std::string& array) {
  for (const host::CheckFinding* race : x_latent) {
    if (race->array != array || race->access.places.empty() || race->other.places.empty()) continue;
    const host::SourcePlace at = places_in_kernel(race->access, race->other).front();
    const host::SourcePlace other = places_in_kernel(race->other, race->access).front();
    if (at.file != behind.file || other.file != at.file || at.line != other.line) continue;
    for (const Statement& around : x_text.statements_around(at.file, at.line))
      if (around.loop && around.end == behind.begin) return gap_of_step(at.file, at.line);
  }
  return std::nullopt;
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_of_step(const std::string& file,
                                                                 int line) {
  // Two threads that store to one place there have an index in common.
  const auto is_there = [&](const host::CheckAccess& access) {
    return std::any_of(access.places.begin(), access.places.end(),
                       [&](const auto& place) { return place.line == line && place.file == file; });
  };
  for (const host::CheckFinding* finding : x_errors)
    if (finding->access.write && finding->other.write && is_there(finding->access) &&
        is_there(finding->other))
      return std::nullopt;
  std::optional<Gap> gap;
  for (const Statement& around : x_text.statements_around(file, line)) {
    if (around.loop) {
      if (x_text.has_barrier(file, around.begin - 1, around.end + 1, true)) return std::nullopt;
      gap = Gap{.file = file, .begin = line, .end = x_text.end_of_statement(file, line)};
      gap->goes_round = gap->of_one_line = true;
    } else if (gap && gap->begin == line) {
      gap->begin = around.begin;
      gap->end = std::max(around.end, gap->end);
    }
  }
  return gap;
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_of_copy(const std::string& file, int read,
                                                                 int copy, bool of_block) {
  // Read behind the copy: that of the same step, where no barrier at all lies between them and one lies on the way round.
  if (copy < read) {
    const std::optional<Gap> same = gap_between(file, copy, read, false, true);
    const bool waits =
        same && !same->goes_round && x_text.last_wait_for_copies(file, copy, read) != 0;
    for (const Statement& around : x_text.statements_around(file, copy))
      if (waits && around.loop && around.has(read))
        if (x_text.has_barrier(file, read, around.end + 1, true) ||
            x_text.has_barrier(file, around.begin - 1, copy, true))
          return same;
  }
  return gap_from(file, read, copy, of_block);
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_behind_wait(
    const host::CheckFinding& race) {
  const host::SourcePlace& wait = race.wait.places.back();
  for (const host::SourcePlace& access : places_in_kernel(race.access, race.wait)) {
    if (access.file != wait.file) continue;
    std::optional<Gap> gap =
        gap_from(wait.file, wait.line, access.line, race.severity == host::Severity::kError);
    if (!gap) continue;
    // What is missing is told beside the wait itself.
    (gap->goes_round ? gap->end : gap->begin) = x_text.end_of_statement(wait.file, wait.line);
    return gap;
  }
  return std::nullopt;
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_from(const std::string& file, int from,
                                                              int to, bool of_block) {
  Gap gap;
  gap.file = file;
  if (from < to) {
    gap.begin = statement_of(file, from, to, true);
    gap.end = statement_of(file, to, from, false);
    gap.last = to;
    if (gap.begin >= gap.end || x_text.passes_barrier(file, from, to, of_block))
      return std::nullopt;
    return gap;
  }
  for (const Statement& around : x_text.statements_around(file, from)) {
    if (!around.loop || !around.has(to)) continue;
    if (x_text.passes_barrier(file, from, around.end + 1, of_block) ||
        x_text.passes_barrier(file, around.begin - 1, to, of_block))
      return std::nullopt;
    gap.goes_round = true;
    gap.begin = statement_of(file, to, from, false);
    gap.end = statement_of(file, from, to, true);
    return gap;
  }
  return std::nullopt;
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_between(const std::string& file, int a,
                                                                 int b, bool among_others,
                                                                 bool of_block) {
  Gap gap;
  gap.file = file;
  gap.begin = statement_of(file, a, b, true);
  gap.end = statement_of(file, b, a, false);
  gap.last = b;
  if (gap.begin >= gap.end || a == b) return std::nullopt;
  if (!x_text.has_barrier(file, gap.begin, gap.end, of_block) &&
      !(among_others && x_text.passes_barrier(file, a, b, of_block)))
    return gap;
  gap.goes_round = true;
  gap.begin = statement_of(file, a, b, false);
  gap.end = statement_of(file, b, a, true);
  for (const Statement& around : x_text.statements_around(file, a))
    if (around.loop && around.has(b)) return gap;
  return std::nullopt;
}

void FindingSuspects::suspect_stage(const host::CheckFinding& copy) {
  if (copy.kind != host::CheckKind::kAsyncCopy || copy.access.places.empty() ||
      copy.other.places.empty() || !copy.wait.places.empty() || is_copy_over(copy))
    return;
  const bool late_alone = is_late_alone(copy);
  if (!late_alone && !is_race_as_well(copy)) return;
  const auto suggest_makers = [&](const host::CheckAccess& access, const host::CheckAccess& other,
                                  const std::string& why) {
    for (const host::SourcePlace& at : places_in_kernel(access, other))
      for (const std::string& name :
           subscript_names(x_text.statement(at.file, at.line), copy.array)) {
        const int line = x_text.assigned_above(at.file, at.line, name);
        // Which of several tiles it is does not hang on the thread.
        if (line != 0 && !is_loop(x_text.statement(at.file, line)) &&
            !has_name(x_text.statement(at.file, line), {"threadIdx"}))
          suggest(at.file, "", line, 0, name, why);
      }
  };
  const std::string of_read = "makes the place that is read while it is copied to";
  // A pointer into the array, of which a value is known only where it is none of the compiler's constants.
  if (late_alone) {
    for (const std::uint32_t s : sites_of(copy.access))
      for (const NamedLine& use : variables_in(site(s).uses, ','))
        if (use.name == site(s).variable && !x_text.is_shared(site(s).file, use.name))
          suggest(s, use, of_read);
    std::vector<host::SourcePlace> reads = places_in_kernel(copy.access, copy.other);
    reads.insert(reads.begin(), copy.access.places.front());
    for (const host::SourcePlace& read : reads)
      for (const std::string& name : indexed_names(x_text.line(read.file, read.line)))
        if (const int line = x_text.assigned_above(read.file, read.line, name);
            line != 0 && has_name(x_text.line(read.file, line), {copy.array}))
          suggest(read.file, read.function, line, 0, name, of_read);
  }
  suggest_makers(copy.other, copy.access, "makes the place that is copied to while it is read");
  suggest_makers(copy.access, copy.other, of_read);
}

bool FindingSuspects::is_late_alone(const host::CheckFinding& copy) {
  std::set<std::pair<std::string, int>> late;
  for (const host::CheckFinding* finding : x_errors)
    if (finding->kind == host::CheckKind::kAsyncCopy)
      for (const host::SourcePlace& place : finding->other.places)
        late.insert({place.file, place.line});
  for (const host::SourcePlace& place : copy.other.places)
    for (const int line : x_text.same_call_beside(place.file, place.line))
      if (late.count({place.file, line}) == 0) return true;
  return false;
}

bool FindingSuspects::multiplies_q_by_v() const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (node(n).is_input()) continue;
    const auto [a, b] = operands_of(n);
    if (are_elements_of(a, 0, b, 2)) return true;
  }
  return false;
}

bool FindingSuspects::is_copy_over(const host::CheckFinding& copy) {
  return copy.kind == host::CheckKind::kAsyncCopy && copy.access.write &&
         !copy.access.places.empty() && !copy.other.places.empty() &&
         copy.access.interval == copy.other.interval;
}

void FindingSuspects::suspect_copies_over(const host::CheckFinding& copy) {
  if (!is_copy_over(copy)) return;
  const host::SourcePlace &later = copy.access.places.front(), &first = copy.other.places.front();
  const bool one_line = later.line == first.line && later.file == first.file;
  if (one_line) {
    // The later of them is the one that finds another there.
    for (const host::SourcePlace& at : last_first(calls_in_kernel(copy.access)))
      suggest_copy_over(at, copy.array);
    suggest_wait_in_loop(copy);
    return;
  }
  // Where something is left without a number, it is what the earlier one should have brought, as far as v is not taken for k.
  const bool later_first = !has(host::CheckKind::kUninitialisedRead) || multiplies_q_by_v();
  for (const bool is_later : {later_first, !later_first})
    for (const host::SourcePlace& at : is_later ? places_in_kernel(copy.access, copy.other)
                                                : places_in_kernel(copy.other, copy.access))
      suggest_copy_over(at, copy.array);
}

void FindingSuspects::suggest_wait_in_loop(const host::CheckFinding& copy) {
  for (const host::SourcePlace& at : calls_in_kernel(copy.access)) {
    const int wait = x_text.barrier_above(at.file, at.line);
    for (const Statement& around : x_text.statements_around(at.file, at.line))
      if (around.loop && wait > around.begin)
        return suggest(at.file, at.function, wait, 0, "", "should wait until that is free");
  }
}

void FindingSuspects::suggest_copy_over(const host::SourcePlace& at, const std::string& array) {
  suggest(at.file, at.function, at.line, 0, array,
          "copies to where another copy is still under way");
}

void FindingSuspects::suspect_waits(const host::CheckFinding& early) {
  if (early.kind != host::CheckKind::kAsyncCopy || early.access.places.empty() ||
      early.other.places.empty() || is_copy_over(early) ||
      (is_race_as_well(early) && !reads_own_copy(early)))
    return;
  // A store does not wait for a copy: behind it, it would undo that.
  if (early.access.write && !early.access.async && early.other.write) {
    for (const host::SourcePlace& at : places_in_kernel(early.access, early.other))
      suggest(at.file, at.function, at.line, 0, early.array, "stores to where a copy still writes");
    suspect_subscript(early);
  }
  for (const host::SourcePlace& read : places_in_kernel(early.access, early.other))
    for (const int line : x_text.waits_for_copies(read.file, read.line))
      suggest(read.file, "", line, 0, "", "may leave the copy in flight that is read too early");
  const std::vector<host::SourcePlace> copies =
      last_first(places_in_kernel(early.other, early.access));
  for (const host::SourcePlace& read : places_in_kernel(early.access, early.other))
    if (!copies.empty() && copies.front().file == read.file && !x_graph.whole_blocks &&
        x_text.waits_for_copies(read.file, read.line).empty())
      suggest_lack_of_wait(read, copies.front().line);
  for (const host::SourcePlace& one : copies)
    suggest(one.file, one.function, one.line, 0, "", "issues the copy that is read too early");
}

void FindingSuspects::suggest_lack_of_wait(const host::SourcePlace& read, int copy) {
  const int begin = statement_of(read.file, read.line, copy, false);
  // Other threads' copies are there where they have waited before a barrier.
  for (int line = begin - 1; line > copy; --line)
    if (x_text.has_barrier(read.file, line - 1, line + 1))
      return suggest(read.file, "", line, 0, "",
                     "is before what a copy writes is read, without a wait before it");
  suggest(read.file, "", begin, 0, "", "reads what a copy writes, and no wait is before it");
}

int FindingSuspects::statement_of(const std::string& file, int line, int other, bool its_end) {
  const int end = x_text.end_of_statement(file, line);
  for (const Statement& around : x_text.statements_around(file, line))
    if (!around.has(other)) return its_end ? std::max(around.end, end) : around.begin;
  return its_end ? end : line;
}

void FindingSuspects::suspect_early_return(const host::CheckFinding& finding) {
  const host::SourcePlace& barrier = finding.returned_before;
  if (finding.kind != host::CheckKind::kUninitialisedRead || barrier.line == 0) return;
  for (const int line : x_text.returns_above(barrier.file, barrier.line)) {
    suggest(barrier.file, "", line, 0, "",
            "threads return here, before the barrier at line " + std::to_string(barrier.line) +
                ", and store nothing of what is read behind it");
    const std::vector<Statement> around = x_text.statements_around(barrier.file, line);
    if (!around.empty() && around.back().begin != line)
      suggest(barrier.file, "", around.back().begin, 0, "", "decides which threads return");
  }
}

}  // namespace attn_diag::lines
