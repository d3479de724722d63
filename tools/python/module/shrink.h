// The smallest case in which a Python function fails as it does in a larger one.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/files.h"

namespace attn_diag::python {

struct ShrinkWishes {
  Tolerance tolerance;
  int runs = 3;  // of the case as it is given; of others, where the result moves
  double seconds = 60;
  bool keep_values = false;
  bool square = false;  // the mask is known of Sq = Sk alone
  std::vector<std::string> hold;
};

struct Shrunk {
  bool fails = false;
  std::string headline, text, json;
  // The case of the smallest sizes with the numbers as they were given, by which bugs are told apart: q, k, v and
  // what the function made of them. Null where nothing fails.
  std::shared_ptr<ForeignCase> sized;
  pybind11::list
      elements;  // of q, k and v of the smallest: a list each of (index in memory, value) that are not 0
};

// `call` and `example` as Function takes them; `on_step` gets the step, how many there are, and what is tried.
Shrunk shrink_function(const std::string& name, const pybind11::function& call,
                       const ForeignCase& example, const ShrinkWishes& wishes,
                       const pybind11::object& on_step);

}  // namespace attn_diag::python
