// The values that a variable of the source had, and which quantity of attention each is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/lines.h"
#include "harness/lines/terms.h"

namespace attn_diag::lines {

struct VariableQuery {
  std::string name;
  int line = 0;  // 0: wherever it gets a value
  std::optional<std::uint32_t>
      block;  // by number among all that ran; none: one that makes a wrong row
};

struct VariableValue {
  LinePlace place;
  std::uint32_t thread = 0;
  std::string holds;  // "S[query 5, key 37]"; of what is wrong, why
  double value = 0;
  std::optional<double> expected;       // of that quantity; none: it is not known
  bool wrong = false, follows = false;  // because of what was wrong before
};

struct VariableTable {
  std::string reason;  // why there are no values
  std::uint32_t block = 0;
  std::vector<VariableValue> values;  // by thread, and as they came
};

// Both read a graph that was watched.
std::vector<VariableValue> values_of(const Terms& terms, const VariableQuery& query,
                                     std::uint32_t block);
// Names that variables with values have there, for a message.
std::vector<std::string> variable_names(const host::ValueGraph& graph);

// Builds and runs the kernel's watch build.
VariableTable variable_table(const Experiment& experiment, const VariableQuery& query);

}  // namespace attn_diag::lines
