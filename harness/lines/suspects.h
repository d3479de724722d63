// Lines that may be at fault, the likeliest first.
#pragma once

#include <set>
#include <string>
#include <unordered_set>

#include "attn_diag/harness/lines.h"
#include "harness/lines/graph_walk.h"
#include "harness/lines/site_words.h"

namespace attn_diag::lines {

class Suspects : public Walk {
 public:
  Suspects(const Terms& terms, LineDivergence& out) : Walk(terms), x_out(out) {}

  // Whether nothing but the first suspect explains what is seen.
  bool sure() const { return x_sure; }

 protected:
  // Of the suspect that comes next, if it is the first: nothing else explains what is seen.
  void be_sure() { x_sure = x_sure || x_out.suspects.empty(); }
  void suggest(const std::string& file, const std::string& function, int line, int column,
               const std::string& variable, const std::string& why);
  void suggest(std::uint32_t site_number, const std::string& why);
  // What a site's words name.
  void suggest(std::uint32_t site_number, const NamedLine& at, const std::string& why);
  void suggest_node(std::uint32_t n, const std::string& why);
  void suggest_indices(std::uint32_t site_number, const std::string& why);
  void suggest_callers(std::uint32_t site_number, const std::string& why);
  void suggest_conditions(std::uint32_t site_number, const char* kind, const std::string& why);
  // Whether the watched blocks loaded every element of these rows of k or v, or of their own rows of q.
  bool loads_all(unsigned buffer, std::uint32_t row);
  void note_loads();
  // The loads of an input and what they are made of.
  void suggest_loader(std::uint32_t loader, const std::string& why);
  void suggest_loaders(unsigned buffer, const std::string& why);
  void suggest_uses(std::uint32_t s, const std::string& why);
  // Variables that are given a constant that should not be.
  template <class Bad>
  void suggest_constants(std::uint32_t s, const std::string& why, const Bad& bad) {
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (use.constant && bad(*use.constant)) {
        be_sure();
        suggest(s, use, why);
      }
  }
  // The loads, stores and choices that a number went through.
  void suggest_moves(std::uint32_t n, const std::string& why);

  LineDivergence& x_out;
  std::set<std::uint32_t> x_loaders[3];

 private:
  bool x_sure = false;
  bool x_loads_known = false;
  std::unordered_set<std::uint64_t> x_loaded[3];
};

}  // namespace attn_diag::lines
