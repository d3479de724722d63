// Sizes that the code has at compile time: as template arguments and constants of its kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/toolchain/adapt/axes.h"
#include "harness/toolchain/adapt/facts_code.h"
#include "harness/toolchain/adapt/role_names.h"
#include "harness/toolchain/adapt/slice.h"

namespace attn_diag::adapt {

namespace {

// Whether a constant is named clearly enough: N is, LENGTH or ROWS may be a tile's.
bool names_a_size(const std::string& name, Role role) {
  std::string low = join(split_name(name));
  if (low.size() > 1 && low[0] == 'k' && name[0] == 'k') low = low.substr(1);
  if (is_heads(role)) return low.find("head") != std::string::npos || low == "h" || low == "nh";
  if (role == Role::kBatch) return low.find("batch") != std::string::npos || low == "b";
  if (role == Role::kBatchHeads) return true;
  if (!is_length(role)) return false;
  static const std::set<std::string> plain = {"n", "s", "sq", "sk", "nq", "nk", "nctx"};
  return low.find("seq") != std::string::npos || low.find("ctx") != std::string::npos ||
         low.find("context") != std::string::npos || plain.count(low) > 0;
}

// Roles that a function is given at run time, itself or in a structure.
std::set<Role> given_to(const Model& model, const FunctionModel& f) {
  std::set<Role> roles;
  for (const Classified& c : classify(f.parameters)) roles.insert(c.role);
  for (const Parameter& p : f.parameters)
    if (const auto structure = model.structure(p.element))
      for (const Classified& c : classify(structure->members)) roles.insert(c.role);
  return roles;
}

bool is_given(const std::set<Role>& given, Role role) {
  if (given.count(Role::kStride) > 0 && !is_length(role)) return true;
  if (given.count(role) > 0) return true;
  if (is_length(role)) return given.count(Role::kSeqlen) > 0;
  if (is_heads(role))
    return given.count(Role::kHeads) + given.count(Role::kBatchHeads) + given.count(Role::kHidden) >
           0;
  return role == Role::kBatch && given.count(Role::kBatchHeads) > 0;
}

bool declares(const source::Syntax& s, const FunctionModel& f, const std::string& name) {
  for (std::size_t i = f.open; i < f.close; ++i)
    if (s[i].is(name) && s[i - 1].is_identifier() &&
        s[i - 1].is_any({"int", "auto", "unsigned", "size_t", "long", "int64_t"}) &&
        s.is(i + 1, "="))
      return !s.is(i - 2, "constexpr");
  return false;
}

// Whether a constant stands outside of all functions, or is a macro.
bool is_of_file(const Model& model, const std::string& name) {
  if (model.code().macros.count(name) > 0) return true;
  const source::Syntax& s = model.syntax();
  for (std::size_t i = 1; i + 1 < s.size(); ++i)
    if (s[i].is(name) && s.is(i + 1, "=") && s[i - 1].is_identifier())
      return std::none_of(model.functions().begin(), model.functions().end(),
                          [&](const FunctionModel& f) { return f.name_at < i && i < f.close; });
  return false;
}

// Names in the code of a function, those in its macros with them.
std::vector<std::string> names_of(const Model& model, const FunctionModel& f) {
  const source::Syntax& s = model.syntax();
  std::vector<std::string> names;
  for (std::size_t i = f.open; i < f.close; ++i) {
    if (!s[i].is_identifier() || s.is(i - 1, ".") || s.is(i - 1, "->")) continue;
    const auto macro = model.code().calls.find(std::string(s[i].text));
    if (macro == model.code().calls.end() || !s.is(i + 1, "(")) {
      names.emplace_back(s[i].text);
    } else {
      const std::vector<std::string> own = names_in(macro->second);
      names.insert(names.end(), own.begin(), own.end());
    }
  }
  return names;
}

// What comments say of shapes: q of one query a batch, K and V of one head.
void read_shapes(FactsCode& code, Facts& facts) {
  const auto has = [](const std::vector<Role>& axes, auto is) {
    return std::any_of(axes.begin(), axes.end(), is);
  };
  const auto is_batch = [](Role r) { return r == Role::kBatch; };
  bool q_lacks_rows = false, q_has_rows = false, k_has_rows = false, one_head = false;
  for (const std::string& text : comments_of(code.model()))
    for (const NamedAxes& found : axes_in(text)) {
      const Role tensor = tensor_role(found.name);
      if (!has(found.axes, is_batch) || found.axes.back() != Role::kHeadDim) continue;
      const bool rows = has(found.axes, is_length), heads = has(found.axes, is_heads);
      if (tensor == Role::kQ) (rows ? q_has_rows : q_lacks_rows) |= rows || heads;
      if (tensor != Role::kK && tensor != Role::kV) continue;
      k_has_rows |= rows;
      one_head |= rows && !heads && found.axes.size() == 3;
    }
  // Or parameters: a length of the keys alone, or lengths alone.
  const bool lengths = code.has(Role::kLengths), keys = code.has(Role::kSeqlenK);
  const bool queries = code.has(Role::kSeqlenQ) || code.has(Role::kTokens) ||
                       code.has(Role::kOffsets) || facts.fixed.count(Role::kSeqlenQ) > 0 ||
                       facts.fixed.count(Role::kSeqlen) > 0;
  const bool said = q_lacks_rows && !q_has_rows && (k_has_rows || lengths || keys);
  const bool given = code.candidate().way != Way::kTorchFunction &&
                     code.candidate().part == Part::kAttention && !q_has_rows &&
                     !code.has(Role::kSeqlen) && (lengths || keys || code.has(Role::kPosition));
  const bool position = code.has(Role::kPosition) && !q_has_rows;
  if (!queries && (said || given || position)) {
    facts.one_query = true;
    facts.fixed[Role::kSeqlenQ] = {1};
    code.note(NoteKind::kGuessed, said ? "one query a batch, as comments say of Q"
                                       : "one query a batch: its parameters are of keys alone");
  }
  if (one_head && code.has(Role::kHeads) && !code.has(Role::kKvHeads)) {
    facts.fixed[Role::kKvHeads] = {1};
    code.note(NoteKind::kGuessed, "one KV head, as comments say of K");
  }
}

}  // namespace

void read_fixed(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const source::Syntax& s = code.syntax();
  std::map<Role, std::string> names;
  const auto take = [&](const std::string& name, Role role, std::optional<std::int64_t> value) {
    if (!value || *value < 1 || *value > 65536) return;
    facts.fixed[role].insert(*value);
    names[role] = name;
  };
  for (const FunctionModel* f : code.functions()) {
    if (!f->is_kernel && f != code.candidate().function) continue;
    const std::set<Role> given = given_to(model, *f);
    for (std::size_t i = 0; i < f->templates.size(); ++i) {
      const TemplateParameter& t = f->templates[i];
      const Role role = classify_constant(t.name).role;
      const bool size = is_length(role) || is_heads(role) || role == Role::kBatch;
      if (t.kind == "typename" || t.kind == "class" || !size || is_given(given, role)) continue;
      for (const auto& instance : model.instances(f->name))
        if (i < instance.size()) take(t.name, role, model.value(instance[i]));
    }
    std::vector<std::string> used = names_of(model, *f);
    if (!f->is_kernel && code.candidate().way != Way::kHostFunction) {
      // From a function that makes its own data only what its launches are given.
      used.clear();
      for (const Launch& launch : f->launches)
        for (const std::string& name : names_in(launch.grid)) used.push_back(name);
    }
    for (const std::string& name : used) {
      const Role role = classify_constant(name).role;
      const bool is_template = std::any_of(f->templates.begin(), f->templates.end(),
                                           [&](const auto& t) { return t.name == name; });
      const bool is_parameter = std::any_of(f->parameters.begin(), f->parameters.end(),
                                            [&](const auto& p) { return p.name == name; });
      if (is_template || is_parameter || !names_a_size(name, role) || is_given(given, role) ||
          declares(s, *f, name) || (!f->is_kernel && !is_of_file(model, name)))
        continue;
      take(name, role, model.value(name));
    }
  }
  read_shapes(code, facts);
  for (const auto& [role, values] : facts.fixed)
    if (names.count(role) > 0)
      code.note(NoteKind::kFound, fmt::format("{} is fixed: {} is {}", words(role), names[role],
                                              fmt::join(values, " or ")));
}

void settle_heads(const std::set<Role>& roles, Facts& facts, std::vector<Note>& notes) {
  const auto any = [&](std::initializer_list<Role> given) {
    return std::any_of(given.begin(), given.end(), [&](Role r) { return roles.count(r) > 0; });
  };
  if (any({Role::kBatchHeads, Role::kStride, Role::kPaged, Role::kOffsets})) return;
  const bool heads = any({Role::kHeads, Role::kKvHeads, Role::kHidden}),
             batch = any({Role::kBatch});
  if (heads == batch && heads) return;
  facts.single_head = !heads && !batch;
  facts.per_batch = heads;
  facts.batch_is_slices = batch;
  const std::string what = facts.single_head
                               ? "a batch size or number of heads: it is called once for every head"
                           : heads ? "a batch size: it is called once for every batch"
                                   : "a number of heads: batches are those of all heads";
  notes.push_back({NoteKind::kGuessed, "no parameter is " + what});
}

}  // namespace attn_diag::adapt
