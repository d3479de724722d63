#include "harness/toolchain/adapt/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/toolchain/adapt/codes.h"

namespace attn_diag::adapt {
namespace {

bool contains_any(const std::string& name, std::initializer_list<const char*> words) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return lower.find(word) != std::string::npos; });
}

// Functions from which a launch is reached, by name.
std::set<std::string> launchers(const Model& model) {
  std::set<std::string> names;
  for (const FunctionModel& f : model.functions())
    if (!f.launches.empty()) names.insert(f.name);
  for (bool grew = true; grew;) {
    grew = false;
    for (const FunctionModel& f : model.functions()) {
      if (names.count(f.name) > 0 || f.is_kernel || f.is_device) continue;
      for (const std::string& callee : f.calls)
        if (names.count(callee) > 0 && callee != f.name) grew = names.insert(f.name).second || grew;
    }
  }
  return names;
}

void use_struct(const Model& model, Candidate& c) {
  for (const Parameter& p : c.function->parameters) {
    const auto structure = model.structure(p.element);
    if (!structure) continue;
    const std::vector<Classified> roles = classify(structure->members);
    if (std::none_of(roles.begin(), roles.end(), [](const Classified& r) {
          return r.role == Role::kQ || r.role == Role::kQkv;
        }))
      continue;
    c.params = &p;
    c.members = structure->members;
    c.member_roles = roles;
    break;
  }
  for (const Parameter& p : c.function->parameters)
    if (const auto structure = model.structure(p.element); structure && &p != c.params)
      for (const Classified& r : classify(structure->members)) c.size_roles.push_back(r);
}

// For a member function that can be called from outside: an object of its class, made of what the constructor takes.
void use_object(const Model& model, Candidate& c) {
  const FunctionModel& f = *c.function;
  const auto found = model.structure(f.owner.substr(f.owner.rfind(':') + 1));
  if (c.way == Way::kBareKernel || !found || found->is_template || f.name == found->name) {
    c.why_not = "it is a member of a class";
    return;
  }
  c.object = found;
  if (f.is_static) return;
  if (!found->constructor) {
    c.why_not = "it is a member of a class that nothing here says how to make";
    return;
  }
  for (const Classified& r : classify(*found->constructor)) c.size_roles.push_back(r);
}

// Why the tensors of a candidate are not those of a forward attention; empty if they are.
std::string missing_tensors(const Candidate& c) {
  const FunctionModel& f = *c.function;
  if (contains_any(f.name, {"backward", "bwd", "_grad"}) || c.has(Role::kGradient))
    return "it is a backward pass";
  const bool packed = c.has(Role::kQkv);
  std::string missing;
  for (const Role role : {Role::kQ, Role::kK, Role::kV}) {
    if (packed || c.has(role) || (role != Role::kQ && c.has(Role::kKv))) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", words(role));
  }
  const bool returns = c.way == Way::kTorchFunction && f.return_type != "void";
  if (!c.has(Role::kO) && !returns)
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", words(Role::kO));
  return missing.empty() ? "" : "its parameters do not name " + missing;
}

// The part of attention that a host function computes if its tensors are those of one product: S of q and k, or o
// of S or P and v.
Part part_of(const Candidate& c) {
  const FunctionModel& f = *c.function;
  if (c.params != nullptr || contains_any(f.name, {"backward", "bwd", "_grad"}) ||
      c.has(Role::kGradient))
    return Part::kAttention;
  const auto has_tensor = [&](Role role) {
    for (std::size_t i = 0; i < c.roles.size(); ++i)
      if (c.roles[i].role == role && f.parameters[i].is_pointer) return true;
    return false;
  };
  const bool q = has_tensor(Role::kQ), k = has_tensor(Role::kK), v = has_tensor(Role::kV),
             o = has_tensor(Role::kO), s = has_tensor(Role::kScores), p = has_tensor(Role::kProbs);
  if (q && k && s && !v && !o && !p) return Part::kScores;
  if (q || k || !v || !o || s == p) return Part::kAttention;
  if (p) return Part::kFromProbs;
  // A function that scales or masks the scores that it is given is given q.k.
  for (const Role role :
       {Role::kScale, Role::kScaleLog2, Role::kCausal, Role::kWindow, Role::kWindowLeft})
    if (c.has(role)) return Part::kFromRawScores;
  return Part::kFromScores;
}

int score_of(const Model& model, const Candidate& c) {
  const FunctionModel& f = *c.function;
  int score = c.part != Part::kAttention     ? 50  // where there is nothing whole
              : c.way == Way::kHostFunction  ? 300
              : c.way == Way::kTorchFunction ? 200
              : c.way == Way::kLaunchCode    ? 150
                                             : 100;
  if (contains_any(f.name, {"attention", "attn", "flash", "fwd", "forward", "mha", "sdpa"}))
    score += 10;
  for (const auto* roles : {&c.roles, &c.member_roles})
    for (const Classified& r : *roles)
      score -= r.role == Role::kUnknown ? 5 : r.guess.empty() ? 0 : 2;
  for (const Role role : {Role::kCausal, Role::kLse, Role::kHeads, Role::kBatch})
    if (c.has(role)) score += 3;
  // The outermost of functions that call each other.
  for (const FunctionModel& other : model.functions())
    if (&other != &f && f.calls.count(other.name) > 0 && !other.is_kernel && !other.is_device &&
        !kernels_of(model, other).empty())
      score += 8;
  return score;
}

// The function whose launch of a kernel can be repeated: not one that does little but pass it on.
const FunctionModel* launching_function(const Model& model, const FunctionModel& kernel) {
  for (const FunctionModel& f : model.functions())
    for (const Launch& launch : f.launches)
      if (!f.is_kernel && !f.is_device && launch.kernel == kernel.name && !launch.grid.empty() &&
          launch.arguments.size() == kernel.parameters.size())
        return &f;
  return nullptr;
}

Candidate candidate(const Model& model, const FunctionModel& f,
                    const std::set<std::string>& launching) {
  Candidate c;
  c.function = &f;
  c.roles = classify(f.parameters);
  // A structure is no tensor, whatever its name.
  for (std::size_t i = 0; i < c.roles.size(); ++i)
    if (is_tensor(c.roles[i].role) && model.structure(f.parameters[i].element)) c.roles[i] = {};
  use_struct(model, c);
  if (f.is_kernel) {
    c.way = Way::kBareKernel;
    if (launching.count(f.name) > 0) c.why_not = "it is launched by a kernel";
  } else {
    const bool torch = std::any_of(f.parameters.begin(), f.parameters.end(), is_tensor_class);
    c.way = torch ? Way::kTorchFunction : Way::kHostFunction;
    if (!torch) c.part = part_of(c);
    if (c.part == Part::kAttention && missing_tensors(c).starts_with("its parameters") &&
        !f.launches.empty() && !torch)
      c.way = Way::kLaunchCode;
  }
  if (f.is_member) use_object(model, c);
  if (!c.why_not.empty()) return c;
  c.why_not = codes_not_declared(model, f.parameters, c.roles);
  if (c.why_not.empty()) c.why_not = codes_not_declared(model, c.members, c.member_roles);
  if (!c.why_not.empty()) {
    c.why_not += "; write the adapter by hand (docs/bring-your-kernel.md, quantised inputs)";
    return c;
  }
  if (c.way == Way::kBareKernel) c.launched_in = launching_function(model, f);
  if (c.way == Way::kLaunchCode) {
    if (contains_any(f.name, {"backward", "bwd"})) c.why_not = "it is a backward pass";
    std::set<Role> named;
    for (const FunctionModel* kernel : kernels_of(model, f)) {
      Candidate k;
      k.function = kernel;
      k.roles = classify(kernel->parameters);
      use_struct(model, k);
      for (const Role role : {Role::kQ, Role::kK, Role::kV, Role::kO})
        if (k.has(role) || k.has(Role::kQkv)) named.insert(role);
      if (const std::string what = codes_not_declared(model, kernel->parameters, k.roles);
          !what.empty())
        c.why_not = kernel->name + "()'s " + what;
    }
    const std::string missing =
        named.size() == 4 ? "" : "the kernels it launches name no Q, K, V and output";
    if (c.why_not.empty()) c.why_not = missing;
  } else {
    c.why_not = c.part == Part::kAttention ? missing_tensors(c) : "";
    if (c.why_not.empty() && c.way == Way::kHostFunction &&
        contains_any(f.name, {"test", "bench", "verify", "check", "reference"}))
      c.why_not = "its name says that it is a test";
  }
  if (c.why_not.empty()) c.score = score_of(model, c);
  return c;
}

}  // namespace

bool Candidate::has(Role role) const {
  const auto is = [role](const Classified& c) { return c.role == role; };
  return std::any_of(roles.begin(), roles.end(), is) ||
         std::any_of(member_roles.begin(), member_roles.end(), is) ||
         std::any_of(size_roles.begin(), size_roles.end(), is);
}

std::vector<const FunctionModel*> kernels_of(const Model& model, const FunctionModel& function) {
  std::vector<const FunctionModel*> kernels;
  std::vector<const FunctionModel*> queue = {&function};
  std::set<std::string> seen;
  while (!queue.empty()) {
    const FunctionModel* f = queue.back();
    queue.pop_back();
    if (!seen.insert(f->name).second) continue;
    if (f->is_kernel) kernels.push_back(f);
    for (const FunctionModel& other : model.functions())
      if (f->calls.count(other.name) > 0 &&
          (other.is_kernel || (!f->is_kernel && !other.is_device)))
        queue.push_back(&other);
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const FunctionModel* a, const FunctionModel* b) { return a->open < b->open; });
  return kernels;
}

std::vector<Candidate> find_candidates(const Model& model) {
  const std::set<std::string> launching = launchers(model);
  std::vector<Candidate> out;
  for (const FunctionModel& f : model.functions())
    if (f.is_kernel || (!f.is_device && launching.count(f.name) > 0))
      out.push_back(candidate(model, f, launching));
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.why_not.empty() != b.why_not.empty() ? a.why_not.empty() : a.score > b.score;
  });
  return out;
}

}  // namespace attn_diag::adapt
