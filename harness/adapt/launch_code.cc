// Launches out of a function that makes its own data, as main() does: each launch is repeated with the
// tensors and sizes of the problem in the variables of the same names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "harness/adapt/arguments.h"
#include "harness/adapt/bodies.h"
#include "harness/source/source_error.h"

namespace attn_diag::adapt {
namespace {

using source::Syntax;

class Slicer {
 public:
  Slicer(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes)
      : x_model(model), x_s(model.syntax()), x_f(*c.function), x_facts(facts), x_notes(notes) {}

  Body body() {
    std::set<std::string> seen;
    std::vector<std::string> launches;
    for (const Launch& launch : x_f.launches) {
      const FunctionModel* kernel = x_model.function(launch.kernel);
      if (kernel == nullptr || launch.grid.empty()) continue;
      const std::string text = launch_text(launch, *kernel);
      if (!seen.insert(text).second) continue;  // repeated for timing
      launches.push_back(text + ";");
    }
    std::vector<std::string> lines;
    if (x_around.needs_rows || x_around.zero_output)
      lines.emplace_back(
          "const std::size_t rows = std::size_t(c.batch()) * c.heads() * c.seqlen_q();");
    if (x_around.zero_output)
      lines.emplace_back(
          "cudaMemset(c.o(), 0, rows * c.head_dim_v() * attn_diag::size_of(c.dtype()));");
    lines.insert(lines.end(), x_lines.begin(), x_lines.end());
    lines.insert(lines.end(), launches.begin(), launches.end());
    Body out;
    if (x_around.needs_buffer) out.headers.insert("device_buffer.h");
    out.text = indented(lines, 2);
    return out;
  }

 private:
  std::string launch_text(const Launch& launch, const FunctionModel& kernel) {
    const std::vector<Classified> roles = classify(kernel.parameters);
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < launch.arguments.size() && i < kernel.parameters.size(); ++i)
      arguments.push_back(
          argument(launch.arguments[i], kernel.parameters[i], roles[i], launch, kernel));
    need(launch.callee, kernel.name);
    need(launch.grid, "");
    need(launch.block, "");
    need(launch.shared, "");
    attributes(launch);
    return fmt::format("{}<<<{}, {}, {}, c.stream()>>>({})", launch.callee, launch.grid,
                       launch.block, launch.shared.empty() ? "0" : launch.shared,
                       fmt::join(arguments, ", "));
  }

  std::string argument(const std::string& given, const Parameter& p, const Classified& role,
                       const Launch& launch, const FunctionModel& kernel) {
    std::map<std::string, std::string> names;
    for (std::size_t t = 0; t < kernel.templates.size(); ++t)
      names[kernel.templates[t].name] =
          t < launch.templates.size() ? launch.templates[t] : kernel.templates[t].default_text;
    Arguments arguments(x_facts, names, x_around, x_notes);
    if (is_tensor(role.role) && role.role != Role::kPaged && p.is_pointer) {
      // The same variable is the same buffer in every launch.
      const auto known = x_tensors.find(given);
      if (known != x_tensors.end()) return known->second;
      Classified own = role;
      const bool output_of_pipeline = role.role == Role::kQ || role.role == Role::kK ||
                                      role.role == Role::kV || role.role == Role::kO ||
                                      role.role == Role::kLse;
      if (!output_of_pipeline) own.guess.clear();
      const std::size_t before = x_around.before.size();
      const std::string expression = arguments.of(p, own);
      x_lines.insert(x_lines.end(), x_around.before.begin() + static_cast<std::ptrdiff_t>(before),
                     x_around.before.end());
      x_around.before.resize(before);
      x_tensors[given] = expression;
      return expression;
    }
    if (!p.is_pointer && role.role != Role::kUnknown) {
      const std::string expression = arguments.of(p, role);
      if (!expression.empty()) return expression;
    }
    need(given, "");
    return given;
  }

  // cudaFuncSetAttribute(kernel, ...) for the kernel, as it stands.
  void attributes(const Launch& launch) {
    for (std::size_t i = x_f.open; i < x_f.close; ++i) {
      if (!x_s.is(i, "cudaFuncSetAttribute") || !x_s.is(i + 1, "(")) continue;
      const std::string text = x_model.text(i, x_s.match(i + 1) + 1);
      if (text.find(launch.kernel) == std::string::npos || !x_done.insert(text).second) continue;
      need(text, launch.kernel);
      x_lines.push_back(text + ";");
    }
  }

  // Makes every local variable that a text names.
  void need(const std::string& text, const std::string& except) {
    source::TokenList list;
    try {
      list = source::tokenize(text, "expression");
    } catch (const source::SourceError&) {
      return;
    }
    for (std::size_t i = 0; i < list.tokens.size(); ++i) {
      const source::Token& token = list.tokens[i];
      const bool member = i > 0 && (list.tokens[i - 1].is(".") || list.tokens[i - 1].is("->") ||
                                    list.tokens[i - 1].is("::"));
      if (token.is_identifier() && !member && token.text != except)
        variable(std::string(token.text));
    }
  }

  void variable(const std::string& name) {
    const std::size_t at = declared_at(name);
    if (at == x_s.size() || !x_done.insert(name).second) return;
    const std::size_t begin = x_s.statement_begin(at);
    const bool is_constexpr =
        x_s.is(begin, "constexpr") || (x_s.is(begin, "static") && x_s.is(begin + 1, "constexpr"));
    const Classified role = classify_size(name);
    const bool tile = role.role == Role::kTileM || role.role == Role::kTileN;
    std::string expression = is_constexpr || tile         ? ""
                             : role.role == Role::kStride ? stride_expression(role.stride)
                                                          : size_expression(role.role, x_facts);
    const std::size_t end = x_s.statement_end(at);
    const std::string statement = x_model.text(begin, end);
    if (!expression.empty() && statement.find("dim3") == std::string::npos) {
      x_lines.push_back(fmt::format("const int {} = {};", name, expression));
      return;
    }
    // Several in one statement: only this one.
    const std::size_t stop = x_s.is(end, "{") ? x_s.match(end) + 1 : end;
    std::string own = x_model.text(begin, stop);
    const std::vector<std::string> parts = x_model.split(begin, stop);
    if (parts.size() > 1)
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i].find(name) != std::string::npos &&
            (i > 0 || parts[i].find(name + " ") != std::string::npos || parts[i].ends_with(name))) {
          const std::string type =
              parts[0].substr(0, parts[0].find_last_of(' ', parts[0].find('=') - 2) + 1);
          own = i == 0 ? parts[0] : type + parts[i];
        }
    need(own, name);
    x_lines.push_back(own + ";");
  }

  // The token of the function that declares the name; size() if none does.
  std::size_t declared_at(const std::string& name) const {
    for (std::size_t i = x_f.open + 1; i < x_f.close; ++i) {
      if (!x_s[i].is(name) || !x_s[i - 1].is_identifier()) {
        const bool listed = x_s[i].is(name) && (x_s.is(i - 1, ",") || x_s.is(i - 1, "*")) &&
                            (x_s.is(i + 1, "=") || x_s.is(i + 1, ",") || x_s.is(i + 1, ";"));
        if (!listed) continue;
        const std::size_t begin = x_s.statement_begin(i);
        if (!x_s[begin].is_identifier() || !x_s[begin + 1].is_identifier()) {
          if (!x_s.is(begin + 1, "*")) continue;
        }
        return i;
      }
      if (x_s.is(i - 1, "return") || x_s.is(i - 1, "else")) continue;
      return i;
    }
    return x_s.size();
  }

  const Model& x_model;
  const Syntax& x_s;
  const FunctionModel& x_f;
  Facts& x_facts;
  std::vector<Note>& x_notes;
  Around x_around;
  std::vector<std::string> x_lines;
  std::set<std::string> x_done;
  std::map<std::string, std::string> x_tensors;
};

}  // namespace

Body launch_code(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes) {
  notes.push_back({NoteKind::kGuessed, fmt::format("the launch shapes of {}() hold for other sizes "
                                                   "too, with its variables set by their names",
                                                   c.function->name)});
  return Slicer(model, c, facts, notes).body();
}

}  // namespace attn_diag::adapt
