// Changes to a text that keep its line numbers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::source {

// Two changes of one place, which only text that is no C++ leads to.
struct OverlappingEdits {
  std::size_t at = 0;
};

// Collected in any order, none inside another, or apply() throws OverlappingEdits. What is replaced leaves its
// newlines and its preprocessor lines behind, so that every other token stays on its line.
class Edits {
 public:
  void insert(std::size_t at, std::string text) { replace(at, at, std::move(text)); }
  void remove(std::size_t begin, std::size_t end) { replace(begin, end, ""); }
  // Several at one place appear in the order in which they were made.
  void replace(std::size_t begin, std::size_t end, std::string text);
  std::string apply(std::string_view original) const;

 private:
  struct Edit {
    std::size_t begin, end;
    std::string text;
  };
  std::vector<Edit> x_edits;
};

}  // namespace attn_diag::source
