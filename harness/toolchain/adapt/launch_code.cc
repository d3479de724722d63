// Launches out of a function that makes its own data, as main() does: each launch is repeated with the
// tensors and sizes of the problem in the variables of the same names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/toolchain/adapt/arguments.h"
#include "harness/toolchain/adapt/bodies.h"
#include "harness/toolchain/adapt/facts_code.h"
#include "harness/toolchain/adapt/slice.h"

namespace attn_diag::adapt {
namespace {

using source::Syntax;

bool is_input(Role role) { return role == Role::kQ || role == Role::kK || role == Role::kV; }

bool is_whole(const std::vector<Classified>& roles) {
  const auto has = [&](Role role) {
    return std::any_of(roles.begin(), roles.end(),
                       [&](const Classified& c) { return c.role == role; });
  };
  return has(Role::kO) && (has(Role::kQkv) || (has(Role::kQ) && has(Role::kK) && has(Role::kV)));
}

bool is_baseline(const std::string& name) {
  const std::string low = lower(name);
  for (const char* word : {"naive", "ref", "baseline", "golden", "check", "slow"})
    if (low.find(word) != std::string::npos) return true;
  return false;
}

class LaunchCode {
 public:
  // `only`: the kernel whose launches are meant; null: what the function computes.
  LaunchCode(const Model& model, const FunctionModel& f, const FunctionModel* only, Facts& facts,
             std::vector<Note>& notes)
      : x_model(model), x_s(model.syntax()), x_f(f), x_only(only), x_facts(facts), x_notes(notes) {
    for (const Launch& launch : f.launches) {
      const FunctionModel* kernel = model.function(launch.kernel);
      if (kernel == nullptr || launch.grid.empty() || launch.arguments.empty()) continue;
      x_launches.push_back({&launch, kernel, classify(kernel->parameters)});
    }
    choose();
  }

  bool is_empty() const { return x_launches.empty(); }

  Body body() {
    // Once to see which sizes it is made of, once with what follows from that.
    std::vector<Note> unheard;
    std::swap(unheard, x_notes);
    write();
    std::swap(unheard, x_notes);
    heads();
    Body out = write();
    if (!x_f.templates.empty()) as_template(out);
    return out;
  }

 private:
  struct Use {
    const Launch* launch;
    const FunctionModel* kernel;
    std::vector<Classified> roles;
  };

  // What is taken out of a template is one, used as that is.
  void as_template(Body& out) {
    std::vector<std::string> parameters, calls;
    for (const TemplateParameter& t : x_f.templates)
      parameters.push_back(fmt::format("{} {}", t.kind, t.name));
    const std::string name = x_f.name + "_launches";
    out.before = fmt::format("template <{}>\nstatic void {}(const attn_diag::Call& c) {{\n{}}}\n\n",
                             fmt::join(parameters, ", "), name, out.text);
    for (const Instance& instance : instances_of(x_model, x_f, x_facts, x_notes))
      calls.push_back(
          fmt::format("{}return {}{}(c);",
                      instance.condition.empty() ? "" : fmt::format("if ({}) ", instance.condition),
                      name, instance.arguments));
    calls.emplace_back("c.refuse(\"the source has no instance for this problem\");");
    out.text = indented(calls, 2);
  }

  // Where several kernels are attention each on their own, as in tests that compare them: the last that is no
  // baseline, with the launches that share a buffer with it.
  void choose() {
    const Use* chosen = nullptr;
    for (const Use& use : x_launches)
      if (is_whole(use.roles) && (x_only == nullptr || use.kernel == x_only) &&
          (chosen == nullptr || !is_baseline(use.kernel->name) ||
           is_baseline(chosen->kernel->name)))
        chosen = &use;
    if (chosen == nullptr) return;
    std::set<std::string> shared, others;
    for (std::size_t i = 0; i < chosen->roles.size() && i < chosen->launch->arguments.size(); ++i)
      if (is_tensor(chosen->roles[i].role) && !is_input(chosen->roles[i].role))
        shared.insert(chosen->launch->arguments[i]);
    const FunctionModel* kernel = chosen->kernel;
    std::vector<Use> kept;
    for (const Use& use : x_launches) {
      bool joins = use.kernel == kernel;
      for (std::size_t i = 0; i < use.roles.size() && i < use.launch->arguments.size(); ++i)
        joins |= is_tensor(use.roles[i].role) && !is_whole(use.roles) &&
                 shared.count(use.launch->arguments[i]) > 0;
      if (joins)
        kept.push_back(use);
      else if (is_whole(use.roles))
        others.insert(use.kernel->name + "()");
    }
    x_launches = kept;
    if (!others.empty())
      x_notes.push_back(
          {NoteKind::kGuessed, fmt::format("{}() is meant; {} would do too: --function chooses",
                                           kernel->name, fmt::join(others, ", "))});
  }

  std::set<std::string> template_names() const {
    std::set<std::string> names;
    for (const Use& use : x_launches) {
      const std::size_t open = use.launch->callee.find('<');
      if (open == std::string::npos) continue;
      for (const std::string& name : names_in(use.launch->callee.substr(open))) names.insert(name);
    }
    return names;
  }

  Body write() {
    x_around = {};
    x_buffers.clear();
    x_tensors.clear();
    Slice slice(x_model, x_f, x_facts, template_names());
    for (const Use& use : x_launches) slice.add(use.launch->at, launch_text(use, slice));
    x_sizes = slice.sizes();

    std::vector<std::string> lines;
    // Names in what is taken out of the function are those of its namespace.
    if (const std::size_t scope = x_f.qualified.size() - x_f.name.size();
        scope > 2 && !x_f.is_member)
      lines.push_back(fmt::format("using namespace {};", x_f.qualified.substr(0, scope - 2)));
    if (x_around.needs_rows)
      lines.emplace_back(
          "const std::size_t rows = std::size_t(c.batch()) * c.heads() * c.seqlen_q();");
    if (x_around.zero_output) lines.emplace_back("c.zero_o();");
    std::vector<std::string> inner = x_buffers;
    const std::vector<std::string> sliced = slice.lines();
    inner.insert(inner.end(), sliced.begin(), sliced.end());
    inner.insert(inner.end(), x_around.after.begin(), x_around.after.end());
    add_calls(x_facts, inner, lines);
    Body out;
    if (x_around.needs_buffer) out.headers.insert("device_buffer.h");
    out.text = indented(lines, 2);
    return out;
  }

  // Whether it says anything of heads and batches.
  void heads() {
    std::set<Role> roles;
    for (const auto& [name, role] : x_sizes) roles.insert(role);
    for (const Use& use : x_launches)
      for (const Classified& c : use.roles) roles.insert(c.role);
    for (const auto& [role, values] : x_facts.fixed) roles.insert(role);
    settle_heads(roles, x_facts, x_notes);
  }

  std::string launch_text(const Use& use, Slice& slice) {
    const Launch& launch = *use.launch;
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < launch.arguments.size() && i < use.roles.size(); ++i)
      arguments.push_back(argument(i, use, slice));
    const std::set<std::string> kernel = {use.kernel->name};
    slice.need(launch.callee, launch.at, kernel);
    slice.need(launch.grid, launch.at);
    slice.need(launch.block, launch.at);
    slice.need(launch.shared, launch.at);
    attributes(use, slice);
    return fmt::format("{}<<<{}, {}, {}, c.stream()>>>({});", launch.callee, launch.grid,
                       launch.block, launch.shared.empty() ? "0" : launch.shared,
                       fmt::join(arguments, ", "));
  }

  // "d_q + b * n" -> the pointer and what stands behind; "" for what is one thing.
  static std::size_t offset_in(const std::string& given) {
    if (given.empty() || (!std::isalpha(static_cast<unsigned char>(given[0])) && given[0] != '_'))
      return std::string::npos;
    std::size_t i = 0;
    while (i < given.size() &&
           (std::isalnum(static_cast<unsigned char>(given[i])) != 0 || given[i] == '_'))
      ++i;
    const std::size_t at = given.find_first_not_of(' ', i);
    return at != std::string::npos && given[at] == '+' ? i : std::string::npos;
  }

  std::string argument(std::size_t at, const Use& use, Slice& slice) {
    const std::string& given = use.launch->arguments[at];
    const Parameter& p = use.kernel->parameters[at];
    const Classified& role = use.roles[at];
    std::map<std::string, std::string> names;
    for (std::size_t t = 0; t < use.kernel->templates.size(); ++t)
      names[use.kernel->templates[t].name] = t < use.launch->templates.size()
                                                 ? use.launch->templates[t]
                                                 : use.kernel->templates[t].default_text;
    Arguments arguments(x_facts, names, x_around, x_notes);
    if (p.is_pointer && is_tensor(role.role) && role.role != Role::kPaged)
      return tensor(given, p, role, arguments, use, slice);
    if (p.is_pointer && role.role == Role::kScale) return arguments.of(p, role);
    if (!p.is_pointer && role.role != Role::kUnknown) {
      const std::string expression = arguments.of(p, role);
      if (!expression.empty()) return expression;
    }
    slice.need(given, use.launch->at);
    const std::vector<std::string> used = names_in(given);
    if (std::any_of(used.begin(), used.end(),
                    [&](const std::string& name) { return slice.unknown().count(name) > 0; }) ||
        p.is_pointer)
      return arguments.of(p, {});
    return given;
  }

  std::string tensor(const std::string& given, const Parameter& p, const Classified& role,
                     Arguments& arguments, const Use& use, Slice& slice) {
    const std::size_t offset = offset_in(given);
    const std::string base = given.substr(0, offset);
    const auto same_base = [&](std::size_t i) {
      const std::string& other = use.launch->arguments[i];
      return other.substr(0, offset_in(other)) == base;
    };
    int sharing = 0;  // K and V as offsets into one buffer are tensors of their own here
    for (std::size_t i = 0; i < use.roles.size() && i < use.launch->arguments.size(); ++i)
      sharing += is_tensor(use.roles[i].role) && same_base(i) ? 1 : 0;
    const bool moves = offset != std::string::npos && sharing == 1;
    std::string tail;
    if (moves) {
      tail = given.substr(offset);
      slice.need(tail, use.launch->at);
    }
    // A variable is one buffer in every launch.
    const std::string key = moves ? base : given;
    const auto known = x_tensors.find(key);
    if (known != x_tensors.end()) return known->second + tail;
    Classified own = role;
    const bool problems = is_input(role.role) || role.role == Role::kO || role.role == Role::kLse;
    if (!problems) own.guess.clear();
    const std::size_t before = x_around.before.size();
    const std::string expression = arguments.of(p, own);
    for (std::size_t i = before; i < x_around.before.size(); ++i)
      if (std::find(x_buffers.begin(), x_buffers.end(), x_around.before[i]) == x_buffers.end())
        x_buffers.push_back(x_around.before[i]);
    x_around.before.resize(before);
    x_tensors[key] = expression;
    return expression + tail;
  }

  // cudaFuncSetAttribute(kernel, ...) for the kernel, as it stands.
  void attributes(const Use& use, Slice& slice) {
    for (std::size_t i = x_f.open; i < x_f.close; ++i) {
      if (!x_s.is(i, "cudaFuncSetAttribute") || !x_s.is(i + 1, "(")) continue;
      const std::string text = x_model.text(i, x_s.match(i + 1) + 1);
      if (text.find(use.launch->kernel) == std::string::npos) continue;
      slice.need(text, i, {use.launch->kernel});
      slice.add(i, text + ";");
    }
  }

  const Model& x_model;
  const Syntax& x_s;
  const FunctionModel& x_f;
  const FunctionModel* x_only;
  Facts& x_facts;
  std::vector<Note>& x_notes;
  std::vector<Use> x_launches;
  Around x_around;
  std::vector<std::string> x_buffers;
  std::map<std::string, std::string> x_tensors;
  std::map<std::string, Role> x_sizes;
};

}  // namespace

Body launch_code(const Model& model, const FunctionModel& f, const FunctionModel* only,
                 Facts& facts, std::vector<Note>& notes) {
  LaunchCode code(model, f, only, facts, notes);
  if (code.is_empty()) return {};
  notes.push_back({NoteKind::kGuessed, fmt::format("the launch shapes of {}() hold for other sizes "
                                                   "too, with its variables set by their names",
                                                   f.name)});
  return code.body();
}

}  // namespace attn_diag::adapt
