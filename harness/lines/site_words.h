// What the plugin wrote of a site, in words (value_callouts.h), as data.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::lines {

// A variable, where it gets a value.
struct NamedLine {
  std::string name;
  int line = 0;
  std::string file;                // empty: the site's home
  std::string sources;             // as value_callouts::Site has them
  std::optional<double> constant;  // that is assigned there
};
// Whether it comes of any of these sources.
inline bool comes_of(const NamedLine& one, std::string_view sources) {
  const bool thread = one.name == "threadIdx" && sources.find('t') != sources.npos;
  return thread || one.sources.find_first_of(sources) != std::string::npos;
}
// Whether it depends on the block's place in y or z and on no thread: a head or a batch.
inline bool is_of_block(const NamedLine& one) {
  return !one.sources.empty() && !comes_of(one, "tx");
}

// A branch that decides whether something runs.
struct Condition {
  bool loop = false;
  NamedLine at;
  std::vector<NamedLine> tests;
};
// Whether one of them comes of any of these sources: "t", so that it may differ from thread to thread; "tx", from row to
// row, of which a thread or a block has its own.
inline bool come_of(const std::vector<NamedLine>& tests, std::string_view sources) {
  return std::any_of(tests.begin(), tests.end(),
                     [sources](const NamedLine& test) { return comes_of(test, sources); });
}

inline std::vector<std::string> names_of(const std::vector<NamedLine>& variables) {
  std::vector<std::string> names;
  for (const NamedLine& one : variables) names.push_back(one.name);
  return names;
}

std::vector<NamedLine> variables_in(std::string_view words, char by);
std::vector<Condition> conditions_in(const std::string& words);
// "57,60~/src/a.h,": lines without names.
std::vector<NamedLine> lines_in(const std::string& words);

// "f" of "a::f<int>(float*)".
std::string bare_name(const std::string& function);

}  // namespace attn_diag::lines
