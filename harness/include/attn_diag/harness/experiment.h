// A kernel and a case: what is run, on what, how, and when its result is wrong. Every hunt is given one.
#pragma once

#include <memory>
#include <utility>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/options.h"

namespace attn_diag {

// Shared by the captures of an experiment, so that the reference's o and lse are computed once.
std::shared_ptr<Oracle> make_oracle();

// Cheap to copy: kernel, inputs and what the reference said are shared.
struct Experiment {
  Kernel kernel;
  Problem problem;
  InputData inputs;
  RunOptions run{};
  Tolerance tolerance{};
  std::shared_ptr<Oracle> oracle = make_oracle();

  // This experiment with other run options.
  Experiment with(RunOptions other) const {
    Experiment out = *this;
    out.run = std::move(other);
    return out;
  }
  // This kernel on another case.
  Experiment with(const Problem& other, InputData given) const {
    return {kernel, other, std::move(given), run, tolerance};
  }
};

}  // namespace attn_diag
