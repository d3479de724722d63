#include "harness/toolchain/adapt/bodies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/toolchain/adapt/arguments.h"

namespace attn_diag::adapt {
namespace {

bool is_type_parameter(const TemplateParameter& t) {
  return t.kind == "typename" || t.kind == "class";
}

// "attn_diag::DType::kFp16" of "fp16".
std::string dtype_name(const std::string& dtype) {
  return dtype == "fp16" ? "kFp16" : dtype == "bf16" ? "kBf16" : "kFp32";
}

std::string default_element(const Facts& facts) {
  const std::string dtype = facts.dtypes.empty() ? "fp16" : *facts.dtypes.begin();
  return dtype == "fp16" ? "half" : dtype == "bf16" ? "__nv_bfloat16" : "float";
}

// A guess for a template parameter that the source gives no argument for.
std::vector<std::string> guesses(const TemplateParameter& t, const Facts& facts) {
  if (is_type_parameter(t)) return {says_index(t.name) ? "int" : default_element(facts)};
  const Role role = classify_constant(t.name).role;
  if (t.kind == "bool")
    return role == Role::kCausal ? std::vector<std::string>{"true", "false"}
                                 : std::vector<std::string>{"false"};
  if (role == Role::kHeadDim || role == Role::kHeadDimV) {
    std::vector<std::string> dims;
    for (const std::int64_t d : facts.head_dims) dims.push_back(std::to_string(d));
    return dims.empty() ? std::vector<std::string>{"64"} : dims;
  }
  if (role == Role::kTileM || role == Role::kTileN) {
    const std::int64_t tile = role == Role::kTileM ? facts.tile_m : facts.tile_n;
    return {std::to_string(tile == 0 ? 64 : tile)};
  }
  return {};
}

std::string condition_of(const Model& model, const FunctionModel& f,
                         const std::vector<std::string>& arguments, const Facts& facts) {
  std::vector<std::string> conditions;
  for (std::size_t i = 0; i < arguments.size() && i < f.templates.size(); ++i) {
    const TemplateParameter& t = f.templates[i];
    if (is_type_parameter(t)) {
      const std::string dtype = dtype_of(model.resolve_type(arguments[i]));
      if (!dtype.empty() && facts.dtypes.size() > 1)
        conditions.push_back(fmt::format("c.dtype() == attn_diag::DType::{}", dtype_name(dtype)));
      continue;
    }
    const Role role = classify_constant(t.name).role;
    if (facts.fixed.count(role) > 0)
      conditions.push_back(fmt::format("{} == {}", size_expression(role, facts), arguments[i]));
    if (role == Role::kCausal)
      conditions.emplace_back(model.value(arguments[i]).value_or(0) != 0 ? "c.is_causal()"
                                                                         : "!c.is_causal()");
    if (role == Role::kHeadDim)
      conditions.push_back(fmt::format("c.head_dim() == {}", arguments[i]));
  }
  return fmt::format("{}", fmt::join(conditions, " && "));
}

// Whether all arguments are types and values that mean the same outside of where they stand.
bool is_concrete(const Model& model, const FunctionModel& f,
                 const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i >= f.templates.size()) return false;
    if (is_type_parameter(f.templates[i])) {
      if (dtype_of(model.resolve_type(arguments[i])).empty() && !model.structure(arguments[i]))
        return false;
    } else if (!model.value(arguments[i])) {
      return false;
    }
  }
  return true;
}

class HostCall {
 public:
  HostCall(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes)
      : x_model(model), x_c(c), x_f(*c.function), x_facts(facts), x_notes(notes) {}

  Body body() {
    Body out;
    if (x_facts.host_memory) out.headers.insert("host_tensors.h");
    if (x_c.way == Way::kTorchFunction) out.headers.insert("torch_tensors.h");
    if (x_c.has(Role::kQkv) || x_c.has(Role::kKv)) out.headers.insert("packed_tensors.h");
    if (x_c.has(Role::kQkv) || x_c.has(Role::kKv)) x_facts.bshd = true;
    std::vector<std::string> lines;
    const std::vector<Instance> instances = instances_of(x_model, x_f, x_facts, x_notes);
    std::vector<InstanceCall> each;
    for (const Instance& instance : instances) {
      InstanceCall& one = each.emplace_back();
      one.condition = instance.condition;
      one.lines = {call(instance, one.around) + ";"};
    }
    Around around;
    const std::vector<std::string> calls = branches(each, around);
    if (atomic_output()) around.zero_output = true;
    finish(around, out, lines);
    if (x_facts.host_memory) lines.emplace_back("attn_diag::HostTensors host(c);");
    std::vector<std::string> inner = around.before;
    inner.insert(inner.end(), calls.begin(), calls.end());
    inner.insert(inner.end(), around.after.begin(), around.after.end());
    add_calls(x_facts, inner, lines);
    if (x_facts.host_memory) lines.emplace_back("host.store();");
    out.text = indented(lines, 2);
    return out;
  }

 private:
  // Statements that come first, whatever is called.
  void finish(const Around& around, Body& out, std::vector<std::string>& lines) const {
    if (around.needs_buffer) out.headers.insert("device_buffer.h");
    if (around.needs_rows)
      lines.emplace_back(
          "const std::size_t rows = std::size_t(c.batch()) * c.heads() * c.seqlen_q();");
    if (around.zero_output) {
      lines.emplace_back("c.zero_o();");
      x_notes.push_back(
          {NoteKind::kGuessed, "the output is zeroed before, as the kernel adds to it"});
    }
  }

  bool atomic_output() const {
    bool found = false;
    for (const FunctionModel* kernel : kernels_of(x_model, x_f)) {
      const std::vector<Classified> roles = classify(kernel->parameters);
      for (std::size_t i = kernel->open; i < kernel->close; ++i) {
        if (!x_model.syntax().is(i, "atomicAdd") || !x_model.syntax().is(i + 1, "(")) continue;
        for (std::size_t j = i + 2; j < x_model.syntax().match(i + 1); ++j)
          for (std::size_t k = 0; k < roles.size(); ++k)
            found |=
                roles[k].role == Role::kO && x_model.syntax()[j].is(kernel->parameters[k].name);
      }
    }
    return found;
  }

  std::string call(const Instance& instance, Around& around) {
    // An alias of the function's namespace has no such name outside of it.
    std::map<std::string, std::string> names = instance.names;
    if (x_f.qualified != x_f.name)
      for (const Parameter& p : x_f.parameters)
        if (const std::string type = x_model.resolve_type(p.element); type != p.element)
          names.emplace(p.element, type);
    Arguments arguments(x_facts, names, around, x_notes);
    // Trailing parameters with defaults that nothing is known for are left to them.
    std::size_t count = x_f.parameters.size();
    while (count > 0 && x_f.parameters[count - 1].has_default &&
           x_c.roles[count - 1].role == Role::kUnknown)
      --count;
    std::vector<std::string> words;
    for (std::size_t i = 0; i < count; ++i) {
      const Parameter& p = x_f.parameters[i];
      if (&p == x_c.params) {
        words.push_back(fill_struct(arguments, around, p, x_c.members, x_c.member_roles));
      } else if (const auto sizes = size_struct(p, x_c.roles[i])) {
        words.push_back(
            fill_struct(arguments, around, p, sizes->members, classify(sizes->members)));
      } else if (x_facts.single_head && x_c.way == Way::kTorchFunction) {
        words.push_back(arguments.of(p, x_c.roles[i]));
      } else {
        words.push_back(lvalue(p, arguments.of(p, x_c.roles[i]), around));
      }
    }
    const std::string plain = fmt::format("{}{}({})", callee(arguments, around), instance.arguments,
                                          fmt::join(words, ", "));
    if (x_c.way == Way::kTorchFunction && x_f.return_type != "void") return returned(plain);
    if (x_f.return_type == "bool")
      return fmt::format("if (!{}) c.refuse(\"{}() returned false\")", plain, x_f.qualified);
    if (x_f.return_type == "cudaError_t")
      return fmt::format(
          "if (const cudaError_t error = {}; error != cudaSuccess)\n"
          "  throw std::runtime_error(cudaGetErrorString(error))",
          plain);
    return plain;
  }

  // The function, or the member of an object of its class.
  std::string callee(Arguments& arguments, Around& around) const {
    if (!x_c.object) return x_f.qualified;
    if (x_f.is_static) return x_f.owner + "::" + x_f.name;
    around.before.push_back(construction(arguments, x_f.owner, "object", *x_c.object->constructor));
    return "object." + x_f.name;
  }

  // "Layer object(c.batch(), c.heads());"; what the function itself has a parameter for by the same name is that.
  std::string construction(Arguments& arguments, const std::string& type, const std::string& name,
                           const std::vector<Parameter>& parameters) const {
    std::vector<std::string> values;
    const std::vector<Classified> roles = classify(parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Classified role = roles[i];
      for (std::size_t k = 0; k < x_f.parameters.size(); ++k)
        if (x_f.parameters[k].name == parameters[i].name) role = x_c.roles[k];
      values.push_back(arguments.of(parameters[i], role));
    }
    return values.empty() ? fmt::format("{} {};", type, name)
                          : fmt::format("{} {}({});", type, name, fmt::join(values, ", "));
  }

  // A reference to something that may change needs a variable.
  std::string lvalue(const Parameter& p, const std::string& expression, Around& around) {
    const bool reference =
        p.type.find('&') != std::string::npos && p.type.find("&&") == std::string::npos;
    if (!reference || p.is_const || p.type.starts_with("const")) return expression;
    around.before.push_back(fmt::format("{} {}_given = {};", p.element, p.name, expression));
    return p.name + "_given";
  }

  // The structure that a parameter of no other role is, if it holds sizes.
  std::optional<StructModel> size_struct(const Parameter& p, const Classified& c) const {
    if (c.role != Role::kUnknown) return std::nullopt;
    std::optional<StructModel> found = x_model.structure(p.element);
    if (!found) return std::nullopt;
    for (const Classified& role : classify(found->members))
      if (role.role != Role::kUnknown) return found;
    return std::nullopt;
  }

  std::string fill_struct(Arguments& arguments, Around& around, const Parameter& p,
                          const std::vector<Parameter>& members,
                          const std::vector<Classified>& roles) {
    const std::string type = x_model.qualified_type(p.element);
    if (const auto known = x_model.structure(p.element);
        known && known->constructor && !known->constructor->empty()) {
      around.before.push_back(construction(arguments, type, p.name, *known->constructor));
      return p.is_pointer ? "&" + p.name : p.name;
    }
    std::vector<std::string> lines = {fmt::format("{} {} = {{}};", type, p.name)};
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Classified& role = roles[i];
      const bool room = role.role == Role::kUnknown || role.role == Role::kPaged;
      if (room && members[i].is_pointer && !members[i].is_const) {
        lines.push_back(
            fmt::format("{}.{} = {};", p.name, members[i].name, arguments.of(members[i], {})));
        continue;
      }
      if (role.role == Role::kUnknown || role.role == Role::kOptionalTensor ||
          (role.role == Role::kPaged && !(x_facts.cache && is_page_table(members[i].name)))) {
        x_notes.push_back({NoteKind::kUnknown, fmt::format("member '{}' of {}: it stays 0",
                                                           members[i].name, p.element)});
        continue;
      }
      lines.push_back(
          fmt::format("{}.{} = {};", p.name, members[i].name, arguments.of(members[i], role)));
    }
    around.before.insert(around.before.end(), lines.begin(), lines.end());
    return p.is_pointer ? "&" + p.name : p.name;
  }

  // Stores what the function returns: o, or o and what its last return statement names.
  std::string returned(const std::string& call) {
    const source::Syntax& s = x_model.syntax();
    std::vector<std::string> names;
    for (std::size_t i = x_f.open; i < x_f.close; ++i) {
      if (!s.is(i, "return")) continue;
      std::size_t open = i + 1;
      while (open < x_f.close && !s.is(open, "{") && !s.is(open, "(") && !s.is(open, ";")) ++open;
      names = s.is(open, ";") ? std::vector<std::string>{} : x_model.split(open + 1, s.match(open));
    }
    const bool tuple = x_f.return_type.find("tuple") != std::string::npos;
    const bool many = tuple || x_f.return_type.find("vector") != std::string::npos;
    const auto element = [&](std::size_t i) {
      return !many   ? std::string("result")
             : tuple ? fmt::format("std::get<{}>(result)", i)
                     : fmt::format("result[{}]", i);
    };
    std::string text =
        fmt::format("const auto result = {};\nattn_diag::store_o(c, {})", call, element(0));
    for (std::size_t i = 1; many && i < names.size(); ++i) {
      const Parameter p = {"float*", "float", names[i], true, false, false};
      const Role role = classify({p}).front().role;
      const bool sums = std::any_of(names.begin(), names.end(),
                                    [](const std::string& n) { return n == "M" || n == "m"; });
      const bool lse =
          role == Role::kLse || (names[i] == "L" && !sums) || x_f.lse_names.count(names[i]) > 0;
      if (!lse || x_facts.has_lse) continue;
      x_facts.has_lse = true;
      x_notes.push_back({NoteKind::kGuessed,
                         fmt::format("'{}', the {}. of what it returns, is the log-sum-exp{}",
                                     names[i], i + 1, x_facts.base2_lse ? ", in base 2" : "")});
      text += fmt::format(";\nattn_diag::store_lse(c, {})", element(i));
    }
    return text;
  }

  const Model& x_model;
  const Candidate& x_c;
  const FunctionModel& x_f;
  Facts& x_facts;
  std::vector<Note>& x_notes;
};

}  // namespace

std::vector<std::string> branches(const std::vector<InstanceCall>& each, Around& around) {
  around = each.front().around;
  if (each.size() == 1) return each.front().lines;
  const bool alike = std::all_of(each.begin(), each.end(), [&](const InstanceCall& one) {
    return one.around.before == around.before && one.around.after == around.after;
  });
  if (!alike) around.before.clear(), around.after.clear();
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<std::string>& inner) {
    for (const std::string& line : inner) lines.push_back(indented({line}, 2, false));
  };
  for (const InstanceCall& one : each) {
    lines.push_back(fmt::format("{}if ({}) {{", lines.empty() ? "" : "} else ", one.condition));
    if (!alike) add(one.around.before);
    add(one.lines);
    if (!alike) add(one.around.after);
  }
  lines.emplace_back("} else {");
  lines.emplace_back("  c.refuse(\"the source has no instance for this problem\");");
  lines.emplace_back("}");
  return lines;
}

void add_calls(const Facts& facts, const std::vector<std::string>& inner,
               std::vector<std::string>& lines) {
  const bool loop = facts.single_head || facts.per_batch;
  if (facts.single_head)
    lines.emplace_back("for (int head = 0; head < c.batch() * c.heads(); ++head) {");
  if (facts.per_batch)
    lines.emplace_back("for (int one_batch = 0; one_batch < c.batch(); ++one_batch) {");
  for (const std::string& line : inner) lines.push_back((loop ? "  " : "") + line);
  if (loop) lines.emplace_back("}");
}

std::string indented(const std::vector<std::string>& lines, int by, bool ends) {
  std::string text;
  for (const std::string& line : lines) {
    std::size_t begin = 0;
    while (begin <= line.size()) {
      const std::size_t end = std::min(line.find('\n', begin), line.size());
      text +=
          std::string(static_cast<std::size_t>(by), ' ') + line.substr(begin, end - begin) + '\n';
      begin = end + 1;
    }
  }
  if (!ends && !text.empty()) text.pop_back();
  return text;
}

std::vector<Instance> instances_of(const Model& model, const FunctionModel& f, Facts& facts,
                                   std::vector<Note>& notes) {
  if (f.templates.empty()) return {Instance{}};
  std::vector<std::vector<std::string>> uses;
  for (const std::vector<std::string>& use : model.instances(f.name))
    if (is_concrete(model, f, use)) uses.push_back(use);
  if (!uses.empty()) {
    notes.push_back({NoteKind::kFound,
                     fmt::format("{}() is used with <{}>", f.name, fmt::join(uses.front(), ", "))});
  } else {
    // All combinations of what each may be.
    uses = {{}};
    for (const TemplateParameter& t : f.templates) {
      if (!t.default_text.empty()) break;  // the rest has defaults
      std::vector<std::string> choices = guesses(t, facts);
      if (choices.empty()) {
        notes.push_back(
            {NoteKind::kUnknown,
             fmt::format("what '{} {}' of the template is: it stands as 64", t.kind, t.name)});
        choices = {"64"};
      }
      std::vector<std::vector<std::string>> longer;
      for (const auto& use : uses)
        for (const std::string& choice : choices) {
          longer.push_back(use);
          longer.back().push_back(choice);
        }
      uses = std::move(longer);
    }
    notes.push_back(
        {NoteKind::kGuessed, fmt::format("{}() is instantiated as <{}>, as nothing here uses it",
                                         f.name, fmt::join(uses.front(), ", "))});
    if (facts.head_dims.empty())
      for (const TemplateParameter& t : f.templates)
        if (classify_constant(t.name).role == Role::kHeadDim) facts.head_dims = {64};
  }
  std::vector<Instance> out;
  for (const auto& use : uses) {
    Instance instance;
    for (std::size_t i = 0; i < f.templates.size(); ++i)
      instance.names[f.templates[i].name] = i < use.size() ? use[i] : f.templates[i].default_text;
    instance.arguments = use.empty() ? "" : fmt::format("<{}>", fmt::join(use, ", "));
    instance.condition = condition_of(model, f, use, facts);
    const bool known = std::any_of(out.begin(), out.end(), [&](const Instance& i) {
      return i.condition == instance.condition;
    });
    if (!known) out.push_back(instance);  // the first of those that differ in tiles alone
  }
  return out;
}

Body make_body(const Model& model, const Candidate& c, Facts& facts, std::vector<Note>& notes) {
  if (c.way == Way::kLaunchCode) return launch_code(model, *c.function, nullptr, facts, notes);
  if (c.way == Way::kBareKernel) {
    if (c.launched_in == nullptr) return bare_kernel(model, c, facts, notes);
    return launch_code(model, *c.launched_in, c.function, facts, notes);
  }
  return HostCall(model, c, facts, notes).body();
}

}  // namespace attn_diag::adapt
