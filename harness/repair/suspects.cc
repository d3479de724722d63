#include "harness/repair/suspects.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "attn_diag/harness/lines.h"

namespace attn_diag::repair {
namespace {

namespace fs = std::filesystem;

bool names_file(const SourcePlace& place, const Code& code) {
  if (code.path == place.file || code.shown == place.file) return true;
  const std::string named = fs::path(place.file).lexically_normal().string();
  return code.path.size() > named.size() && code.path.ends_with(named) &&
         code.path[code.path.size() - named.size() - 1] == '/';
}

// How little reason there is for an edit at its place: 0 at the first suspect, a little more at each that follows, 1 more
// close by, 2 not far. Elsewhere 3.
double remoteness(const Edit& edit, const std::vector<SourcePlace>& suspects,
                  const std::vector<bool>& here) {
  constexpr double kOfEach = 0.4, kOfAll = 1.5;
  double nearest = edit.on_host ? 2 : 3;  // few, and a launch may be wrong wherever it shows
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    if (!here[i]) continue;
    const int lines =
        std::max({edit.line - suspects[i].line, suspects[i].line - edit.last_line, 0});
    const int distance = lines == 0 ? 0 : lines <= 2 ? 1 : lines <= 8 ? 2 : 3;
    nearest = std::min(nearest, distance + std::min(kOfEach * static_cast<double>(i), kOfAll));
  }
  return nearest;
}

}  // namespace

std::vector<SourcePlace> Suspects::in_order() const {
  if (!by_user.empty()) return by_user;
  std::vector<SourcePlace> all;
  for (const auto* places : {&by_error, &by_check, &by_lines})
    for (const SourcePlace& place : *places)
      if (std::find(all.begin(), all.end(), place) == all.end()) all.push_back(place);
  return all;
}

bool has_lines(const Trial& trial) { return !trial.instrumented(); }

std::vector<SourcePlace> suspected_lines(const std::string& spec, const Trial& trial) {
  const Kernel kernel = Kernel::load(spec, "host");
  const LineDivergence lines = trace_lines({kernel, trial.problem, *trial.inputs, trial.run});
  std::vector<SourcePlace> places;
  if (lines.answer != LineAnswer::kLine && lines.answer != LineAnswer::kUnsure) return places;
  for (const LineSuspect& suspect : lines.suspects) {
    const SourcePlace place{suspect.place.file, suspect.place.line};
    if (place.line > 0 && std::find(places.begin(), places.end(), place) == places.end())
      places.push_back(place);
  }
  return places;
}

Bytes to_bytes(const TrialVerdict& verdict) {
  WireWriter to;
  to.truth(verdict.agrees)
      .number(static_cast<std::uint64_t>(verdict.wrong + 1))
      .text(verdict.what)
      .truth(verdict.order)
      .truth(verdict.refused)
      .truth(verdict.left_out)
      .number(verdict.kernels.size());
  for (const std::string& kernel : verdict.kernels) to.text(kernel);
  to.number(verdict.places.size());
  for (const SourcePlace& place : verdict.places)
    to.text(place.file).number(static_cast<std::uint64_t>(place.line));
  return to.take();
}

TrialVerdict verdict_of(WireReader& from) {
  TrialVerdict verdict;
  verdict.agrees = from.truth();
  verdict.wrong = static_cast<std::int64_t>(from.number()) - 1;
  verdict.what = from.text();
  verdict.order = from.truth();
  verdict.refused = from.truth();
  verdict.left_out = from.truth();
  verdict.kernels.resize(from.count());
  for (std::string& kernel : verdict.kernels) kernel = from.text();
  verdict.places.resize(from.count());
  for (SourcePlace& place : verdict.places) {
    place.file = from.text();
    place.line = static_cast<int>(from.number());
  }
  return verdict;
}

std::vector<int> ordered(const Program& program, const std::vector<Edit>& edits,
                         const Suspects& all) {
  constexpr int kLarge = 6;  // of words and signs that come in
  const std::vector<SourcePlace> suspects = all.in_order();
  std::vector<std::vector<bool>> here;  // by file: which of the suspects are in it
  for (const auto& code : program.files) {
    here.emplace_back();
    for (const SourcePlace& place : suspects) here.back().push_back(names_file(place, *code));
  }
  std::vector<int> order(edits.size());
  std::vector<double> distance(edits.size());
  for (std::size_t i = 0; i < edits.size(); ++i) {
    order[i] = static_cast<int>(i);
    // Far off the usual and large at once: hundreds at each line, and hardly ever what was meant.
    const bool is_odd = edits[i].tier > 1 && edits[i].size >= kLarge;
    distance[i] = edits[i].tier + (is_odd ? 1 : 0) +
                  remoteness(edits[i], suspects, here[static_cast<std::size_t>(edits[i].file)]);
    // Before any other edit of the first suspect.
    if (all.order && edits[i].operation == kBarrierOperation) distance[i] -= 1.5;
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
    if (distance[x] != distance[y]) return distance[x] < distance[y];
    return edits[x].size < edits[y].size;
  });
  return order;
}

}  // namespace attn_diag::repair
