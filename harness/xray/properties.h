// The properties one by one; xray.h says what each is.
#pragma once

#include "harness/xray/trial.h"

namespace attn_diag::xraying {

// What every property has at hand.
struct Subject {
  const Trial& run;
  const Operands& operands;
  const TrialOutcome& base;  // of these operands
};

// properties_of_v.cc
PropertyResult doubled_v(const Subject& s);
PropertyResult sum_of_v(const Subject& s);
PropertyResult constant_v(const Subject& s);

// properties_of_keys.cc
PropertyResult shifted_keys(const Subject& s);
PropertyResult permuted_keys(const Subject& s);
PropertyResult duplicated_keys(const Subject& s);
PropertyResult zero_q(const Subject& s);

// properties_of_others.cc
PropertyResult other_heads(const Subject& s);
PropertyResult other_queries(const Subject& s);
PropertyResult masked_keys(const Subject& s);

}  // namespace attn_diag::xraying
