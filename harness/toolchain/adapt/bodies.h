// The body of an adapter's call(): how the chosen function is called, or its launches repeated.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/toolchain/adapt/arguments.h"
#include "harness/toolchain/adapt/facts.h"

namespace attn_diag::adapt {

struct Body {
  std::string text;               // indented by two
  std::string before;             // call() itself
  std::set<std::string> headers;  // of attn_diag/kernels/
};

// May settle facts: what a function returns, what a launch is given.
Body make_body(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes);

// The launches of a function that makes its own data (launch_code.cc), of the kernel `only` or of all;
// empty where it has none that can be repeated. And of a kernel that nothing launches
// (bare_kernel.cc).
Body launch_code(const Model& model, const FunctionModel& f, const FunctionModel* only,
                 Facts& facts, std::vector<Note>& notes);
Body bare_kernel(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes);

// What the template parameters of a function may stand for, and for which problems.
struct Instance {
  std::map<std::string, std::string> names;
  std::string arguments;  // "<half, 64, true>"
  std::string condition;  // "c.head_dim() == 64 && c.is_causal()"; empty: always
};
std::vector<Instance> instances_of(const Model& model, const FunctionModel& f, Facts& facts,
                                   std::vector<Note>& notes);

// `inner`, once for all or in a loop over what the code knows nothing of: heads, batches.
void add_calls(const Facts& facts, const std::vector<std::string>& inner,
               std::vector<std::string>& lines);

// The lines, each indented by `by` blanks. `ends`: with the last one's newline.
std::string indented(const std::vector<std::string>& lines, int by, bool ends = true);

// How one instance is called, where it is meant.
struct InstanceCall {
  std::string condition;
  std::vector<std::string> lines;
  Around around;
};
// A branch for each; what stands around all of them alike is left to `around`. There is at least one.
std::vector<std::string> branches(const std::vector<InstanceCall>& each, Around& around);

}  // namespace attn_diag::adapt
