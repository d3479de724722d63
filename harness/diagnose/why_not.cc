// One hypothesis, judged on every row.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/error.h"
#include "harness/base/close_names.h"
#include "harness/diagnose/outcome.h"
#include "harness/diagnose/search.h"
#include "harness/diagnose/stages.h"

namespace attn_diag {
namespace {

using matching::Candidate;
using matching::Evidence;
using matching::Rows;

const reference::Hypothesis& hypothesis_of(const std::string& id) {
  if (const reference::Hypothesis* found = reference::find_hypothesis(id)) return *found;
  std::vector<std::string> names;
  for (const reference::Hypothesis* h : reference::catalogue()) names.emplace_back(h->info().id);
  const std::vector<std::string> close = close_names(id, names);
  throw Error(fmt::format("There is no bug '{}' in the catalogue.{}", id,
                          close.empty()
                              ? fmt::format(" There are: {}.", fmt::join(names, ", "))
                              : fmt::format(" Did you mean {}?", fmt::join(close, " or "))));
}

// The cell that is furthest off, and lowest among equals.
std::optional<WhyNot::Cell> worst_cell(const Evidence& evidence,
                                       const reference::PredictionInputs& c,
                                       const Candidate& candidate) {
  constexpr std::int64_t kChunk = 64;
  std::optional<WhyNot::Cell> worst;
  double most = 1;
  reference::Prediction predicted;
  for (std::int64_t begin = 0; begin < evidence.rows(); begin += kChunk) {
    std::vector<std::int64_t> flat(
        static_cast<std::size_t>(std::min(kChunk, evidence.rows() - begin)));
    std::iota(flat.begin(), flat.end(), begin);
    const Rows rows = matching::read_rows(evidence, c, std::move(flat));
    reference::predict(c, rows.row, candidate.variant.deviation, evidence.mask(), predicted);
    for (const Tensor t : evidence.tensors()) {
      const auto n = static_cast<std::size_t>(evidence.cells(t));
      const reference::Prediction::Values& values = predicted[t];
      const std::vector<std::int64_t>& shape = evidence.capture()[t].shape;
      for (std::size_t i = 0; i < values.value.size(); ++i) {
        const double actual = rows.actual[static_cast<std::size_t>(t)][i];
        const bool contradicts = matching::contradicts_memory(rows, t, i, values, i);
        if (values.known[i] == 0 && !contradicts) continue;
        const double should =
            values.known[i] == 0 ? std::numeric_limits<double>::quiet_NaN() : values.value[i];
        const double off = contradicts
                               ? std::numeric_limits<double>::infinity()
                               : matching::residual_over_bound(actual, should, values.bound[i]);
        if (!(off > most)) continue;
        most = off;
        const reference::RowIndex& row = rows.row[i / n];
        const auto inner = static_cast<std::int64_t>(i % n);
        WhyNot::Cell cell{
            t, {row.batch, row.head, row.query, inner, 0}, actual, should, values.bound[i]};
        if (shape.size() > 4) cell.index[3] = inner / shape[4], cell.index[4] = inner % shape[4];
        worst = cell;
      }
    }
  }
  return worst;
}

}  // namespace

WhyNot why_not(const Capture& capture, const DiagnoseOptions& options, const std::string& id) {
  const reference::Hypothesis& hypothesis = hypothesis_of(id);
  const Comparison comparison = matching::compare(capture, options);
  std::vector<matching::Subject> all = matching::subjects(capture, comparison, options);
  const auto nothing_wrong = [&] {
    return Error(
        fmt::format("Nothing is wrong, so that there is nothing that {} could explain.", id));
  };
  if (all.empty()) throw nothing_wrong();
  const matching::Subject& subject = all.front();
  const matching::Cuts cuts = matching::make_cuts(capture, subject.given, options);
  const Evidence evidence =
      matching::evidence_of(capture, comparison, subject, true, cuts, options);
  if (evidence.wrong_rows() == 0) throw nothing_wrong();
  const matching::Search search(evidence, cuts, options.threads);
  std::vector<Candidate> candidates = search.screen({&hypothesis});
  WhyNot out;
  out.exonerated = std::find(subject.exonerated.begin(), subject.exonerated.end(),
                             hypothesis.info().stage) != subject.exonerated.end();
  if (candidates.empty()) {
    out.possible = false;
    Candidate none;
    none.variant.hypotheses = {&hypothesis};
    out.match = matching::to_match(none);
    return out;
  }
  Candidate& best = *std::min_element(candidates.begin(), candidates.end(), matching::better);
  search.judge_all_rows({&best});
  out.match = matching::to_match(best);
  if (!matching::accounts(best)) out.worst = worst_cell(evidence, cuts[best.cut], best);
  return out;
}

}  // namespace attn_diag
