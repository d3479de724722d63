// What of a function a launch in it needs: the statements that make its grid and arguments, the loops and
// conditions around it, with the problem's own sizes in the variables that are named so.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/toolchain/adapt/facts.h"

namespace attn_diag::adapt {

class Slice {
 public:
  // Names in `constant` must stay constants: they are template arguments, or make some.
  Slice(const Model& model, const FunctionModel& f, const Facts& facts,
        std::set<std::string> constant);

  // Makes every name that a text at token `at` uses; `except`: not these.
  void need(const std::string& text, std::size_t at, const std::set<std::string>& except = {});
  // A launch, or what stands in its place, under the conditions around it that can be told.
  void add(std::size_t at, const std::string& text);

  // Names that the problem's sizes stand in, and their roles.
  const std::map<std::string, Role>& sizes() const { return x_sizes; }
  // Names of the function that are neither made nor known.
  const std::set<std::string>& unknown() const { return x_unknown; }
  // In order; a line each.
  std::vector<std::string> lines() const;

 private:
  struct Loop {
    std::size_t begin, end;   // all of it
    std::size_t open, close;  // of its head: "(" and ")"
  };

  void find_loops();
  bool take_parameter(const std::string& name);
  bool take_size(const std::string& name, const std::string& type);
  void take_declaration(const std::string& name, std::size_t declared, std::size_t used);
  void take_assignments(const std::string& name, std::size_t from, std::size_t until);
  void keep(std::size_t begin, const std::string& text);
  std::optional<std::size_t> declared_at(const std::string& name, std::size_t before) const;
  std::vector<std::string> conditions_at(std::size_t at) const;
  std::string condition_before(std::size_t at, std::vector<std::string>& out) const;
  bool is_known(const std::string& condition) const;
  bool is_in_value(std::size_t begin, std::size_t i) const;
  std::size_t block_around(std::size_t at) const;

  const Model& x_model;
  const source::Syntax& x_s;
  const FunctionModel& x_f;
  const Facts& x_facts;
  std::set<std::string> x_constant;
  std::vector<Loop> x_loops;
  std::set<std::size_t> x_needed_loops;  // by their begin
  std::set<std::string> x_done, x_unknown;
  std::map<std::string, Role> x_sizes;
  std::vector<std::string> x_heads;                        // const int N = c.seqlen();
  std::map<std::size_t, std::vector<std::string>> x_kept;  // statements by their first token
};

// Identifiers of a text that are no members and no names behind "::".
std::vector<std::string> names_in(const std::string& text);

}  // namespace attn_diag::adapt
