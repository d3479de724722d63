#include "harness/lines/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <string>
#include <tuple>

#include "harness/lines/fault.h"
#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {

std::string lost_inputs(const Terms& terms) {
  const host::ValueGraph& graph = terms.graph();
  if (graph.whole_blocks) return "";  // what moves there is recorded
  std::array<bool, 3> copied{}, loaded{};
  for (std::uint32_t n = 1; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].is_input())
      (graph.site_of(n).line == 0 ? copied : loaded)[terms[n].buffer] = true;
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < 3; ++i)
    if (copied[i] && !loaded[i]) lost.emplace_back(kBuffers[i]);
  return fmt::format("{}", fmt::join(lost, ", "));
}

void explain(const Terms& terms, const std::vector<OutputElement>& elements, LineDivergence& out) {
  using Kind = std::tuple<What, Ill, std::uint32_t>;
  Causes why(terms);
  std::map<Kind, std::vector<Cause>> causes;  // of wrong elements
  std::map<Kind, std::int64_t> of_right;      // what is unusual about right ones
  std::size_t wrong = 0, misplaced = 0, unseen = 0;
  for (const OutputElement& element : elements) {
    const Cause cause = why.cause_of(element);
    if (why.is_unseen(element, cause)) {
      unseen += element.wrong;
      continue;
    }
    misplaced += cause.what == What::kOtherRow || cause.what == What::kOtherColumn;
    if (element.wrong) {
      ++wrong;
      causes[cause.kind()].push_back(cause);
      continue;
    }
    if (why.is_right_by_luck(element, cause)) continue;
    ++out.right;
    if (cause.what == What::kOther)
      ++out.understood;
    else
      ++of_right[cause.kind()];
  }
  if (const std::string lost = lost_inputs(terms); !lost.empty()) {
    out.answer = LineAnswer::kUnsure;
    out.reason = fmt::format(
        "code of the host copies {}, and no block that was watched loads what came of it: copies "
        "by cudaMemcpy are followed, what a loop of the host moves is not",
        lost);
    return;
  }
  if (wrong == 0 && unseen > 0) {
    out.answer = LineAnswer::kUnsure;
    out.reason =
        "what is wrong depends on more blocks than can be watched at once, and not all of them "
        "were: take smaller sizes";
    return;
  }
  if (wrong == 0) {
    out.answer = LineAnswer::kNone;
    return;
  }
  // What is as common where all is right is no cause. A few may be right by luck: within the bound all the same.
  const bool by_luck = static_cast<double>(out.right) < 0.05 * static_cast<double>(wrong);
  const auto is_innocent = [&](const Kind& kind, std::size_t count) {
    const auto found = of_right.find(kind);
    return !by_luck && found != of_right.end() &&
           static_cast<double>(found->second) / static_cast<double>(out.right) >
               0.5 * static_cast<double>(count) / static_cast<double>(wrong);
  };
  // The cause of most elements; of two alike, the one that began first.
  const auto likeliest = [&](bool innocent) {
    const std::vector<Cause>* most = nullptr;
    for (const auto& [kind, list] : causes) {
      if (std::get<0>(kind) == What::kOther || is_innocent(kind, list.size()) != innocent) continue;
      if (most == nullptr || list.size() > most->size() ||
          (list.size() == most->size() && list.front().node < most->front().node))
        most = &list;
    }
    return most;
  };
  const std::vector<Cause>* most = likeliest(false);
  const bool seen_in_right = most == nullptr;
  if (most == nullptr) most = likeliest(true);
  // A row that stands for another, and rows made of two heads: what makes these comes first, and the other follows.
  if (most != nullptr && most->front().what == What::kOtherRow)
    for (const auto& [kind, list] : causes)
      if (std::get<1>(kind) == Ill::kHeads && 2 * list.size() >= most->size() &&
          list.front().node < most->front().node) {
        most = &list;
        break;
      }
  out.answer = LineAnswer::kUnsure;
  if (most == nullptr) {
    out.fault = LineFault::kRounding;
    out.reason =
        "every number is made as attention asks for, and the output is wrong all the same: a "
        "matter of rounding, of a "
        "number that comes of no input, or of what the watch build does not see";
    return;
  }
  SumSuspects suspects(terms, elements, misplaced > 0, out);
  suspects.suspect(*most);
  const double share = static_cast<double>(most->size()) / static_cast<double>(wrong);
  const bool unusual = out.right > 0 && 2 * out.understood < out.right;
  out.fault = fault_of(terms, most->front());
  out.fault_is_firm = !seen_in_right && share >= 0.5 && !unusual;
  if (suspects.lost()) {
    out.fault_is_firm = false;
    out.reason =
        "what becomes of the inputs there is nothing that the watch build understands, as numbers "
        "that integers make of bits; which line is wrong cannot be told";
  } else if (out.suspects.empty())
    out.reason = "no line is known that this depends on";
  else if (seen_in_right)
    out.reason = "rows that are right are made the same way";
  else if (share < 0.25)
    out.reason = fmt::format("this explains {:.0f} % of the wrong elements", share * 100);
  else if (unusual && !by_luck)
    out.reason = fmt::format(
        "of {} right elements {} are understood: the kernel may compute in a way that is not known",
        out.right, out.understood == 0 ? "none" : fmt::format("only {}", out.understood));
  else if (most->front().ill == Ill::kMeaningless && out.understood == 0)
    out.reason =
        "no element is right: whether that is the kernel's own way or its fault cannot be told";
  else if (most->front().ill == Ill::kUnknown)
    out.reason = "an operation that is not known stands there";
  else if (!suspects.sure() || unusual)
    out.reason = "the first of these lines is the likeliest";
  else
    out.answer = LineAnswer::kLine;
}

}  // namespace attn_diag::lines
