#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/comparison_text.h"
#include "harness/report/numerics_report.h"
#include "harness/report/summary.h"
#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

std::int64_t how_many(const std::vector<InvariantResult>& all, InvariantResult::Verdict verdict) {
  return std::count_if(all.begin(), all.end(),
                       [&](const InvariantResult& r) { return r.verdict == verdict; });
}

const InvariantResult* first_broken(const std::vector<InvariantResult>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [](const InvariantResult& r) {
    return r.verdict == InvariantResult::Verdict::kBroken;
  });
  return found == all.end() ? nullptr : &*found;
}

// A share of the longest bar, in eighths of a column where there is Unicode.
std::string bar(double share, const Style& style) {
  constexpr int kWidth = 30;
  const int eighths = static_cast<int>(std::lround(share * kWidth * 8));
  if (!style.unicode) return std::string(static_cast<std::size_t>((eighths + 7) / 8), '#');
  constexpr const char* kBlocks[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string s;
  for (int i = 0; i < eighths / 8; ++i) s += "█";
  return s + kBlocks[eighths % 8];
}

std::string bin_text(int bin) {
  return bin == 0              ? "<= 1/2"
         : bin + 1 == kUlpBins ? "more"
                               : "<= " + count(std::int64_t{1} << (bin - 1));
}

std::string tensors_text(const Numerics& n, const Style& style) {
  Table table({"tensor", "in", ">half", ">90 %", ">99 %", ">worst", ">max ULP", ">rms error",
               ">bias", ">shrinkage"});
  for (const TensorNumerics& t : n.tensors) {
    const bool any = t.rms_err > 0;
    table.add({std::string(name(t.tensor)), std::string(name(t.storage)), ratio(t.median),
               ratio(t.p90), ratio(t.p99), ratio(t.max), t.with_ulps > 0 ? number(t.max_ulp) : "-",
               number(t.rms_err), any ? fmt::format("{:+.2f}", t.bias) : "-",
               any ? fmt::format("{:+.2f}", t.shrinkage) : "-"});
  }
  return "\n  Error over bound of the cells, and errors:\n" + table.text(style);
}

// For the last tensor, which is the kernel's output.
std::string ulps_text(const TensorNumerics& t, const Style& style) {
  const std::int64_t most = *std::max_element(t.ulps.begin(), t.ulps.end());
  if (most == 0) return {};
  std::string s = fmt::format("\n  Errors of {} in ULPs of {}, of {} of {} cells:\n",
                              name(t.tensor), name(t.storage), count(t.with_ulps), count(t.cells));
  int last = kUlpBins - 1;
  while (t.ulps[static_cast<std::size_t>(last)] == 0) --last;
  for (int bin = 0; bin <= last; ++bin) {
    const std::int64_t cells = t.ulps[static_cast<std::size_t>(bin)];
    const std::string length = bar(static_cast<double>(cells) / static_cast<double>(most), style);
    s += fmt::format("    {:>12}  {}{}  {} {}\n", bin_text(bin), length,
                     std::string(static_cast<std::size_t>(30 - display_width(length)), ' '),
                     count(cells), percent(cells, t.with_ulps));
  }
  if (t.with_ulps < t.judged)
    s += "    " +
         wrap(fmt::format(
                  "In the others rounding alone leaves fewer than half of the digits (sums that "
                  "cancel), or nothing but one value is right: {}.",
                  count(t.judged - t.with_ulps)),
              style.width - 4, 4) +
         '\n';
  return s;
}

std::string edge(double x) { return std::isinf(x) ? "up" : number(x); }

void add_positions(Table& table, std::string_view what, const std::vector<PositionBin>& bins) {
  if (bins.size() < 2) return;
  bool first = true;
  for (const PositionBin& b : bins) {
    table.add({first ? std::string(what) : "", fmt::format("{} to {}", number(b.low), edge(b.high)),
               count(b.cells), ratio(b.rms_err_over_bound), ratio(b.max_err_over_bound)});
    first = false;
  }
}

std::string positions_text(const TensorNumerics& t, const Style& style) {
  Table table({"by", "", ">cells", ">rms err/bound", ">worst"});
  add_positions(table, "query", t.by_query);
  add_positions(table, "visible keys", t.by_keys);
  add_positions(table, "|S|", t.by_score);
  if (table.rows() == 0) return {};
  return fmt::format("\n  Where errors of {} are:\n", name(t.tensor)) + table.text(style);
}

std::string rounding_table(const Contributions& c, const Style& style) {
  Table table({"rounding", ">rms error", ">of the squares", ">without it"});
  for (const Contribution& part : c.parts)
    table.add({part.what, number(part.rms), fmt::format("{:.1f} %", 100 * part.share),
               number(part.rms_without)});
  table.add({"all of them", number(c.rms_together), "", ""});
  table.add({"observed", number(c.rms_observed), "", ""});
  return table.text(style);
}

std::string contributions_text(const Contributions& c, const Style& style) {
  const auto line = [&](const std::string& words) {
    return "    " + wrap(words, style.width - 4, 4) + '\n';
  };
  std::string s = "\n  What each declared rounding adds to the error of o:\n";
  if (!c.why_not.empty()) return s + line(fmt::format("not computed: {}.", c.why_not));
  s += rounding_table(c, style);
  if (c.explained) {
    s += line(
        fmt::format("Explained: the error is {} that of a twin of the reference with all these "
                    "roundings, in {} rows; "
                    "root of the sum of squares {}. Taken off cell by cell, the twin's errors "
                    "leave {:.0f} % of "
                    "the squares.",
                    ratio(c.ratio()), count(c.rows), number(c.rms_of_parts), 100 * c.left_over));
  } else {
    s += paint(
        style, Colour::kYellow,
        line(fmt::format("Not explained by declared arithmetic: the error is {} that of a twin "
                         "of the reference with all these roundings, in {} rows. The kernel is "
                         "wrong, or rounds what it does not declare.",
                         ratio(c.ratio()), count(c.rows))));
  }
  if (c.instead.empty()) return s;
  Table table({"it does not make", ">would add"});
  for (const Contribution& part : c.instead) table.add({part.what, number(part.rms)});
  return s + table.text(style);
}

std::string dot_index(const CancelledDot& d, Tensor t) {
  return fmt::format("{}({}, {}, {}, {})", name(t), d.index[0], d.index[1], d.index[2], d.index[3]);
}

std::string cancellation_text(const Numerics& n, const Style& style) {
  std::string s;
  for (const Cancellation& c : n.cancellation) {
    const auto line = [&](const std::string& words) {
      s += "    " + wrap(words, style.width - 4, 6) + '\n';
    };
    line(fmt::format(
        "{}: half of {} sums lose {:.1f} digits or fewer, 99 % {:.1f}, the worst, {}, {:.1f}: "
        "sum |ab| is {}, |sum ab| {}.",
        c.tensor == Tensor::kS ? "q.k" : "P.V", count(c.dots), c.median_digits, c.p99_digits,
        c.worst.empty() ? "" : dot_index(c.worst.front(), c.tensor), c.max_digits,
        c.worst.empty() ? "" : number(c.worst.front().sum_abs),
        c.worst.empty() ? "" : number(std::fabs(c.worst.front().sum))));
    if (!c.largest_relative) continue;
    const CancelledDot& d = *c.largest_relative;
    line(fmt::format(
        "The largest relative error, {} of {}, {}: {} of sum |ab|, times 10^{:.1f} for what "
        "cancels.",
        number(d.err / std::fabs(d.sum)), dot_index(d, c.tensor),
        c.explained ? "is cancellation" : "is not explained by cancellation",
        number(d.err / d.sum_abs), d.digits));
  }
  return s.empty() ? s : "\n  Cancellation:\n" + s;
}

std::string ranges_text(const Numerics& n, const Style& style) {
  std::string s;
  for (const RangeInType& r : n.ranges) {
    std::string words = fmt::format(
        "{} in {}: from {} to {} in magnitude; the type's normal numbers from {} to {}.",
        name(r.tensor), name(r.type), number(r.smallest), number(r.largest),
        number(r.type_smallest_normal), number(r.type_largest));
    if (r.overflows > 0) words += fmt::format(" {} overflow.", plural(r.overflows, "cell"));
    if (r.subnormal > 0) words += fmt::format(" {} are subnormal.", plural(r.subnormal, "cell"));
    if (r.vanishes > 0) words += fmt::format(" {} vanish", plural(r.vanishes, "cell"));
    if (r.vanishes > 0 && r.tensor == Tensor::kP)
      words += fmt::format(", at most {} of what a tile sums up to", number(r.lost_of_row));
    if (r.vanishes > 0) words += '.';
    if (r.tensor == Tensor::kS)
      words += fmt::format(" Half an ULP of the largest is {}, which is a relative error of P.",
                           number(r.error_of_largest));
    s += "    " + wrap(words, style.width - 4, 6) + '\n';
  }
  return s.empty() ? s : "\n  Range:\n" + s;
}

std::string census_text(const Numerics& n, const Style& style) {
  Table table({"tensor", ">NaN", ">+inf", ">-inf", ">overflow", ">subnormal", ">flushed to 0",
               ">underflow to 0"});
  const auto shown = [](std::int64_t cells) { return cells == 0 ? std::string() : count(cells); };
  for (const TensorNumerics& t : n.tensors) {
    const Census& c = t.census;
    if (c.nonfinite() + c.subnormal + c.flushed + c.underflowed == 0) continue;
    table.add({std::string(name(t.tensor)), shown(c.nan), shown(c.plus_inf), shown(c.minus_inf),
               shown(c.overflow), shown(c.subnormal), shown(c.flushed), shown(c.underflowed)});
  }
  if (table.rows() == 0)
    return "\n  No NaN, infinity, subnormal or lost number where none belongs.\n";
  return "\n  Cells that are no normal numbers where such belong:\n" + table.text(style);
}

std::string step_text(const OriginStep& s) {
  if (s.input)
    return fmt::format("{}({}, {}, {}, {}) is {}", *s.input, s.index[0], s.index[1], s.index[2],
                       s.index[3], number(s.value));
  return fmt::format("{}{} is {}", name(s.tensor), index_text(s.tensor, s.index), number(s.value));
}

std::string origins_text(const Numerics& n, const Style& style) {
  std::string s;
  for (const NonFiniteOrigin& o : n.origins) {
    s += fmt::format("\n  Where the {} cells of {} that are no numbers come from, by the first:\n",
                     count(o.cells), name(o.steps.front().tensor));
    // Long chains are those of one tensor from tile to tile: both ends are shown.
    constexpr std::size_t kShown = 12;
    for (std::size_t i = 0; i < o.steps.size(); ++i) {
      if (o.steps.size() > kShown && i == kShown / 2) {
        s += fmt::format("    ... {} more ...\n", o.steps.size() - kShown);
        i = o.steps.size() - kShown / 2;
      }
      s += "    " +
           wrap(fmt::format("{}: {}", step_text(o.steps[i]), o.steps[i].why), style.width - 4, 6) +
           '\n';
    }
  }
  return s;
}

std::string drift_text(const NumericsView& view, const Style& style) {
  if (!view.drift) return {};
  const std::string title = fmt::format("\n  Against {} ({}): ", view.baseline, view.baseline_run);
  if (view.drift->identical) return title + "every histogram is the same.\n";
  if (view.drift->drifted.empty()) return title + "no drift: what differs is within chance.\n";
  std::string s = title + paint(style, Colour::kRed, "DRIFTED") + '\n';
  for (const Drift& d : view.drift->drifted)
    s += "    " + wrap(fmt::format("{}: {}.", d.tensor, d.what), style.width - 4, 6) + '\n';
  return s;
}

std::string invariant_text(const InvariantResult& r, const Style& style) {
  const InvariantInfo& i = info(r.invariant);
  const std::string title = fmt::format("    {:<18} ", i.name);
  switch (r.verdict) {
    case InvariantResult::Verdict::kHolds:
      return title + paint(style, Colour::kGreen, "holds") +
             fmt::format(" in {} cells{}\n", count(r.checked),
                         r.max_err_over_limit > 0
                             ? fmt::format(", within {}", ratio(r.max_err_over_limit))
                             : "");
    case InvariantResult::Verdict::kNotTried:
      return title + wrap("not tried: " + r.why_not, style.width - 23, 23) + '\n';
    case InvariantResult::Verdict::kFollows:
      return title + fmt::format("follows from {}, in {} of {} cells\n", info(r.follows_from).name,
                                 count(r.broken), count(r.checked));
    case InvariantResult::Verdict::kBroken:
      break;
  }
  std::string s = title + paint(style, Colour::kRed, "BROKEN") +
                  fmt::format(" in {} cells\n", mismatched_text(r.broken, r.checked));
  const auto line = [&](const std::string& words) {
    s += "      " + wrap(words, style.width - 6, 6) + '\n';
  };
  const bool number_expected =
      r.limit > 0 || r.expected != 0 || r.tensor == Tensor::kP || r.tensor == Tensor::kO;
  line(fmt::format("Should be: {}.", i.statement));
  line(fmt::format("First: {}{} is {}, expected {}.", name(r.tensor), index_text(r.tensor, r.index),
                   exact(r.actual),
                   number_expected ? fmt::format("{} within {}", exact(r.expected), number(r.limit))
                                   : "a finite number"));
  line(fmt::format("Means: {}.", meaning_of(r)));
  return s;
}

}  // namespace

std::string invariants_text(const std::vector<InvariantResult>& all, const Style& style) {
  std::string s = "\n  Invariants, which need no reference:\n";
  const bool none = !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& r) {
    return r.verdict == InvariantResult::Verdict::kNotTried && r.why_not == all.front().why_not;
  });
  if (none)
    return s + "    " +
           wrap(fmt::format("none was tried: {}.", all.front().why_not), style.width - 4, 4) + '\n';
  for (const InvariantResult& r : all) s += invariant_text(r, style);
  return s;
}

Answer NumericsView::answer() const {
  if (first_broken(invariants) != nullptr) return Answer::kDiverges;
  if (drift && !drift->drifted.empty()) return Answer::kDiverges;
  if (numerics) return answer_of(*capture, numerics->comparison);
  return how_many(invariants, InvariantResult::Verdict::kHolds) > 0 ? Answer::kAgrees
                                                                    : Answer::kNotJudged;
}

std::string numerics_headline(const NumericsView& view) {
  const InvariantResult* broken = first_broken(view.invariants);
  const auto broken_words = [&] {
    return fmt::format("invariant {} is broken at {}{}", info(broken->invariant).name,
                       name(broken->tensor), index_text(broken->tensor, broken->index));
  };
  if (view.numerics) {
    const Comparison& c = view.numerics->comparison;
    const Summary s = summarise(c);
    if (s.first_wrong != nullptr && s.first_wrong->first) {
      const TensorComparison& t = *s.first_wrong;
      return fmt::format("DIVERGES: {}{} is {}, expected {} within {}", name(t.tensor),
                         index_text(t.tensor, t.first->index), exact(t.first->actual),
                         exact(t.first->expected), number(t.first->limit));
    }
    if (broken == nullptr && answer_of(*view.capture, c) == Answer::kDiverges)
      return "DIVERGES: cells were not written once, an input was written, or the result moves";
    if (broken == nullptr && answer_of(*view.capture, c) == Answer::kNotJudged)
      return could_not_compare_text(c);
    if (broken == nullptr && view.answer() == Answer::kAgrees)
      return "AGREES: " + judged_text(s.compared, s.unjudged) + " within the bounds of rounding";
  }
  if (broken != nullptr) return "DIVERGES: " + broken_words();
  if (view.answer() == Answer::kDiverges)
    return fmt::format("DRIFTED: {}: {}", view.drift->drifted.front().tensor,
                       view.drift->drifted.front().what);
  if (view.answer() == Answer::kNotJudged) return "COULD NOT COMPARE: no invariant could be tried";
  return fmt::format(
      "AGREES: {} hold",
      plural(how_many(view.invariants, InvariantResult::Verdict::kHolds), "invariant"));
}

std::string numerics_text(const NumericsView& view, const Style& style, bool verdict_only) {
  const Capture& c = *view.capture;
  std::string s = stale_text(c.provenance, style);
  s += paint(style, colour_of(view.answer()), numerics_headline(view)) + '\n';
  if (verdict_only) return s;
  s += "  " +
       wrap(fmt::format("{}: {}, {}", view.subject, problem_text(c.problem),
                        geometry_text(c.geometry)),
            style.width - 2, 4) +
       '\n';
  if (view.numerics) {
    const Numerics& n = *view.numerics;
    s += tensors_text(n, style);
    if (!n.tensors.empty())
      s += ulps_text(n.tensors.back(), style) + positions_text(n.tensors.back(), style);
    s += contributions_text(n.contributions, style) + cancellation_text(n, style) +
         ranges_text(n, style) + census_text(n, style) + origins_text(n, style);
  }
  s += invariants_text(view.invariants, style) + drift_text(view, style);
  s += coverage_text(c, style);
  for (const std::string& note : c.notes) s += "  " + wrap(note, style.width - 2, 4) + '\n';
  if (!view.reproduce.empty()) s += "\n  Reproduce: " + view.reproduce + '\n';
  if (!view.written.empty()) s += fmt::format("  Written: {}\n", view.written);
  return s;
}

}  // namespace attn_diag::report
