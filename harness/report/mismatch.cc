#include "attn_diag/harness/mismatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attn_diag/harness/run.h"
#include "harness/report/cells.h"
#include "harness/report/query_row.h"
#include "harness/report/text.h"
#include "harness/run/input_writes.h"
#include "harness/run/repetition.h"

namespace attn_diag {
namespace {

bool selected(const Selection& selection, Tensor t) {
  return (!selection.stage || stage_of(t) == *selection.stage) &&
         (!selection.tensor || t == *selection.tensor);
}

std::string mismatch_text(const Capture& capture, const TensorComparison& compared,
                          const Tolerance& tolerance) {
  const Mismatch& first = *compared.first;
  const double err = std::abs(first.actual - first.expected);
  const report::QueryRow row = report::row_of(
      capture, tolerance, static_cast<std::int32_t>(first.index[0]),
      static_cast<std::int32_t>(first.index[1]), static_cast<std::int32_t>(first.index[2]));
  return fmt::format(
      "{} of {} on backend {} is wrong in {} of {} cells; first at {}{} ({}):\n"
      "  actual {}, expected {}, error {}, bound {}, err/bound {}\n{}",
      name(compared.tensor), capture.provenance.kernel, capture.provenance.backend,
      report::count(compared.mismatched), report::count(compared.compared), name(compared.tensor),
      report::index_text(compared.tensor, first.index),
      report::place_text(compared.tensor, first.index, capture.problem, capture.geometry),
      report::exact(first.actual), report::exact(first.expected), report::number(err),
      report::number(first.limit),
      report::ratio(judge_cell(first.actual, first.expected, first.limit).ratio),
      report::window_text(row, compared.tensor, first.index, report::Style{}));
}

std::string coverage_text(const Capture& capture, Tensor t) {
  const Coverage& coverage = capture.coverage[static_cast<std::size_t>(t)];
  std::string text;
  if (coverage.first_never) {
    text += fmt::format("{} has {} that no thread wrote; first {}.\n", name(t),
                        report::plural(coverage.never, "cell"),
                        report::index_text(t, coverage.first_never->index));
  }
  if (coverage.first_repeated) {
    text += fmt::format("{} has {} written more than once; first {}, {} times.\n", name(t),
                        report::plural(coverage.repeatedly, "cell"),
                        report::index_text(t, coverage.first_repeated->index),
                        coverage.first_repeated->writes);
  }
  return text;
}

// Why nothing of the selection could be compared.
std::string nothing_compared(const Capture& capture, const Selection& selection) {
  std::string text = "Nothing was compared:";
  for (const TensorInfo& tensor : kTensors) {
    const std::string& reason = capture.exempt[static_cast<std::size_t>(tensor.id)];
    if (selected(selection, tensor.id) && !reason.empty())
      text += fmt::format(" {} is exempt ({});", tensor.name, reason);
  }
  if (text.back() == ';') {
    text.back() = '.';
    return text;
  }
  return text + fmt::format(
                    " the capture, made with gate {}, has no such tensor. Use a later gate, "
                    "and leave taps on.",
                    capture.provenance.gate);
}

}  // namespace

MatchResult match_reference(const Capture& capture, const Selection& selection,
                            const Tolerance& tolerance) {
  const Comparison comparison = compare_with_reference(capture, tolerance);
  MatchResult result;
  Comparison chosen;
  chosen.unjudged_because = comparison.unjudged_because;
  std::string wrong = input_writes_text(capture.input_writes);
  for (const TensorInfo& tensor : kTensors) {
    if (!selected(selection, tensor.id)) continue;
    const auto found =
        std::find_if(comparison.tensors.begin(), comparison.tensors.end(),
                     [&](const TensorComparison& t) { return t.tensor == tensor.id; });
    if (found == comparison.tensors.end()) continue;
    chosen.tensors.push_back(*found);
    if (!wrong.empty()) break;
    wrong += coverage_text(capture, tensor.id);
    if (capture.repetition.unsound() &&
        capture.repetition.differing[static_cast<std::size_t>(tensor.id)] > 0)
      wrong += repetition_text(capture.repetition);
    // The first tensor says it all: later ones are made from it.
    if (wrong.empty() && found->mismatched > 0) wrong = mismatch_text(capture, *found, tolerance);
    if (!wrong.empty()) break;
  }
  if (chosen.answer() == Answer::kAgrees && wrong.empty()) {
    result.matches = true;
    return result;
  }
  result.text = !wrong.empty()           ? wrong
                : chosen.tensors.empty() ? nothing_compared(capture, selection)
                                         : "Could not compare: " + why_not_judged(chosen) + '.';
  while (!result.text.empty() && result.text.back() == '\n') result.text.pop_back();
  const std::string command = repro_command(capture);
  if (!command.empty()) result.text += "\nReproduce: " + command;
  return result;
}

std::string describe_capture(const Capture& capture) {
  return fmt::format("{} on {}: {}, {}{}", capture.provenance.kernel, capture.provenance.backend,
                     report::problem_text(capture.problem), report::geometry_text(capture.geometry),
                     capture.isolated ? ", isolated" : "");
}

std::string repro_command(const Capture& capture) {
  const Problem& p = capture.problem;
  const Geometry& g = capture.geometry;
  const Provenance& made = capture.provenance;
  const auto& kinds = input_kinds();
  if (std::none_of(kinds.begin(), kinds.end(),
                   [&](const InputKindInfo& kind) { return made.inputs == kind.name; }))
    return "";
  std::vector<std::string> words = {"attn-diag", "trace"};
  const auto add = [&](const char* flag, const std::string& value) {
    words.emplace_back(flag);
    words.push_back(value);
  };
  add("--kernel", made.kernel);
  add("--backend", made.backend);
  add("--batch", std::to_string(p.batch));
  add("--heads", std::to_string(p.heads));
  if (p.kv_heads != p.heads) add("--kv-heads", std::to_string(p.kv_heads));
  if (p.seqlen_q == p.seqlen_k) {
    add("--seqlen", std::to_string(p.seqlen_q));
  } else {
    add("--seqlen-q", std::to_string(p.seqlen_q));
    add("--seqlen-k", std::to_string(p.seqlen_k));
  }
  add("--head-dim", std::to_string(p.head_dim));
  if (p.head_dim_v != p.head_dim) add("--head-dim-v", std::to_string(p.head_dim_v));
  add("--dtype", std::string(name(p.dtype)));
  add("--mask", report::mask_text(p));
  add("--layout", std::string(name(p.layout)));
  add("--softmax-scale", fmt::format("{}", p.softmax_scale));
  add("--tile", fmt::format("{}x{}", g.tile.block_m, g.tile.block_n));
  if (g.has_split_merge) add("--num-splits", std::to_string(g.num_splits));
  add("--inputs", made.inputs);
  add("--seed", std::to_string(made.seed));
  if (made.input_scale != 1.0) add("--input-scale", fmt::format("{}", made.input_scale));
  if (!made.schedule.empty() && made.schedule != "forward") add("--schedule", made.schedule);
  if (made.mma_order != 0) add("--mma-order", std::to_string(made.mma_order));
  if (made.async_copies == "early") add("--async-copies", made.async_copies);
  return shell_line(words);
}

}  // namespace attn_diag
