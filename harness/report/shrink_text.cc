#include "harness/report/shrink_text.h"

#include <fmt/format.h>

#include "attn_diag/harness/compare.h"
#include "harness/report/trace_text.h"

namespace attn_diag::report {
namespace {

using shrink::FailureKind;
using shrink::Said;
using shrink::SizeReport;

const char* word(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNone:
      return "none";
    case FailureKind::kWrong:
      return "wrong";
    case FailureKind::kWritesInputs:
      return "writes_inputs";
    case FailureKind::kMoves:
      return "moves";
    case FailureKind::kRefused:
      return "refused";
    case FailureKind::kCrash:
      return "crash";
    case FailureKind::kNoEnd:
      return "no_end";
  }
  return "";
}

const char* word(Said said) {
  switch (said) {
    case Said::kFails:
      return "fails";
    case Said::kPasses:
      return "passes";
    case Said::kOther:
      return "fails_otherwise";
    case Said::kRefused:
      return "refused";
  }
  return "";
}

std::string case_text(const ShrinkView& view, const shrink::TriedCase& one) {
  if (view.of_function) return problem_text(one.problem);
  std::string text =
      fmt::format("{}, {}x{} tiles", problem_text(one.problem), one.tile.block_m, one.tile.block_n);
  if (one.num_splits > 0) text += ", " + plural(one.num_splits, "split");
  return text;
}

// The first sentence of a message, cut where it is long.
std::string short_of(const std::string& what) {
  constexpr std::size_t kMost = 120;
  const std::string first = what.substr(0, what.find(". "));
  return first.size() <= kMost ? first : first.substr(0, first.rfind(' ', kMost)) + " ...";
}

std::string said_of(const SizeReport::Neighbour& one) {
  switch (one.said) {
    case Said::kFails:
      return fmt::format("{} fails too", one.size);
    case Said::kPasses:
      return fmt::format("{} passes", one.size);
    case Said::kOther:
      return fmt::format("{} fails otherwise ({})", one.size, short_of(one.what));
    case Said::kRefused:
      break;
  }
  return fmt::format("{} is not taken", one.size);
}

std::string size_text(const SizeReport& r) {
  std::vector<std::string> said;
  if (r.smaller == 0) {
    said.emplace_back(r.to <= r.least ? "the least there is" : "the kernel takes no smaller one");
  } else if (!r.below) {
    said.emplace_back("no smaller one could be tried");
  } else {
    said.push_back(said_of(*r.below));
    if (r.passes && *r.passes != r.below->size)
      said.push_back(fmt::format("the largest below that passes is {}", *r.passes));
  }
  if (r.above) said.push_back(said_of(*r.above));
  if (r.smaller > 0)
    said.push_back(
        r.smaller_tried == r.smaller
            ? fmt::format("every smaller one was tried ({})", r.smaller)
            : fmt::format("{} of {} smaller ones were tried", r.smaller_tried, r.smaller));
  const std::string change =
      r.from == r.to ? fmt::format("{}", r.to) : fmt::format("{} -> {}", r.from, r.to);
  return fmt::format("{}: {}: {}", r.name, change, join(said, "; "));
}

std::string numbers_text(const shrink::ShrinkResult& r) {
  const auto& [all, nonzero] = r.elements;
  if (r.smallest.inputs == r.before_values.inputs) return "its numbers are as they were";
  if (nonzero == 0) return fmt::format("all {} numbers are 0", all);
  const std::int64_t zeros = all - nonzero;
  if (zeros == 0) return r.integers ? "all are integers" : "none is 0";
  return fmt::format("{} of {} {} 0{}", zeros, all, zeros == 1 ? "is" : "are",
                     !r.integers    ? ""
                     : nonzero == 1 ? ", the other is an integer"
                                    : ", the others are integers");
}

std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out += "    " + text.substr(begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string shrink_headline(const ShrinkView& view) {
  const shrink::ShrinkResult& r = view.result;
  if (!r.fails)
    return fmt::format("AGREES: there is nothing to make smaller, {}", case_text(view, r.given));
  return fmt::format("SMALLEST{}: {}, {}", r.out_of_time ? " in the time there was" : "",
                     case_text(view, r.smallest), short_of(r.failure.what));
}

std::string shrink_text(const ShrinkView& view, const Style& style, bool verdict_only) {
  const shrink::ShrinkResult& r = view.result;
  std::string s =
      paint(style, r.fails ? Colour::kRed : Colour::kGreen, shrink_headline(view)) + '\n';
  if (verdict_only) return s;
  const auto line = [&](const std::string& text) {
    s += "  " + wrap(text, style.width - 2, 4) + '\n';
  };
  if (r.fails) {
    line("From " + case_text(view, r.given) + ".");
    if (r.trace && r.trace->first) {
      const FirstDivergence& first = *r.trace->first;
      line(fmt::format(
          "{}: {}{}.", first_text(first, r.smallest.problem), attn_diag::name(first.tensor),
          first.writes ? fmt::format(" is written {} times", *first.writes)
                       : fmt::format(" is {}, expected {} within {}", exact(first.actual),
                                     exact(first.expected), number(first.bound))));
    } else if (!r.trace && !view.of_function) {
      line(r.failure.what);
    }
    if (r.failure.moves) line("Besides, the result is not the same in every run.");
    if (r.origin != std::array<std::int64_t, 4>{})
      line(fmt::format(
          "It begins at batch {}, KV head {}, query {} and key {} of the case that was given.",
          r.origin[0], r.origin[1], r.origin[2], r.origin[3]));
    if (!r.failure.line.empty()) line(fmt::format("The line stays {}.", r.failure.line));
    for (const SizeReport& size : r.sizes) line(size_text(size) + ".");
    line(fmt::format("Numbers: {}.", numbers_text(r)));
    if (r.trace) {
      std::vector<std::string> pattern;
      for (const PatternStatement& p : r.trace->pattern) pattern.push_back(p.text);
      if (!pattern.empty()) line("Pattern: " + join(pattern, "; ") + ".");
    }
  }
  line(fmt::format("{} in {:.1f} s; {} more were known already.{}",
                   r.tried == 1 ? "1 case was run" : fmt::format("{} cases were run", r.tried),
                   r.seconds, r.remembered,
                   !r.out_of_time     ? ""
                   : view.of_function ? " Time was up: seconds=... allows more."
                                      : " Time was up: --time-limit allows more."));
  for (const std::string& note : r.notes) line("Note: " + note);
  if (view.of_function) return s;
  if (r.fails) {
    if (!view.dump.empty())
      line(fmt::format("{} has it: {}", view.dump, view.look));
    else
      line("No dump was written: -o FILE.h5 writes it.");
    if (!view.trace_before.empty())
      s += "  With its numbers as they were: " + view.trace_before + '\n';
    if (view.test_file.empty())
      s += "\n  A test that fails (--test FILE puts it into a file):\n\n" +
           indented(catch2_test(view)) + '\n';
    else
      line(fmt::format("{} is a test that fails.", view.test_file));
    if (!view.sheet_file.empty()) {
      line(fmt::format("{} is a worked sheet.", view.sheet_file));
    } else if (const std::string sheet = worked_sheet(view); !sheet.empty()) {
      s += "\n  Worked, expected and actual (--sheet FILE puts it into a file):\n\n" +
           indented(sheet) + '\n';
    }
  }
  s += "  Reproduce: " + view.reproduce + '\n';
  return s;
}

Json shrink_json(const ShrinkView& view, const CommandContext& context) {
  const shrink::ShrinkResult& r = view.result;
  Json j = json_head(context, r.fails ? Answer::kDiverges : Answer::kAgrees,
                     r.capture.provenance.stale());
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  const auto of_case = [&](const shrink::TriedCase& one) {
    Json out = {{"problem", to_json(one.problem)}};
    if (view.of_function) return out;
    out["tile"] = {one.tile.block_m, one.tile.block_n};
    out["num_splits"] = one.num_splits;
    return out;
  };
  j["given"] = of_case(r.given);
  j["smallest"] = nullptr;
  j["failure"] = nullptr;
  if (r.fails) {
    j["smallest"] = of_case(r.smallest);
    Json failure = {{"kind", word(r.failure.kind)}, {"what", r.failure.what}};
    failure["stage"] = nullptr;
    failure["tensor"] = nullptr;
    if (r.failure.kind == FailureKind::kWrong) {
      failure["stage"] = attn_diag::name(stage_of(r.failure.tensor));
      failure["tensor"] = attn_diag::name(r.failure.tensor);
    }
    failure["moves"] = r.failure.moves;
    failure["line"] = text_or_null(r.failure.line);
    j["failure"] = std::move(failure);
  }
  j["first"] = nullptr;
  j["pattern"] = Json::array();
  if (r.trace && r.trace->first) {
    const FirstDivergence& first = *r.trace->first;
    j["first"] = {{"tensor", attn_diag::name(first.tensor)},
                  {"batch", first.batch},
                  {"head", first.head},
                  {"query", first.query},
                  {"actual", json_number(first.actual)},
                  {"expected", json_number(first.expected)},
                  {"bound", json_number(first.bound)}};
    for (const PatternStatement& p : r.trace->pattern) j["pattern"].push_back(p.text);
  }
  j["origin"] = r.origin;
  j["sizes"] = Json::array();
  const auto neighbour = [](const std::optional<SizeReport::Neighbour>& one) {
    return one ? Json({{"size", one->size}, {"said", word(one->said)}}) : Json(nullptr);
  };
  for (const SizeReport& size : r.sizes)
    j["sizes"].push_back({{"name", size.name},
                          {"from", size.from},
                          {"to", size.to},
                          {"below", neighbour(size.below)},
                          {"above", neighbour(size.above)},
                          {"largest_passing", size.passes ? Json(*size.passes) : Json(nullptr)},
                          {"smaller", size.smaller},
                          {"smaller_tried", size.smaller_tried}});
  j["numbers"] = {{"all", r.elements[0]}, {"not_zero", r.elements[1]}, {"integers", r.integers}};
  j["tried"] = r.tried;
  j["remembered"] = r.remembered;
  j["seconds"] = json_number(r.seconds);
  j["out_of_time"] = r.out_of_time;
  j["notes"] = r.notes;
  j["dump"] = text_or_null(view.dump);
  j["trace_before"] = text_or_null(view.trace_before);
  if (view.of_function) return j;
  j["test"] = r.fails ? Json(catch2_test(view)) : Json(nullptr);
  j["sheet"] = r.fails ? text_or_null(worked_sheet(view)) : Json(nullptr);
  return j;
}

}  // namespace attn_diag::report
