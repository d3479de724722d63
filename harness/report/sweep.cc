#include "harness/report/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/report/summary.h"
#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

constexpr std::size_t kMostShown = 12;  // failing cases, missing shards

struct CaseVerdict {
  const char* verdict;  // as lines have it
  const char* one;
  const char* many;
  JunitCase::Kind junit;
};
// In the order in which they are said.
constexpr std::array<CaseVerdict, 6> kVerdicts = {{
    {"diverges", "diverges", "diverge", JunitCase::Kind::kFailed},
    {"latent", "is latent", "are latent", JunitCase::Kind::kFailed},
    {"failed", "failed", "failed", JunitCase::Kind::kError},
    {"could_not_compare", "could not be judged", "could not be judged", JunitCase::Kind::kError},
    {"agrees", "agrees", "agree", JunitCase::Kind::kPassed},
    {"unsupported", "is unsupported", "are unsupported", JunitCase::Kind::kSkipped},
}};

std::string text_of(const Json& line, const char* key) {
  return line.contains(key) && line[key].is_string() ? line[key].get<std::string>() : "";
}
double number_of(const Json& line, const char* key) {
  return line.contains(key) && line[key].is_number() ? line[key].get<double>() : 0;
}

const CaseVerdict* kind_of(const Json& line) {
  const std::string verdict = text_of(line, "verdict");
  for (const CaseVerdict& kind : kVerdicts)
    if (verdict == kind.verdict) return &kind;
  return nullptr;
}

bool is_wrong(const Json& line) {
  const CaseVerdict* const kind = kind_of(line);
  return kind != nullptr && kind->junit == JunitCase::Kind::kFailed;
}
bool is_no_answer(const Json& line) {
  const CaseVerdict* const kind = kind_of(line);
  return kind == nullptr || kind->junit == JunitCase::Kind::kError;
}

std::map<std::string, std::int64_t> counts_of(const SweepView& view) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [number, line] : view.lines) ++counts[text_of(line, "verdict")];
  return counts;
}

std::int64_t missing_cases(const SweepView& view) { return view.cases - std::ssize(view.lines); }

// "3 diverge, 1,000 agree, 7 are missing"
std::string counts_text(const SweepView& view) {
  const auto counts = counts_of(view);
  std::vector<std::string> parts;
  for (const CaseVerdict& kind : kVerdicts)
    if (const auto found = counts.find(kind.verdict); found != counts.end())
      parts.push_back(count(found->second) + " " + (found->second == 1 ? kind.one : kind.many));
  if (const std::int64_t missing = missing_cases(view); missing > 0)
    parts.push_back(count(missing) + (missing == 1 ? " is missing" : " are missing"));
  return join(parts, ", ");
}

std::vector<std::pair<std::string, std::string>> values_of(const Json& line) {
  std::vector<std::pair<std::string, std::string>> values;
  if (line.contains("flags") && line["flags"].is_object())
    for (const auto& [flag, value] : line["flags"].items())
      values.emplace_back(flag, value.is_string() ? value.get<std::string>() : value.dump());
  return values;
}

std::string flag_name(const std::string& flag) {
  return flag.starts_with("--") ? flag.substr(2) : flag;
}

// The rows of a table that are worth a look, those that diverge first; cheapest first within a kind, which is the order
// of the lines' estimated costs.
std::string table_text(const SweepView& view, const Style& style) {
  std::vector<const Json*> shown;
  for (const bool wrong : {true, false})
    for (const auto& [number, line] : view.lines)
      if (wrong ? is_wrong(line) : is_no_answer(line)) shown.push_back(&line);
  if (shown.empty()) return "";
  std::stable_sort(shown.begin(), shown.end(), [](const Json* a, const Json* b) {
    if (is_wrong(*a) != is_wrong(*b)) return is_wrong(*a);
    return number_of(*a, "cost") < number_of(*b, "cost");
  });
  const std::size_t all = shown.size();
  shown.resize(std::min(all, kMostShown));
  std::vector<std::string> columns = {">case"};
  std::vector<std::string> flags;
  for (const Json* line : shown)
    for (const auto& [flag, value] : values_of(*line))
      if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
  for (const std::string& flag : flags) columns.push_back(flag_name(flag));
  columns.insert(columns.end(), {"verdict", ">err/bound", "first divergence or reason"});
  Table table(columns);
  for (const Json* line : shown) {
    std::vector<std::string> cells = {line->at("case").dump()};
    const auto values = values_of(*line);
    for (const std::string& flag : flags) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [&](const auto& v) { return v.first == flag; });
      cells.push_back(found == values.end() ? "" : found->second);
    }
    cells.push_back(text_of(*line, "verdict"));
    cells.push_back(is_wrong(*line) && line->contains("max_err_over_bound")
                        ? (line->at("max_err_over_bound").is_number()
                               ? ratio(number_of(*line, "max_err_over_bound"))
                               : text_of(*line, "max_err_over_bound"))
                        : "");
    cells.push_back(text_of(*line, "remark"));
    table.add(cells);
  }
  std::string s =
      fmt::format("\n  {}, the smallest first:\n\n",
                  all > shown.size() ? fmt::format("{} of the {} that do not agree", shown.size(),
                                                   count(static_cast<std::int64_t>(all)))
                                     : "What does not agree");
  return s + table.text(style);
}

// Which values of a flag never fail, and which do: said where there are both.
std::string values_text(const SweepView& view, const Style& style) {
  struct Tally {
    std::int64_t wrong = 0, judged = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::pair<std::string, Tally>>> by_flag;
  for (const auto& [number, line] : view.lines) {
    const bool wrong = is_wrong(line);
    if (!wrong && text_of(line, "verdict") != "agrees") continue;
    for (const auto& [flag, value] : values_of(line)) {
      auto& tallies = by_flag[flag];
      if (tallies.empty()) order.push_back(flag);
      auto at = std::find_if(tallies.begin(), tallies.end(),
                             [&, v = value](const auto& t) { return t.first == v; });
      if (at == tallies.end()) at = tallies.insert(tallies.end(), {value, {}});
      ++at->second.judged;
      at->second.wrong += wrong;
    }
  }
  std::string s;
  for (const std::string& flag : order) {
    constexpr std::size_t kMostValues = 24;
    const auto& tallies = by_flag[flag];
    std::vector<std::string> right, wrong;
    for (const auto& [value, tally] : tallies) {
      if (tally.wrong == 0)
        right.push_back(value);
      else
        wrong.push_back(tally.wrong == tally.judged
                            ? value
                            : fmt::format("{} ({} of {})", value, tally.wrong, tally.judged));
    }
    if (right.empty() || wrong.empty() || tallies.size() > kMostValues) continue;
    s += "    " +
         wrap(fmt::format("{}: wrong at {}; never at {}", flag_name(flag), join(wrong, ", "),
                          join(right, ", ")),
              style.width - 4, 6) +
         '\n';
  }
  return s.empty() ? "" : "\n  By value, of the cases that were judged:\n" + s;
}

std::string hunts_text(const SweepView& view) {
  const Json* cheapest = nullptr;
  for (const auto& [number, line] : view.lines)
    if (is_wrong(line) &&
        (cheapest == nullptr || number_of(line, "cost") < number_of(*cheapest, "cost")))
      cheapest = &line;
  if (cheapest == nullptr || text_of(*cheapest, "hunt").empty()) return "";
  return "\n  Find where, in the smallest: " + text_of(*cheapest, "hunt") + '\n';
}

std::string unsupported_text(const SweepView& view, const Style& style) {
  for (const auto& [number, line] : view.lines)
    if (text_of(line, "verdict") == "unsupported")
      return "  " +
             wrap("Unsupported, the first: case " + std::to_string(number) + ": " +
                      text_of(line, "remark"),
                  style.width - 2, 4) +
             '\n';
  return "";
}

std::string missing_text(const SweepView& view, const Style& style) {
  std::string s;
  for (std::size_t i = 0; i < std::min(view.missing.size(), kMostShown); ++i) {
    const MissingShard& m = view.missing[i];
    s += fmt::format("  Missing: {} of the {} of shard {}{}\n",
                     m.missing == m.cases ? "all" : count(m.missing), plural(m.cases, "case"),
                     m.shard, m.missing == m.cases ? "" : ", which did not come to its end");
  }
  if (view.missing.size() > kMostShown)
    s += fmt::format(
        "  Missing: cases of {} more\n",
        plural(std::ssize(view.missing) - static_cast<std::int64_t>(kMostShown), "shard"));
  if (!view.missing.empty() && !view.finish.empty()) {
    std::string line = view.finish;
    if (const std::size_t at = line.find('@'); at != std::string::npos)
      line.replace(at, 1, view.missing.front().shard);
    s += "  Run the rest: " + line + '\n';
  }
  for (const std::string& file : view.cut_short)
    s += "  " +
         wrap("Half a line at the end of " + file +
                  " was not read: its process is writing, or was killed.",
              style.width - 2, 4) +
         '\n';
  if (view.repeated > 0)
    s += fmt::format("  {} run more than once and counted once\n",
                     view.repeated == 1 ? "1 case was" : count(view.repeated) + " cases were");
  if (!view.contradicted.empty())
    s += "  " +
         paint(
             style, Colour::kRed,
             fmt::format("Run twice with different verdicts: case {}", ranges(view.contradicted))) +
         '\n';
  return s;
}

// Seconds of all cases together, and the slowest.
std::string time_text(const SweepView& view) {
  double seconds = 0, most = 0;
  for (const auto& [number, line] : view.lines) {
    seconds += number_of(line, "seconds");
    most = std::max(most, number_of(line, "seconds"));
  }
  if (view.lines.empty()) return "";
  return fmt::format("  The cases took {} together, {:.2g} s each; the longest {:.2g} s\n",
                     duration(seconds), seconds / static_cast<double>(view.lines.size()), most);
}

}  // namespace

Json sweep_line(const MatrixRow& row, const SweepPoint& point, const std::string& schedule) {
  Json j;
  j["case"] = point.number;
  j["key"] = point.key;
  j["cost"] = point.cost;
  j["verdict"] =
      row.verdict == RowVerdict::kNotJudged ? "could_not_compare" : std::string(name(row.verdict));
  j["flags"] = Json::object();
  for (const auto& [flag, value] : point.values) j["flags"][flag] = value;
  j["kernel"] = row.kernel;
  j["backend"] = row.backend;
  j["stale"] = row.stale;
  j["problem"] = to_json(row.problem);
  j["inputs"] = row.inputs;
  j["seed"] = row.seed;
  j["input_scale"] = row.input_scale;
  j["schedule"] = schedule;
  if (row.verdict != RowVerdict::kUnsupported) j["geometry"] = to_json(row.geometry);
  const Summary s = summarise(row.comparison);
  j["max_err_over_bound"] = json_number(s.max_err_over_bound);
  j["mismatched"] = s.mismatched;
  j["compared"] = s.compared;
  j["not_judged"] = s.unjudged;
  if (const std::string said = remark(row); !said.empty()) j["remark"] = said;
  j["seconds"] = row.seconds;
  if (row.verdict != RowVerdict::kAgrees) {
    j["reproduce"] = row.reproduce;
    j["hunt"] = row.hunt;
  }
  return j;
}

int sweep_code(const SweepView& view) {
  bool tried = false, wrong = false,
       no_answer = missing_cases(view) > 0 || !view.contradicted.empty();
  for (const auto& [number, line] : view.lines) {
    wrong = wrong || is_wrong(line);
    no_answer = no_answer || is_no_answer(line);
    tried = tried || text_of(line, "verdict") != "unsupported";
  }
  return no_answer || !tried ? 2 : wrong ? 1 : 0;
}

std::string sweep_text(const SweepView& view, const Style& style, bool verdict_only) {
  const int code = sweep_code(view);
  std::string s =
      paint(style,
            code == 0   ? Colour::kGreen
            : code == 1 ? Colour::kRed
                        : Colour::kYellow,
            fmt::format("{}{}: {}", view.shard.empty() ? "" : "Shard " + view.shard + ", ",
                        count(view.cases) + (view.cases == 1 ? " case" : " cases"),
                        counts_text(view))) +
      '\n';
  const bool stale = std::any_of(view.lines.begin(), view.lines.end(), [](const auto& entry) {
    return entry.second.contains("stale") && entry.second["stale"] == true;
  });
  if (stale)
    s = paint(style, Colour::kRed,
              "STALE: kernels were not built from the sources on disk. Rebuild first.") +
        '\n' + s;
  if (verdict_only) return s;
  s += table_text(view, style) + values_text(view, style) + hunts_text(view);
  s += '\n' + missing_text(view, style) + unsupported_text(view, style) + time_text(view);
  for (const std::string& note : view.notes) s += "  " + wrap(note, style.width - 2, 4) + '\n';
  return s;
}

Json sweep_json(const SweepView& view, int exit_code, const CommandContext& context) {
  const int code = sweep_code(view);
  Json j = json_head(context,
                     code == 0   ? Answer::kAgrees
                     : code == 1 ? Answer::kDiverges
                                 : Answer::kNotJudged,
                     false);
  j["exit_code"] = exit_code;
  j["shard"] = view.shard;
  j["expected"] = view.cases;
  j["counts"] = Json::object();
  for (const auto& [verdict, n] : counts_of(view)) j["counts"][verdict] = n;
  j["counts"]["missing"] = missing_cases(view);
  j["repeated"] = view.repeated;
  j["contradicted"] = view.contradicted;
  j["missing_shards"] = Json::array();
  for (const MissingShard& m : view.missing)
    j["missing_shards"].push_back({{"shard", m.shard}, {"cases", m.cases}, {"missing", m.missing}});
  j["notes"] = view.notes;
  j["cases"] = Json::array();
  for (const auto& [number, line] : view.lines) j["cases"].push_back(line);
  return j;
}

std::vector<JunitCase> junit_of_sweep(const SweepView& view) {
  std::vector<JunitCase> cases;
  for (const auto& [number, line] : view.lines) {
    JunitCase c;
    c.class_name = "attn-diag.sweep." + text_of(line, "kernel");
    std::vector<std::string> parts;
    for (const auto& [flag, value] : values_of(line))
      parts.push_back(flag_name(flag) + "=" + value);
    c.name = fmt::format("case {} [{}]", number, join(parts, " "));
    c.seconds = number_of(line, "seconds");
    c.message = text_of(line, "remark");
    c.detail = text_of(line, "reproduce");
    const CaseVerdict* const kind = kind_of(line);
    c.kind = kind == nullptr ? JunitCase::Kind::kError : kind->junit;
    cases.push_back(c);
  }
  for (const MissingShard& m : view.missing) {
    JunitCase c;
    c.class_name = "attn-diag.sweep";
    c.name = "shard " + m.shard;
    c.kind = JunitCase::Kind::kError;
    c.message = fmt::format("{} of {} are missing", m.missing, plural(m.cases, "case"));
    cases.push_back(c);
  }
  return cases;
}

}  // namespace attn_diag::report
