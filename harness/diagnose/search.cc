#include "harness/diagnose/search.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "harness/base/parallel_for.h"
#include "harness/diagnose/sample.h"

namespace attn_diag::matching {
namespace {

// Rows of the sample after which a candidate that explains no wrong one is dropped: 12 wrong, 4 right.
constexpr std::size_t kFirstLook = 16;
constexpr std::size_t kRowsPredicted = 64;  // rows predicted at a time when all are
constexpr std::uint8_t kByPlace = 2;        // in Candidate::explained
constexpr int kSecondLook = 384;            // rows looked at before all are

reference::Prediction& scratch() {
  thread_local reference::Prediction prediction;
  return prediction;
}

}  // namespace

Search::Search(const Evidence& evidence, const Cuts& cuts, int threads)
    : x_evidence(evidence),
      x_cuts(cuts),
      x_threads(resolve_threads(threads)),
      x_sample(read_rows(evidence, cuts.front(), choose_rows(evidence))) {}

void Search::judge_one(Candidate& candidate) const {
  const reference::PredictionInputs& c = x_cuts[candidate.cut];
  if (candidate.variant.free) {
    Fitted fitted = fit(x_evidence, c, candidate.variant, x_sample, x_sample.size());
    candidate.variant = std::move(fitted.variant);
    candidate.generality += static_cast<int>(fitted.generality);
    candidate.fitted = fitted.generality == Generality::kFitted;
  }
  candidate.tally = {};
  candidate.explained.clear();
  std::vector<std::uint8_t> explained(x_sample.size(), 0);
  for (std::size_t begin = 0; begin < x_sample.size();) {
    const std::size_t end = begin == 0 ? std::min(kFirstLook, x_sample.size()) : x_sample.size();
    reference::predict(c, std::span(x_sample.row).subspan(begin, end - begin),
                       candidate.variant.deviation, x_evidence.mask(), scratch());
    for (std::size_t at = begin; at < end; ++at) {
      const RowFit row = judge_row(x_evidence, x_sample, at, scratch(), begin);
      candidate.tally.add(row, x_sample.wrong[at] != 0);
      explained[at] = !row.telling ? 0 : row.by_place ? kByPlace : 1;
    }
    if (candidate.tally.telling == 0) return;
    begin = end;
  }
  if (telling_rows(candidate.tally) == 0) return;
  // Place alone is no account of a row where other rows are off.
  if (candidate.tally.within + candidate.tally.near < candidate.tally.rows)
    std::replace(explained.begin(), explained.end(), kByPlace, std::uint8_t{0});
  candidate.explained = std::move(explained);
}

void Search::judge_on_sample(std::vector<Candidate>& candidates) const {
  parallel_for(static_cast<std::int64_t>(candidates.size()), x_threads,
               [&](std::int64_t i) { judge_one(candidates[static_cast<std::size_t>(i)]); });
}

std::vector<Candidate> Search::screen(
    const std::vector<const reference::Hypothesis*>& hypotheses) const {
  // Enumerating looks at the geometry, and takes a while where many cuts are tried.
  const auto n_cuts = static_cast<std::int64_t>(x_cuts.size());
  std::vector<std::vector<reference::Variant>> lists(hypotheses.size() * x_cuts.size());
  parallel_for(static_cast<std::int64_t>(lists.size()), x_threads, [&](std::int64_t i) {
    const reference::Hypothesis& hypothesis = *hypotheses[static_cast<std::size_t>(i / n_cuts)];
    const reference::HypothesisInfo& info = hypothesis.info();
    const auto cut = static_cast<std::size_t>(i % n_cuts);
    if (cut == 0 || info.needs_tiles || info.needs_splits)
      lists[static_cast<std::size_t>(i)] = hypothesis.variants(x_cuts[cut]);
  });
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (reference::Variant& variant : lists[i]) {
      Candidate candidate;
      candidate.variant = std::move(variant);
      candidate.cut = i % x_cuts.size();
      candidate.order = static_cast<std::int64_t>(candidates.size());
      candidates.push_back(std::move(candidate));
    }
  judge_on_sample(candidates);
  return candidates;
}

void Search::judge_rows(const std::vector<Candidate*>& candidates,
                        const std::vector<std::int64_t>& flat) const {
  const auto chunks =
      static_cast<std::int64_t>((flat.size() + kRowsPredicted - 1) / kRowsPredicted);
  std::vector<std::vector<Tally>> tallies(static_cast<std::size_t>(chunks));
  parallel_for(chunks, x_threads, [&](std::int64_t i) {
    const std::size_t begin = static_cast<std::size_t>(i) * kRowsPredicted;
    const std::size_t end = std::min(flat.size(), begin + kRowsPredicted);
    const Rows rows = read_rows(x_evidence, x_cuts.front(),
                                {flat.begin() + static_cast<std::ptrdiff_t>(begin),
                                 flat.begin() + static_cast<std::ptrdiff_t>(end)});
    std::vector<Tally>& tally = tallies[static_cast<std::size_t>(i)];
    tally.resize(candidates.size());
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      reference::predict(x_cuts[candidates[k]->cut], rows.row, candidates[k]->variant.deviation,
                         x_evidence.mask(), scratch());
      for (std::size_t at = 0; at < rows.size(); ++at)
        tally[k].add(judge_row(x_evidence, rows, at, scratch(), 0), rows.wrong[at] != 0);
    }
  });
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    candidates[k]->tally = {};
    for (const std::vector<Tally>& tally : tallies) candidates[k]->tally.add(tally[k]);
  }
}

void Search::judge_all_rows(const std::vector<Candidate*>& candidates) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(x_evidence.rows()));
  std::iota(all.begin(), all.end(), 0);
  judge_rows(candidates, all);
  for (Candidate* candidate : candidates) candidate->confirmed = true;
}

void Search::confirm(std::vector<Candidate*> candidates) const {
  if (x_evidence.rows() > 2 * kSecondLook) {
    judge_rows(candidates, choose_rows(x_evidence, kSecondLook * 3 / 4, kSecondLook / 4));
    std::erase_if(candidates, [](const Candidate* c) { return !accounts(*c); });
  }
  if (!candidates.empty()) judge_all_rows(candidates);
}

void Search::keep_inside(std::vector<Candidate>& found) const {
  constexpr double kLeastJudged = 0.75;
  judge_on_sample(found);
  std::erase_if(found, [&](const Candidate& c) {
    return !accounts(c) || !tells_by_value(c.tally) || judged_share(c.tally) < kLeastJudged;
  });
  std::vector<Candidate*> pointers;
  for (Candidate& candidate : found) pointers.push_back(&candidate);
  confirm(pointers);
  std::erase_if(found, [](const Candidate& c) {
    return !c.confirmed || !accounts(c) || !tells_by_value(c.tally);
  });
  std::stable_sort(found.begin(), found.end(), better);
}

bool Search::fits_sample(const reference::Deviation& deviation) const {
  for (std::size_t at = 0; at < x_sample.size(); ++at) {
    reference::predict(x_cuts.front(), std::span(&x_sample.row[at], 1), deviation,
                       x_evidence.mask(), scratch());
    if (judge_row(x_evidence, x_sample, at, scratch(), at).worst > kNearMiss) return false;
  }
  return true;
}

}  // namespace attn_diag::matching
