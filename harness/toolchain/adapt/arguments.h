// Expressions of an adapter: what to pass for a parameter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/toolchain/adapt/facts.h"

namespace attn_diag::adapt {

// What stands around a call, in the order in which it is needed.
struct Around {
  std::vector<std::string> before;  // statements
  std::vector<std::string> after;
  bool needs_rows = false;    // "rows": batch * heads * queries, as std::size_t
  bool needs_buffer = false;  // device_buffer.h
  bool zero_output = false;
};

class Arguments {
 public:
  // `names` are what template parameters stand for.
  Arguments(const Facts& facts, const std::map<std::string, std::string>& names, Around& around,
            std::vector<Note>& notes)
      : x_facts(facts), x_names(names), x_around(around), x_notes(notes) {}

  std::string of(const Parameter& p, const Classified& c);

 private:
  std::string tensor(const char* which, const Parameter& p);
  std::string coded(char tensor);
  std::string packed(const char* type, const char* axes, const Parameter& p);
  std::string cache(const std::string& element);
  const char* type_of_case() const;
  std::string strides(const Parameter& p, const std::vector<std::string>& order);
  bool add_once(const std::string& line);  // to what stands before
  std::string integers(const Parameter& p, Role role);
  std::string buffer(const Parameter& p, const std::string& count, const char* fill);
  std::string workspace(const Parameter& p, const std::string& question, bool is_zero);
  std::string unknown(const Parameter& p, const Classified& c);

  const Facts& x_facts;
  const std::map<std::string, std::string>& x_names;
  Around& x_around;
  std::vector<Note>& x_notes;
};

// The expression for a size or number; "" if the problem has none of that role.
std::string size_expression(Role role, const Facts& facts);

// "q batch" -> "c.q_strides().batch".
std::string stride_expression(const std::string& stride);

}  // namespace attn_diag::adapt
