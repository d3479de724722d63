// Tries hypotheses on a sample of rows, and what is left of them on all rows.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/evidence.h"
#include "harness/diagnose/judge.h"

namespace attn_diag::matching {

// The data under each cut into tiles that is tried; the first is the capture's own.
using Cuts = std::vector<reference::PredictionInputs>;

class Search {
 public:
  // All are kept by reference and outlive this.
  Search(const Evidence& evidence, const Cuts& cuts, int threads);

  const Evidence& evidence() const { return x_evidence; }
  const Cuts& cuts() const { return x_cuts; }
  const Rows& sample() const { return x_sample; }
  int threads() const { return x_threads; }

  // Every variant of the hypotheses, its free parameter fitted, judged on the sample; one that tells of no
  // wrong row among the first few is dropped there. In the order of the catalogue.
  std::vector<Candidate> screen(const std::vector<const reference::Hypothesis*>& hypotheses) const;

  // Judges candidates on the sample; the free parameter, if any, is fitted. `variant` and `cut` are read.
  void judge_on_sample(std::vector<Candidate>& candidates) const;

  // Judges on all rows, a chunk of rows at a time, first on a part of them; a candidate that is not
  // inside there is left unconfirmed, with that part's tally.
  void confirm(std::vector<Candidate*> candidates) const;
  // Judges on the sample, then on all rows, and keeps candidates that account for all rows by their numbers and judge
  // three quarters of the cells; best first. For candidates among very many, where one that says nothing about half
  // of the cells fits by chance.
  void keep_inside(std::vector<Candidate>& found) const;
  // Whether no row of the sample rules a deviation out, under the first cut: what inside() asks at least. Row by row,
  // since most are ruled out by one of the first.
  bool fits_sample(const reference::Deviation& deviation) const;
  // Judges the candidates on all rows at once.
  void judge_all_rows(const std::vector<Candidate*>& candidates) const;

 private:
  void judge_rows(const std::vector<Candidate*>& candidates,
                  const std::vector<std::int64_t>& flat) const;
  void judge_one(Candidate& candidate) const;

  const Evidence& x_evidence;
  const Cuts& x_cuts;
  int x_threads;
  Rows x_sample;
};

}  // namespace attn_diag::matching
