#include "harness/diagnose/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "harness/base/parallel_for.h"
#include "harness/compare/judgement.h"
#include "harness/diagnose/equivalence.h"
#include "harness/diagnose/pairs.h"
#include "harness/diagnose/places.h"
#include "harness/diagnose/residual.h"
#include "harness/diagnose/split_weights.h"

namespace attn_diag::matching {
namespace {

constexpr std::size_t kBestPartial = 3;  // shown where nothing explains all
constexpr double kPartialFrom = 0.5;  // of the wrong rows: from there on a match is a partial one
constexpr std::size_t kLargestProduct = 16;

// Marks the rows that are not what the right formula makes of the recorded inputs.
void mark_by_prediction(Evidence& evidence, const Cuts& cuts, const Tolerance& tolerance,
                        int threads) {
  constexpr std::int64_t kChunk = 64;
  const std::int64_t rows = evidence.rows();
  std::vector<std::uint8_t> wrong(static_cast<std::size_t>(rows), 0);
  parallel_for((rows + kChunk - 1) / kChunk, threads, [&](std::int64_t i) {
    std::vector<std::int64_t> flat(static_cast<std::size_t>(std::min(kChunk, rows - i * kChunk)));
    std::iota(flat.begin(), flat.end(), i * kChunk);
    Rows chunk = read_rows(evidence, cuts.front(), std::move(flat));
    if (!tolerance.use_bound)
      for (const Tensor t : evidence.tensors()) {
        reference::Prediction::Values& right = chunk.right[t];
        for (std::size_t c = 0; c < right.value.size(); ++c)
          right.bound[c] = Limits(tolerance).by_tolerance(right.value[c]);
      }
    for (std::size_t at = 0; at < chunk.size(); ++at)
      if (judge_row(evidence, chunk, at, chunk.right, 0).worst > 1)
        wrong[static_cast<std::size_t>(chunk.flat[at])] = 1;
  });
  for (std::int64_t row = 0; row < rows; ++row)
    if (wrong[static_cast<std::size_t>(row)] != 0) evidence.mark_wrong(row);
}

std::vector<const reference::Hypothesis*> open_hypotheses(const Subject& subject) {
  std::vector<const reference::Hypothesis*> open;
  for (const reference::Hypothesis* hypothesis : reference::catalogue())
    if (std::find(subject.exonerated.begin(), subject.exonerated.end(), hypothesis->info().stage) ==
        subject.exonerated.end())
      open.push_back(hypothesis);
  return open;
}

bool in_answer(const Candidate& candidate, const std::vector<Candidate>& answer) {
  return std::any_of(answer.begin(), answer.end(), [&](const Candidate& a) {
    const auto& of = a.variant.hypotheses;
    return std::all_of(candidate.variant.hypotheses.begin(), candidate.variant.hypotheses.end(),
                       [&](const reference::Hypothesis* h) {
                         return std::find(of.begin(), of.end(), h) != of.end();
                       });
  });
}

// Each hypothesis that is not in the answer at its best, the best first.
std::vector<Match> ruled_out(const std::vector<Candidate>& singles,
                             const std::vector<Candidate>& answer) {
  std::vector<const Candidate*> best;
  for (const Candidate& candidate : singles) {
    if (in_answer(candidate, answer)) continue;
    const auto it = std::find_if(best.begin(), best.end(), [&](const Candidate* b) {
      return b->variant.hypotheses == candidate.variant.hypotheses;
    });
    if (it == best.end()) {
      best.push_back(&candidate);
    } else if (better(candidate, **it)) {
      *it = &candidate;
    }
  }
  std::stable_sort(best.begin(), best.end(),
                   [](const Candidate* a, const Candidate* b) { return better(*a, *b); });
  std::vector<Match> matches;
  for (const Candidate* candidate : best) matches.push_back(to_match(*candidate));
  return matches;
}

// Within its bounds only because they are wider than what is wrong, or little is known of what it would
// give: neither ruled out nor an answer.
bool says_nothing(const Match& match) { return match.residual_over_bound <= 1; }

std::optional<Match> runner_up_of(const std::vector<Match>& ruled_out, std::size_t skip) {
  for (std::size_t i = skip; i < ruled_out.size(); ++i)
    if (!says_nothing(ruled_out[i])) return ruled_out[i];
  return std::nullopt;
}

double wrong_share(const Match& match) {
  return match.wrong_rows == 0
             ? 0
             : static_cast<double>(match.telling_rows) / static_cast<double>(match.wrong_rows);
}

// Whether a bug would make rows of a tensor wrong that are right as recorded: more than one in 200 of the sample's.
bool contradicts(const Search& search, const Candidate& candidate, Tensor t) {
  const Evidence evidence(search.evidence().capture(), {t});
  const reference::PredictionInputs& c = search.cuts()[candidate.cut];
  const Rows rows = read_rows(evidence, search.cuts().front(), search.sample().flat);
  reference::Prediction predicted;
  reference::predict(c, rows.row, candidate.variant.deviation, evidence.mask(), predicted);
  std::int64_t right = 0, wrong = 0;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (judge_row(evidence, rows, at, rows.right, 0).worst > 1) continue;
    ++right;
    wrong += judge_row(evidence, rows, at, predicted, 0).worst > kNearMiss;
  }
  return wrong > (right + kRowsPerNearMiss - 1) / kRowsPerNearMiss;
}

bool answered(const Diagnosis& d) {
  return d.verdict == DiagnosisVerdict::kNamed || d.verdict == DiagnosisVerdict::kClass;
}

double confidence_of(const Diagnosis& d) {
  if (d.best.empty()) return 0;
  const double distance = d.runner_up ? 1 - 1 / std::max(1.0, d.runner_up->residual_over_bound) : 1;
  const Match& m = d.best.front();
  const double explained = answered(d)
                               ? static_cast<double>(m.wrong_rows_explained) /
                                     static_cast<double>(std::max<std::int64_t>(1, m.wrong_rows))
                               : wrong_share(m);
  return explained * distance / static_cast<double>(d.best.size());
}

class SubjectDiagnosis {
 public:
  SubjectDiagnosis(const Capture& capture, const Comparison& comparison, const Subject& subject,
                   bool first, const DiagnoseOptions& options)
      : x_options(options),
        x_cuts(make_cuts(capture, subject.given, options)),
        x_evidence(evidence_of(capture, comparison, subject, first, x_cuts, options)) {
    x_out.stage = subject.stage;
    x_out.tensors = subject.tensors;
    x_hypotheses = open_hypotheses(subject);
  }

  // t is not matched, but a bug under which a right row of t would be wrong is left out.
  void may_not_contradict(Tensor t) { x_may_not_contradict = t; }

  Diagnosis run() {
    x_out.rows = x_evidence.rows();
    x_out.wrong_rows = x_evidence.wrong_rows();
    if (x_out.wrong_rows == 0) {
      x_out.verdict = DiagnosisVerdict::kNothingWrong;
      count_judged();
      return std::move(x_out);
    }
    const Search search(x_evidence, x_cuts, x_options.threads);
    step(fmt::format("trying every known bug on {} rows", search.sample().size()));
    std::vector<Candidate> singles = search.screen(x_hypotheses);
    std::vector<Candidate> answer = all_inside(search, singles);
    if (answer.empty()) answer = find_split_weights(search);
    if (answer.empty()) {
      step("trying bugs in places");
      answer = find_in_places(search, x_hypotheses, singles);
    }
    if (answer.empty() && x_options.pairs) answer = try_pairs(search);
    if (x_may_not_contradict)
      std::erase_if(answer, [&](const Candidate& candidate) {
        return contradicts(search, candidate, *x_may_not_contradict);
      });
    if (answer.empty()) {
      settle_for_parts(search, singles);
    } else {
      name(search, std::move(answer), singles);
    }
    x_out.confidence = confidence_of(x_out);
    return std::move(x_out);
  }

 private:
  void step(const std::string& what) {
    if (x_options.on_step) x_options.on_step(++x_step, x_options.pairs ? 4 : 3, what);
  }

  std::vector<Candidate> try_pairs(const Search& search) {
    step("trying pairs of bugs");
    PairLimit limit;
    limit.work = x_options.pair_work;
    limit.on_tried = [&](std::int64_t tried, std::int64_t all) {
      if (x_options.on_step)
        x_options.on_step(x_step, 4, fmt::format("trying pairs of bugs: {} of {}", tried, all));
    };
    std::vector<Candidate> found = find_pairs(search, x_hypotheses, limit);
    if (limit.tried < limit.all)
      x_out.notes.push_back(
          fmt::format("Of {} pairs of bugs {} were tried, those first whose bugs alone come "
                      "nearest: more take too long for so many keys. A smaller "
                      "case that is wrong too lets all be tried.",
                      limit.all, limit.tried));
    return found;
  }

  // Counts judged cells where only predictions were compared with the output.
  void count_judged() {
    for (std::int64_t row = 0; row < x_evidence.rows(); ++row) {
      const Rows one = read_rows(x_evidence, x_cuts.front(), {row});
      const RowFit fit = judge_row(x_evidence, one, 0, one.right, 0);
      x_out.judged += fit.judged;
      for (const Tensor t : x_evidence.tensors()) x_out.unjudged += x_evidence.cells(t);
    }
    x_out.unjudged -= x_out.judged;
    if (x_out.judged > 0) return;
    x_out.verdict = DiagnosisVerdict::kNotJudged;
    x_out.not_judged = fmt::format(
        "none of the {} elements can be judged, having no bound: overflow is possible, or NaN or "
        "infinity in what they come from",
        x_out.unjudged);
  }

  std::vector<Candidate> all_inside(const Search& search, std::vector<Candidate>& singles) {
    std::vector<Candidate*> hopeful;
    for (Candidate& candidate : singles)
      if (!candidate.explained.empty() && accounts(candidate)) hopeful.push_back(&candidate);
    step(fmt::format("confirming {} on all rows", hopeful.size()));
    search.confirm(hopeful);
    std::vector<Candidate> answer;
    for (const Candidate* candidate : hopeful)
      if (candidate->confirmed && accounts(*candidate)) answer.push_back(*candidate);
    return answer;
  }

  void name(const Search& search, std::vector<Candidate> answer,
            const std::vector<Candidate>& singles) {
    EquivalenceClass found = resolve(search, answer, x_options.other_cuts);
    for (const Candidate& member : found.members) x_out.best.push_back(to_match(member));
    x_out.verdict = found.members.size() == 1 ? DiagnosisVerdict::kNamed : DiagnosisVerdict::kClass;
    x_out.notes = std::move(found.notes);
    x_out.experiments = std::move(found.experiments);
    if (x_cuts.size() > 1) note_cut(found.members.front());
    // What was folded into a member is not ruled out either.
    x_out.ruled_out = ruled_out(singles, answer);
    x_out.runner_up = runner_up_of(x_out.ruled_out, 0);
    note_what_says_nothing();
  }

  void note_what_says_nothing() {
    std::vector<std::string> labels;
    for (const Match& match : x_out.ruled_out)
      if (says_nothing(match)) labels.push_back(match.label);
    std::erase_if(x_out.ruled_out, says_nothing);
    if (labels.empty()) return;
    constexpr std::size_t kShown = 3;
    const std::size_t more = labels.size() - std::min(labels.size(), kShown);
    labels.resize(labels.size() - more);
    x_out.notes.push_back(fmt::format(
        "Not judged: {}{}. What that would give is not known here, or no surer than what is wrong.",
        fmt::join(labels, ", "), more == 0 ? "" : fmt::format(" and {} more", more)));
  }

  void note_cut(const Candidate& member) {
    const Geometry& g = x_cuts[member.cut].geometry();
    const bool matters =
        std::any_of(member.variant.hypotheses.begin(), member.variant.hypotheses.end(),
                    [](const reference::Hypothesis* h) {
                      return h->info().needs_tiles || h->info().needs_splits;
                    });
    if (matters)
      x_out.notes.push_back(fmt::format(
          "How the kernel cuts the keys is not known: of {} cuts tried one that fits has "
          "KV tiles of {} keys and {} split{}.",
          x_cuts.size(), g.tile.block_n, g.num_splits, g.num_splits == 1 ? "" : "s"));
  }

  // No single candidate accounts for everything.
  void settle_for_parts(const Search& search, const std::vector<Candidate>& singles) {
    const std::vector<Candidate> both = find_union(search, singles);
    for (const Candidate& candidate : both) x_out.best.push_back(to_match(candidate));
    x_out.ruled_out = ruled_out(singles, both);
    if (both.empty()) {
      const std::size_t shown = std::min(kBestPartial, x_out.ruled_out.size());
      x_out.best.assign(x_out.ruled_out.begin(),
                        x_out.ruled_out.begin() + static_cast<std::ptrdiff_t>(shown));
      std::erase_if(x_out.best, [](const Match& m) { return m.telling_rows == 0; });
    } else {
      x_out.notes.push_back(fmt::format(
          "Between them they explain every wrong row of the sample: {} {} of {}, {} {}.",
          both[0].variant.label(), both[0].tally.telling, both[0].tally.wrong_rows,
          both[1].variant.label(), both[1].tally.telling));
    }
    const bool too_little = note_too_little(singles);
    constexpr std::int64_t kFewRows = 4;
    if (!too_little && x_out.rows < kFewRows)
      x_out.notes.push_back(fmt::format(
          "{} row{} tell{} few bugs from others: a larger case that is wrong may name it.",
          x_out.rows, x_out.rows == 1 ? "" : "s", x_out.rows == 1 ? "s" : ""));
    const std::size_t skip = both.empty() ? x_out.best.size() : 0;
    x_out.runner_up = runner_up_of(x_out.ruled_out, skip);
    const bool partial = !both.empty() || (!too_little && !x_out.best.empty() &&
                                           wrong_share(x_out.best.front()) >= kPartialFrom);
    x_out.verdict = partial ? DiagnosisVerdict::kPartial : DiagnosisVerdict::kUnknown;
    x_out.residual =
        residual_structure(x_evidence, x_cuts.front(), x_options.tolerance, search.threads());
  }

  // Notes what would account for everything, but with a parameter fitted to hardly more evidence than itself.
  bool note_too_little(const std::vector<Candidate>& singles) {
    for (const Candidate& candidate : singles) {
      if (candidate.explained.empty() || !inside(candidate.tally) || accounts(candidate)) continue;
      x_out.notes.push_back(
          fmt::format("{} would account for what was looked at, and is not named: too little is "
                      "wrong to tell it from others ({} "
                      "rows that tell by their numbers).",
                      candidate.variant.label(), rows_by_value(candidate.tally)));
      return true;
    }
    return false;
  }

  const DiagnoseOptions& x_options;
  Cuts x_cuts;
  Evidence x_evidence;
  std::vector<const reference::Hypothesis*> x_hypotheses;
  Diagnosis x_out;
  std::optional<Tensor> x_may_not_contradict;
  int x_step = 0;
};

Match both(const Match& a, const Match& b) {
  Match m = a;
  m.parts.insert(m.parts.end(), b.parts.begin(), b.parts.end());
  m.label = a.label + " + " + b.label;
  m.residual_over_bound = std::max(a.residual_over_bound, b.residual_over_bound);
  m.median_residual_over_bound =
      std::max(a.median_residual_over_bound, b.median_residual_over_bound);
  m.rows_explained = std::min(a.rows_explained, b.rows_explained);
  m.confirmed = a.confirmed && b.confirmed;
  return m;
}

}  // namespace

Evidence evidence_of(const Capture& capture, const Comparison& comparison, const Subject& subject,
                     bool first, const Cuts& cuts, const DiagnoseOptions& options) {
  Evidence evidence(capture, subject.tensors);
  if (first && !has_extras(options)) {
    evidence.mark_wrong(comparison);
  } else {
    mark_by_prediction(evidence, cuts, options.tolerance, options.threads);
  }
  return evidence;
}

Diagnosis diagnose_subject(const Capture& capture, const Comparison& comparison,
                           const Subject& subject, bool first, const DiagnoseOptions& options) {
  Diagnosis all = SubjectDiagnosis(capture, comparison, subject, first, options).run();
  const auto has = [&](Tensor t) {
    return std::find(subject.tensors.begin(), subject.tensors.end(), t) != subject.tensors.end();
  };
  if (answered(all) || all.verdict == DiagnosisVerdict::kNothingWrong || !has(Tensor::kO) ||
      !has(Tensor::kLse))
    return all;
  // Kernels differ in what they store as lse: o alone may have a name.
  Subject without_lse = subject;
  std::erase(without_lse.tensors, Tensor::kLse);
  DiagnoseOptions singles = options;
  singles.pairs = false;
  SubjectDiagnosis of_o(capture, comparison, without_lse, first, singles);
  of_o.may_not_contradict(Tensor::kLse);
  Diagnosis o = of_o.run();
  if (!answered(o)) return all;
  o.notes.emplace_back(
      "lse was left out: it is not what this bug would give, and may be wrong for a reason of its "
      "own.");
  return o;
}

std::vector<std::string> where_it_is_wrong(const Capture& capture, const DiagnoseOptions& options) {
  if (!capture.has(Tensor::kO)) return {};
  Evidence evidence(capture, {Tensor::kO});
  evidence.mark_wrong(compare(capture, options));
  if (evidence.wrong_rows() == 0) return {};
  const Cuts cuts = make_cuts(capture, {}, options);
  std::vector<std::string> sentences =
      residual_structure(evidence, cuts.front(), options.tolerance, options.threads);
  sentences.emplace_back("this is of the run that was recorded: others differ");
  return sentences;
}

Diagnosis join(std::vector<Diagnosis> parts) {
  std::erase_if(parts, [&](const Diagnosis& d) {
    return &d != &parts.front() && d.verdict == DiagnosisVerdict::kNothingWrong;
  });
  Diagnosis all = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Diagnosis& next = parts[i];
    std::vector<Match> matches;
    if (answered(all) && answered(next) && all.best.size() * next.best.size() <= kLargestProduct) {
      for (const Match& a : all.best)
        for (const Match& b : next.best) matches.push_back(both(a, b));
      const bool named =
          all.verdict == DiagnosisVerdict::kNamed && next.verdict == DiagnosisVerdict::kNamed;
      all.verdict = named ? DiagnosisVerdict::kNamed : DiagnosisVerdict::kClass;
    } else {
      matches = all.best;
      matches.insert(matches.end(), next.best.begin(), next.best.end());
      all.verdict = DiagnosisVerdict::kPartial;
    }
    all.notes.push_back(
        fmt::format("Two stages are at fault by themselves: {}, and {}, which is wrong for the "
                    "inputs it got too.",
                    attn_diag::name(all.stage), attn_diag::name(next.stage)));
    all.best = std::move(matches);
    all.confidence = std::min(all.confidence, next.confidence);
    for (const auto& [from, to] :
         {std::pair{&next.notes, &all.notes}, std::pair{&next.residual, &all.residual}})
      to->insert(to->end(), from->begin(), from->end());
    all.experiments.insert(all.experiments.end(), next.experiments.begin(), next.experiments.end());
    all.ruled_out.insert(all.ruled_out.end(), next.ruled_out.begin(), next.ruled_out.end());
    if (!all.runner_up) all.runner_up = next.runner_up;
  }
  return all;
}

}  // namespace attn_diag::matching
