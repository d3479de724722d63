#include "harness/report/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "harness/report/comparison_text.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"
#include "harness/report/summary.h"
#include "harness/report/table.h"
#include "harness/run/input_writes.h"

namespace attn_diag::report {
namespace {

constexpr int kMaxHunts = 5;

// "reduce, head 0, query 1, query tile 0, kv tile 0 (running_l)"
std::string first_wrong_text(const MatrixRow& row) {
  const Summary s = summarise(row.comparison);
  if (s.first_wrong == nullptr || !s.first_wrong->first) return "";
  const TensorComparison& t = *s.first_wrong;
  return fmt::format("{}, {} ({})", name(stage_of(t.tensor)),
                     place_text(t.tensor, t.first->index, row.problem, row.geometry),
                     name(t.tensor));
}

std::string holes_text(const MatrixRow& row) {
  return plural(row.coverage_faults, "cell") + " never or repeatedly written";
}

// What more runs of the production kernel have shown.
std::string sanity_remark(const Sanity& sanity) {
  return sanity.moved() ? sanity_headline(sanity) + standing_text(sanity) : "";
}

std::string moved_text(const MatrixRow& row) {
  const std::string cells = plural(row.moved_cells, "cell");
  if (row.moved_within_bounds)
    return fmt::format(
        "{} runs differ in {}, all within the bounds: sums in the order in which threads or blocks "
        "arrive, or a race below rounding",
        row.runs, cells);
  return fmt::format("a race: {} runs differ in {}", row.runs, cells);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

// What a row is, by column name. The same columns for every row.
Fields fields_of(const MatrixRow& row) {
  const Problem& p = row.problem;
  const auto n = [](auto x) { return fmt::format("{}", x); };
  return {{"kernel", row.kernel},
          {"backend", row.backend},
          {"dtype", std::string(name(p.dtype))},
          {"mask", mask_text(p)},
          {"layout", std::string(name(p.layout))},
          {"B", n(p.batch)},
          {"H", n(p.heads)},
          {"Hkv", n(p.kv_heads)},
          {"Sq", n(p.seqlen_q)},
          {"Sk", n(p.seqlen_k)},
          {"D", n(p.head_dim)},
          {"Dv", n(p.head_dim_v)},
          {"tile", row.tile.block_m > 0 ? fmt::format("{}x{}", row.tile.block_m, row.tile.block_n)
                                        : std::string("default")},
          {"splits", row.num_splits > 0 ? n(row.num_splits) : std::string("-")},
          {"inputs", row.inputs},
          {"seed", n(row.seed)},
          {"scale", number(row.input_scale)}};
}

// Columns that say nothing new are left out: one that equals another in every row (Sk and Sq are
// then one S).
void drop_twins(std::vector<Fields>& rows) {
  const auto drop = [&](const std::string& column, const std::string& twin) {
    const auto find = [](Fields& row, const std::string& wanted) {
      return std::find_if(row.begin(), row.end(), [&](auto& f) { return f.first == wanted; });
    };
    for (Fields& row : rows)
      if (find(row, column)->second != find(row, twin)->second) return;
    for (Fields& row : rows) {
      if (twin == "Sq") find(row, twin)->first = "S";
      row.erase(find(row, column));
    }
  };
  drop("Hkv", "H");
  drop("Sk", "Sq");
  drop("Dv", "D");
}

std::string counts_text(const std::vector<MatrixRow>& rows) {
  std::vector<std::string> parts;
  for (const RowVerdict v :
       {RowVerdict::kDiverges, RowVerdict::kLatent, RowVerdict::kFailed, RowVerdict::kAgrees,
        RowVerdict::kNotJudged, RowVerdict::kUnsupported}) {
    const auto n = std::count_if(rows.begin(), rows.end(),
                                 [&](const MatrixRow& row) { return row.verdict == v; });
    if (n == 0) continue;
    const bool verb = v == RowVerdict::kAgrees || v == RowVerdict::kDiverges;
    parts.push_back(fmt::format("{} {}", n,
                                verb
                                    ? (v == RowVerdict::kAgrees ? (n == 1 ? "agrees" : "agree")
                                                                : (n == 1 ? "diverges" : "diverge"))
                                    : name(v)));
  }
  return join(parts, ", ");
}

std::string verdict_cell(const MatrixRow& row, const Style& style) {
  switch (row.verdict) {
    case RowVerdict::kAgrees:
    case RowVerdict::kDiverges:
      return verdict_text(row.verdict == RowVerdict::kAgrees ? Answer::kAgrees : Answer::kDiverges,
                          style);
    case RowVerdict::kNotJudged:
      return verdict_text(Answer::kNotJudged, style);
    case RowVerdict::kUnsupported:
      return paint(style, Colour::kYellow, name(row.verdict));
    case RowVerdict::kLatent:
      return paint(style, Colour::kYellow, "LATENT");
    case RowVerdict::kFailed:
      return paint(style, Colour::kRed, "FAILED");
  }
  return "";
}

}  // namespace

std::string remark(const MatrixRow& row) {
  std::string s = input_writes_text(row.input_writes);
  const auto append = [&](const std::string& more) {
    if (!more.empty()) s += (s.empty() ? "" : "; ") + more;
  };
  const bool wrong = row.verdict == RowVerdict::kDiverges || row.verdict == RowVerdict::kLatent;
  append(wrong ? first_wrong_text(row) : row.why);
  if ((wrong || row.verdict == RowVerdict::kAgrees) && row.comparison.unjudged() > 0)
    append(fmt::format("judged {} of {} elements", count(row.comparison.judged()),
                       count(row.comparison.judged() + row.comparison.unjudged())));
  if (!row.comparison.broken_elsewhere.empty())
    append("rows that were not compared break an invariant");
  if (row.coverage_faults > 0) append(holes_text(row));
  if (row.moved_cells > 0) append(moved_text(row));
  if (row.sanity.moved()) append(sanity_remark(row.sanity));
  if (row.same_output) append("bit-identical to the run before your edit");
  if (row.nonfinite_inputs) append("NaN or infinity in the inputs");
  std::replace(s.begin(), s.end(), '\n', ' ');
  return s;
}

namespace {

// Remarks that rows share, apart from numbers and the kernel's name: said once, below the table.
class Remarks {
 public:
  explicit Remarks(const std::vector<MatrixRow>& rows) {
    for (const MatrixRow& row : rows) {
      const std::string text = remark(row);
      if (display_width(text) <= kShort) continue;
      Shared& shared = x_shared[key_of(text, row.kernel)];
      if (shared.rows++ == 0) shared.first = text;
    }
    for (auto& [key, shared] : x_shared)
      if (shared.rows > 1) x_folded.push_back(&shared);
    for (std::size_t i = 0; i < x_folded.size(); ++i)
      x_folded[i]->mark = fmt::format("[{}]", i + 1);
  }

  std::string of(const MatrixRow& row) const {
    const std::string text = remark(row);
    const auto at = x_shared.find(key_of(text, row.kernel));
    return at == x_shared.end() || at->second.mark.empty() ? text : at->second.mark;
  }

  std::string below(const Style& style) const {
    std::string s;
    for (const Shared* shared : x_folded)
      s += (s.empty() ? "\n  " : "  ") +
           wrap(fmt::format("{} {} rows, the first: {}", shared->mark, shared->rows, shared->first),
                style.width - 2, 6) +
           '\n';
    return s;
  }

 private:
  static constexpr int kShort = 80;
  struct Shared {
    int rows = 0;
    std::string first, mark;
  };

  static std::string key_of(std::string text, const std::string& kernel) {
    for (std::size_t at; (at = text.find(kernel)) != text.npos;)
      text.replace(at, kernel.size(), "@");
    std::string key;
    for (const char c : text)
      if (c < '0' || c > '9')
        key += c;
      else if (key.empty() || key.back() != '#')
        key += '#';
    return key;
  }

  std::map<std::string, Shared> x_shared;
  std::vector<Shared*> x_folded;
};

Json row_json(const MatrixRow& row) {
  Json j;
  j["kernel"] = row.kernel;
  j["backend"] = row.backend;
  j["verdict"] =
      row.verdict == RowVerdict::kNotJudged ? "could_not_compare" : std::string(name(row.verdict));
  j["stale"] = row.stale;
  if (!row.why.empty()) j["why"] = row.why;
  j["problem"] = to_json(row.problem);
  if (row.verdict != RowVerdict::kUnsupported) j["geometry"] = to_json(row.geometry);
  j["inputs"] = row.inputs;
  j["seed"] = row.seed;
  j["input_scale"] = row.input_scale;
  j["nonfinite_inputs"] = row.nonfinite_inputs;
  const Summary s = summarise(row.comparison);
  j["max_err_over_bound"] = json_number(s.max_err_over_bound);
  j["mismatched"] = s.mismatched;
  j["compared"] = s.compared;
  j["not_judged"] = s.unjudged;
  j["input_writes"] = row.input_writes.size();
  j["coverage_faults"] = row.coverage_faults;
  j["runs"] = row.runs;
  j["moved_cells"] = row.moved_cells;
  j["moved_within_bounds"] = row.moved_within_bounds;
  j["sanity"] = to_json(row.sanity, "");
  j["stages"] = stages_json(row.comparison);
  j["same_output"] = to_json(row.same_output);
  j["seconds"] = row.seconds;
  j["reproduce"] = row.reproduce;
  return j;
}

}  // namespace

std::string_view name(RowVerdict v) {
  static constexpr std::array<std::string_view, 6> kNames = {"agrees", "diverges", "unsupported",
                                                             "failed", "latent",   "not judged"};
  return kNames[static_cast<std::size_t>(v)];
}

RowVerdict row_verdict(Answer answer) {
  return answer == Answer::kAgrees     ? RowVerdict::kAgrees
         : answer == Answer::kDiverges ? RowVerdict::kDiverges
                                       : RowVerdict::kNotJudged;
}

std::string comparison_headline(const MatrixRow& row, const Style& style) {
  const Summary s = summarise(row.comparison);
  const std::string moves = sanity_remark(row.sanity);
  const bool rounding = row.moved_within_bounds || row.sanity.within_bounds;
  if (!row.input_writes.empty())
    return paint(style, Colour::kRed, "DIVERGES: " + input_writes_text(row.input_writes));
  if (row.verdict == RowVerdict::kNotJudged)
    return paint(style, Colour::kYellow, could_not_compare_text(row.comparison));
  if (row.verdict == RowVerdict::kAgrees)
    return paint(
        style, Colour::kGreen,
        fmt::format("AGREES: {} are within what is allowed (worst {}){}",
                    judged_text(s.compared, s.unjudged), ratio(s.max_err_over_bound),
                    !rounding ? "" : "; bits depend on the order of arrival, within rounding"));
  if (row.verdict == RowVerdict::kLatent) return paint(style, Colour::kYellow, "LATENT: " + moves);
  if (row.sanity.unsound()) return paint(style, Colour::kRed, "DIVERGES: " + moves);
  if (s.first_wrong == nullptr && !row.comparison.broken_elsewhere.empty())
    return paint(style, Colour::kRed, "DIVERGES: " + elsewhere_text(s));
  if (s.first_wrong == nullptr || !s.first_wrong->first)
    return paint(style, Colour::kRed,
                 "DIVERGES: " + (row.coverage_faults > 0 ? holes_text(row) : moved_text(row)));
  const TensorComparison& t = *s.first_wrong;
  return paint(
      style, Colour::kRed,
      fmt::format("DIVERGES: {} diverges first, {} ({})", name(stage_of(t.tensor)),
                  place_text(t.tensor, t.first->index, row.problem, row.geometry), name(t.tensor)));
}

std::string matrix_text(const std::vector<MatrixRow>& rows, const Style& style, bool verdict_only) {
  const bool good = std::all_of(rows.begin(), rows.end(), [](const MatrixRow& row) {
    return row.verdict == RowVerdict::kAgrees || row.verdict == RowVerdict::kUnsupported;
  });
  std::set<std::string> stale;
  for (const MatrixRow& row : rows)
    if (row.stale) stale.insert(row.kernel);
  std::string s;
  // Many rows may be so; the first says it, and each row's remark says it again.
  const auto same = std::find_if(rows.begin(), rows.end(),
                                 [](const MatrixRow& row) { return row.same_output.has_value(); });
  if (same != rows.end()) s += same_output_text(same->same_output, style);
  if (!stale.empty())
    s += paint(style, Colour::kRed,
               fmt::format("STALE: {} not built from the sources now on disk. Rebuild first.",
                           join({stale.begin(), stale.end()}, ", "))) +
         '\n';
  s += paint(style, good ? Colour::kGreen : Colour::kRed,
             fmt::format("{}: {}", plural(std::ssize(rows), "case"), counts_text(rows))) +
       '\n';
  if (verdict_only) return s;

  std::vector<Fields> fields;
  for (const MatrixRow& row : rows) fields.push_back(fields_of(row));
  drop_twins(fields);
  std::vector<std::string> columns, alike;
  std::vector<std::size_t> shown;
  for (std::size_t f = 0; f < fields[0].size(); ++f) {
    std::set<std::string> values;
    for (const Fields& row : fields) values.insert(row[f].second);
    if (values.size() > 1) {
      shown.push_back(f);
      columns.push_back(fields[0][f].first);
    } else {
      alike.push_back(fields[0][f].first + "=" + fields[0][f].second);
    }
  }
  s += "  " + wrap("All with " + join(alike, " "), style.width - 2, 4) + "\n\n";
  columns.insert(columns.end(), {"verdict", ">err/bound", "first divergence or reason"});
  const Remarks remarks(rows);
  Table table(columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells;
    for (std::size_t f : shown) cells.push_back(fields[i][f].second);
    const bool compared =
        rows[i].verdict != RowVerdict::kUnsupported && rows[i].verdict != RowVerdict::kFailed;
    cells.push_back(verdict_cell(rows[i], style));
    cells.push_back(compared ? ratio(summarise(rows[i].comparison).max_err_over_bound) : "");
    cells.push_back(remarks.of(rows[i]));
    table.add(cells);
  }
  s += table.text(style);
  s += remarks.below(style);

  int hunts = 0;
  for (const MatrixRow& row : rows) {
    if (row.verdict == RowVerdict::kAgrees || row.verdict == RowVerdict::kUnsupported) continue;
    if (hunts == 0) s += "\n  Find where, one case at a time:\n";
    if (++hunts > kMaxHunts) continue;
    s += "    " + row.hunt + '\n';
  }
  if (hunts > kMaxHunts)
    s += fmt::format("    and {} more; --json has them all\n", hunts - kMaxHunts);
  return s;
}

Json matrix_json(const std::vector<MatrixRow>& rows, int exit_code, const CommandContext& context) {
  const bool stale =
      std::any_of(rows.begin(), rows.end(), [](const MatrixRow& row) { return row.stale; });
  Json j = json_head(context,
                     exit_code == 0   ? Answer::kAgrees
                     : exit_code == 1 ? Answer::kDiverges
                                      : Answer::kNotJudged,
                     stale);
  j["exit_code"] = exit_code;
  j["cases"] = Json::array();
  for (const MatrixRow& row : rows) j["cases"].push_back(row_json(row));
  return j;
}

Json run_json(const Capture& capture, const MatrixRow& row, const CommandContext& context) {
  Json j = json_head(context,
                     row.verdict == RowVerdict::kAgrees      ? Answer::kAgrees
                     : row.verdict == RowVerdict::kNotJudged ? Answer::kNotJudged
                                                             : Answer::kDiverges,
                     capture.provenance.stale());
  if (row.verdict == RowVerdict::kLatent) j["verdict"] = "latent";
  j["sanity"] = to_json(row.sanity, "");
  j["reproduce"] = row.reproduce;
  j["same_output"] = to_json(row.same_output);
  j["kernel"] = capture.provenance.kernel;
  j["backend"] = capture.provenance.backend;
  j["problem"] = to_json(capture.problem);
  j["geometry"] = to_json(capture.geometry);
  j["region"] = to_json(capture.region);
  j["isolated"] = capture.isolated;
  j["nonfinite_inputs"] = row.nonfinite_inputs;
  j["judged"] = row.comparison.judged();
  j["cells"] = row.comparison.judged() + row.comparison.unjudged();
  j["input_writes"] = input_writes_json(capture);
  j["stages"] = stages_json(row.comparison);
  j["coverage"] = coverage_json(capture);
  j["runs"] = row.runs;
  j["moved_cells"] = row.moved_cells;
  j["moved_within_bounds"] = row.moved_within_bounds;
  j["notes"] = capture.notes;
  for (const std::string& note : row.comparison.notes) j["notes"].push_back(note);
  j["provenance"] = to_json(capture.provenance);
  return j;
}

std::vector<JunitCase> junit_of_rows(const std::vector<MatrixRow>& rows) {
  std::vector<JunitCase> cases;
  for (const MatrixRow& row : rows) {
    JunitCase c;
    c.class_name = "attn-diag.run." + row.kernel;
    std::vector<std::string> parts;
    for (const auto& [column, value] : fields_of(row))
      if (column != "kernel") parts.push_back(column + "=" + value);
    c.name = join(parts, " ");
    c.seconds = row.seconds;
    c.message = (row.stale ? "STALE binary; " : "") +
                std::string(row.verdict == RowVerdict::kLatent ? "LATENT: " : "") + remark(row);
    c.detail = row.reproduce;
    c.kind = row.verdict == RowVerdict::kAgrees        ? JunitCase::Kind::kPassed
             : row.verdict == RowVerdict::kDiverges    ? JunitCase::Kind::kFailed
             : row.verdict == RowVerdict::kLatent      ? JunitCase::Kind::kFailed
             : row.verdict == RowVerdict::kUnsupported ? JunitCase::Kind::kSkipped
                                                       : JunitCase::Kind::kError;
    cases.push_back(c);
  }
  return cases;
}

}  // namespace attn_diag::report
