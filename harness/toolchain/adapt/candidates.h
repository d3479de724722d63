// Which functions of a source can be called with an attention problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/kernels/arithmetic.h"
#include "harness/toolchain/adapt/adapt.h"
#include "harness/toolchain/adapt/model.h"
#include "harness/toolchain/adapt/roles.h"

namespace attn_diag::adapt {

struct Candidate {
  const FunctionModel* function = nullptr;
  Way way = Way::kHostFunction;
  Part part = Part::kAttention;
  std::vector<Classified> roles;      // of its parameters
  const Parameter* params = nullptr;  // the one that is a struct with the tensors
  std::vector<Parameter> members;     // of that struct
  std::vector<Classified> member_roles;
  std::vector<Classified> size_roles;          // of members of structures that hold sizes alone
  std::optional<StructModel> object;           // of a member function: the class
  const FunctionModel* launched_in = nullptr;  // of a kernel: the function whose launch is repeated
  int score = 0;
  std::string why_not;  // empty: it would do

  bool has(Role role) const;
};

// Best first; those that will not do last.
std::vector<Candidate> find_candidates(const Model& model);

// The kernels that a function launches, itself or by others.
std::vector<const FunctionModel*> kernels_of(const Model& model, const FunctionModel& function);

}  // namespace attn_diag::adapt
