// What a user's source says of its functions: signatures, launches, constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/toolchain/adapt/code.h"
#include "harness/toolchain/source/syntax.h"

namespace attn_diag::adapt {

struct Parameter {
  std::string type;     // as written, without the name: "const half* __restrict__"
  std::string element;  // without const, *, &, __restrict__: "half"
  std::string name;
  bool is_pointer = false, is_const = false;
  bool has_default = false;
  bool holds_lse = false;  // a kernel stores x + log(y) in it
};

struct TemplateParameter {
  std::string kind;  // "typename", "int", "bool", ...
  std::string name, default_text;
};

// "Tindex", "IdxT": whether the name of a template's type says that it is one of indices.
bool says_index(const std::string& type);

struct Launch {
  std::string kernel;                  // unqualified
  std::vector<std::string> templates;  // arguments
  std::string callee;                  // as written
  std::string grid, block, shared;     // as written; shared may be empty
  std::vector<std::string> arguments;
  std::size_t at = 0;  // of "<<<"; of the call for cudaLaunch...
  int line = 0;
};

struct FunctionModel {
  std::string name;
  std::string qualified;  // with its namespaces
  std::string owner;      // the class of a member, with namespaces
  bool is_static = false;
  std::string return_type;
  std::vector<TemplateParameter> templates;
  std::vector<Parameter> parameters;
  bool is_kernel = false, is_device = false, is_member = false;
  std::string launch_bounds;  // the first value
  std::size_t name_at = 0, open = 0, close = 0;
  std::string file;
  int line = 0;
  std::vector<Launch> launches;
  std::set<std::string> calls;      // names that are called or launched
  std::set<std::string> lse_names;  // names in it of what a kernel stores x + log(y) in
};

struct StructModel {
  std::string name;
  std::string scope;  // "gqa::", or empty
  std::vector<std::string> bases;
  std::vector<Parameter> members;
  std::optional<std::vector<Parameter>> constructor;  // the first of several
  bool is_template = false;
  std::vector<TemplateParameter> templates;
};

class Model {
 public:
  // Throws Error where brackets do not match: then nothing can be told.
  explicit Model(const std::filesystem::path& source);

  const Code& code() const { return *x_code; }
  const source::Syntax& syntax() const { return *x_syntax; }
  const std::vector<FunctionModel>& functions() const { return x_functions; }
  const FunctionModel* function(const std::string& name) const;
  // With the members of its bases; null if it is not here.
  std::optional<StructModel> structure(const std::string& name) const;
  // "gqa::Shape" of "Shape", as it is known outside of its namespace.
  std::string qualified_type(const std::string& name) const;

  // The value of a constant, macro, or expression of them.
  std::optional<std::int64_t> value(const std::string& expression) const;
  // Names of constants, in the order of the text.
  const std::vector<std::string>& constants() const { return x_constant_names; }
  // What an alias (using, typedef, macro) stands for, else the name itself.
  std::string resolve_type(const std::string& name) const;
  // Template arguments that a function is used with: its launches, calls, explicit instantiations.
  std::vector<std::vector<std::string>> instances(const std::string& name) const;

  // Tokens as text, with one blank where there was white space.
  std::string text(std::size_t begin, std::size_t end) const;
  // The parts of [begin, end) between commas outside of brackets and template arguments.
  std::vector<std::string> split(std::size_t begin, std::size_t end) const;
  // The parts of a text.
  static std::vector<std::string> split_text(const std::string& text);
  bool mentions(const FunctionModel& f, const std::string& word) const;

 private:
  void add_function(const source::Function& f);
  void add_launches(FunctionModel& f);
  std::vector<std::string> addressed(const FunctionModel& f, const std::string& name) const;
  void add_kernels_by_address();
  void add_stored_logs();
  void add_constants();
  void add_structures();
  void add_aliases();
  // Of the list that begins with the token "<".
  std::vector<TemplateParameter> template_parameters(std::size_t open) const;
  std::optional<StructModel> instance_of(const std::string& name) const;
  std::string scope_of(std::size_t at, bool& in_class, std::string* owner = nullptr) const;

  std::unique_ptr<Code> x_code;
  std::unique_ptr<source::Syntax> x_syntax;
  std::vector<FunctionModel> x_functions;
  std::map<std::string, StructModel> x_structures;
  std::map<std::string, std::string> x_constants, x_aliases;
  std::vector<std::string> x_constant_names;
};

// "const half* __restrict__ q = nullptr" taken apart.
Parameter parse_parameter(const std::string& text);

}  // namespace attn_diag::adapt
