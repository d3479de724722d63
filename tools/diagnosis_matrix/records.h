// fixtures/diagnosis/*.toml: what is planted, on which problem it shows, and what names it rightly.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attn_diag/harness/run.h"
#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::diagnosis_matrix {

struct ProblemCase {
  Problem problem;  // dtype is the case's
  TileShape tile{0, 0};
  // What the model adds to its kernel's formula: then only o and lse can be compared.
  double softcap = 0;
  bool has_alibi = false;  // bias 2^(-1 - head) (key - query)

  bool has_extras() const { return softcap != 0 || has_alibi; }
  reference::Extras extras() const;
};

struct Bug {
  std::string name, what, formula;
  std::vector<std::string> kernels, stages, hypotheses;
  std::string problem;
  bool shows_in_outputs = true;
  // The commit of the matcher that was frozen when the bug was written by hands that had not seen it;
  // empty: written while the matcher was.
  std::string frozen_at;

  bool is_formula() const { return !formula.empty(); }
};

struct Records {
  std::vector<Bug> bugs;
  std::map<std::string, ProblemCase> problems;

  // Null if there is none.
  const Bug* find(const std::string& name) const;
};

// The files together; a problem stands before the first bug that is shown on it, or in an earlier file. Throws
// Error saying which key of which bug is missing or wrong. Hypotheses are checked against the catalogue.
Records read_records(const std::vector<std::string>& paths);

}  // namespace attn_diag::diagnosis_matrix
