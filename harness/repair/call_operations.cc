// Calls: another function, arguments in another order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;

// Functions, and other names, of which one is taken for another.
using Alike = std::array<std::string_view, 5>;  // the last ones may be empty
constexpr Alike kAlike[] = {
    {"fmaxf", "fminf"},
    {"fmax", "fmin"},
    {"max", "min"},
    {"std::max", "std::min"},
    {"__hmax", "__hmin"},
    {"__expf", "exp2f", "expf"},
    {"exp", "exp2"},
    {"__logf", "__log2f"},
    {"logf", "log2f"},
    {"log", "log2"},
    {"__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync", "__shfl_sync"},
    {"__low2float", "__high2float"},
    {"__low2half", "__high2half"},
    {"__low2bfloat16", "__high2bfloat16"},
    {"__any_sync", "__all_sync"},
    {"__syncthreads_or", "__syncthreads_and"},
    {"sqrtf", "rsqrtf"},
    {"__hadd2", "__hmul2", "__hsub2"},
    {"atomicAdd", "atomicSub", "atomicMax", "atomicMin", "atomicExch"},
    {"cg::inclusive_scan", "cg::exclusive_scan"},
    {"wmma::row_major", "wmma::col_major"},
    {"nvcuda::wmma::row_major", "nvcuda::wmma::col_major"},
    {"wmma::mem_row_major", "wmma::mem_col_major"},
    {"nvcuda::wmma::mem_row_major", "nvcuda::wmma::mem_col_major"},
    {"wmma::matrix_a", "wmma::matrix_b"},
    {"__NV_E4M3", "__NV_E5M2"},
    {"__syncwarp", "__syncthreads"},
    {"__threadfence", "__threadfence_block"},
    {"cuda::memory_order_relaxed", "cuda::memory_order_release", "cuda::memory_order_acquire",
     "cuda::memory_order_acq_rel"},
};
// Methods: a.shfl_xor(...).
constexpr Alike kMethodsAlike[] = {
    {"shfl", "shfl_xor", "shfl_down", "shfl_up"},
    {"any", "all"},
    {"thread_rank", "meta_group_rank"},
    {"size", "num_threads"},
};

void other_function(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kName && e.kind != Kind::kMember) continue;
    const bool method = e.kind == Kind::kMember;
    if (method && p.function().on_host) continue;
    const std::string text =
        method ? std::string(p.code().token(e.op).text) : p.code().words(e.begin, e.end);
    // A callee is no value: the choice is made around its call.
    const int site = p.is_callee(i) ? e.parent : i;
    for (const Alike& alike :
         method ? std::span<const Alike>(kMethodsAlike) : std::span<const Alike>(kAlike)) {
      if (std::find(alike.begin(), alike.end(), text) == alike.end()) continue;
      for (const std::string_view other : alike)
        if (!other.empty() && other != text)
          p.replace(name, 0, site, method ? e.op : e.begin, method ? e.op + 1 : e.end,
                    std::string(other));
    }
  }
  // User's own functions with as many parameters: row_max for row_sum.
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kCall || e.parts.empty() || p.at(e.parts[0]).kind != Kind::kName) continue;
    const std::string callee = p.words(e.parts[0]);
    const auto parameters = [&](const DeviceFunction& f) {
      std::vector<std::string> types;
      for (const Variable& v : f.variables)
        if (v.statement < 0 && !v.constant && v.from == f.open) types.push_back(v.type);
      return types;
    };
    for (const auto& file : p.program().files)
      for (const DeviceFunction& own : file->functions) {
        if (own.name != callee) continue;
        for (const auto& there : p.program().files)
          for (const DeviceFunction& other : there->functions)
            if (!other.is_kernel && !other.on_host && other.name != callee &&
                parameters(other) == parameters(own))
              p.replace(name, 1, i, p.at(e.parts[0]).begin, p.at(e.parts[0]).end, other.name);
      }
  }
}

// Whether a compiler may take either for the other; types that are not known may be anything.
bool may_change_places(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty() || a == b) return true;
  const auto is_number = [](std::string_view type) { return is_integer(type) || is_real(type); };
  return is_number(a) && is_number(b);
}

// Of a pointer or an array that is passed by its name: whether nothing is stored through it.
std::optional<bool> leads_to_const(const Proposals& p, const Expression& e) {
  if (e.kind != Kind::kName) return std::nullopt;
  const Variable* const v = p.variable(p.words(e), e.begin);
  if (v == nullptr || !is_pointer_or_array(v->type)) return std::nullopt;
  return v->const_elements;
}

// f(a, b, c): f(b, a, c), ...
void swapped_arguments(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if ((e.kind != Kind::kCall && e.kind != Kind::kBraces) || e.parts.size() < 2) continue;
    const std::string callee = p.words(e.parts[0]);
    // Their order does not matter.
    if (callee == "min" || callee == "max" || callee == "fmaxf" || callee == "fminf") continue;
    const std::size_t first = e.kind == Kind::kCall || p.is_callee(e.parts[0]) ? 1 : 0;
    for (std::size_t a = first; a < e.parts.size(); ++a)
      for (std::size_t b = a + 1; b < e.parts.size(); ++b) {
        if (b > a + 1 && e.parts.size() > first + 4) continue;
        const Expression &left = p.at(e.parts[a]), &right = p.at(e.parts[b]);
        if (left.end > right.begin || p.words(left) == p.words(right)) continue;
        if (!may_change_places(p.type(e.parts[a]), p.type(e.parts[b]))) continue;
        // One of them would be refused where the other is.
        if (leads_to_const(p, left) != leads_to_const(p, right)) continue;
        p.replace(name, b == a + 1 ? 0 : 1, i, left.begin, right.end,
                  fmt::format("{}{} {}", p.words(right), p.code().words(left.end, right.begin),
                              p.words(left)));
      }
  }
}

// Another type for the same number, which the compiler knows to convert, or refuses.
bool converts(std::string_view callee) {
  for (const char* const part :
       {"2float", "float2", "2half", "half2", "2bfloat", "float22", "cvta"})
    if (callee.find(part) != callee.npos) return true;
  return false;
}

// warp_sum(x): x.
void dropped_call(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kCall || e.parts.size() < 2 || converts(p.words(e.parts[0]))) continue;
    // What is called for what it does is left out as a statement.
    if (e.parent < 0 && e.statement >= 0 &&
        p.statement(e.statement).kind == StatementKind::kExpression)
      continue;
    for (std::size_t a = 1; a < std::min<std::size_t>(e.parts.size(), 4); ++a)
      p.replace(name, 1, i, p.words(e.parts[a]));
  }
}

// Functions of one number: the user's own, those of CUDA that the sources have, and the two that attention cannot do
// without, which may be what is missing.
std::set<std::string> functions_of_one(const Proposals& p) {
  constexpr std::string_view kOfCuda[] = {"__expf", "exp2f",  "__logf", "log2f",
                                          "sqrtf",  "rsqrtf", "fabsf",  "__log2f"};
  std::set<std::string> functions = {"expf", "logf"};
  for (const std::string_view f : kOfCuda)
    for (const auto& file : p.program().files)
      if (file->text.find(f) != std::string::npos) functions.emplace(f);
  for (const auto& file : p.program().files)
    for (const DeviceFunction& f : file->functions) {
      if (f.is_kernel || f.on_host || f.name == p.function().name) continue;
      int parameters = 0;
      bool real = false;
      for (const Variable& v : f.variables)
        if (v.statement < 0 && !v.constant && v.from == f.open) {
          ++parameters;
          real = is_real(v.type);
        }
      if (parameters == 1 && real && f.name != "operator") functions.insert(f.name);
    }
  return functions;
}

// x: __expf(x), warp_sum(x), and a lane's value for all.
void missing_call(Proposals& p, std::string_view name) {
  const std::set<std::string> functions = functions_of_one(p);
  const bool shuffles = p.code().text.find("__shfl_") != std::string::npos;
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.constant || p.is_target(i) || p.is_callee(i) || !p.is_real_value(i)) continue;
    const bool name_of_one = e.kind == Kind::kName && p.variable(p.words(e), e.begin) != nullptr;
    if (!name_of_one && e.kind != Kind::kBinary && e.kind != Kind::kParenthesis) continue;
    const std::string text = e.kind == Kind::kParenthesis ? p.words(e) : "(" + p.words(e) + ")";
    for (const std::string& function : functions) p.replace(name, 1, i, function + text);
    if (name_of_one && shuffles)
      p.replace("broadcast", 2, i, fmt::format("__shfl_sync(0xffffffff, {}, 0)", p.words(e)));
  }
}

// What is left in a loop in steps: n - first.
std::vector<std::string> rests_at(const Proposals& p, std::size_t token) {
  std::set<std::string> bounds, counters;
  for (const Statement& s : p.function().statements) {
    if (s.kind != StatementKind::kLoop || s.begin > token || s.end <= token) continue;
    for (const int condition : s.conditions) {
      const Expression& c = p.at(condition);
      if (c.kind != Kind::kBinary || c.parts.size() != 2 || !p.is_known_at(c, token)) continue;
      counters.insert(p.words(c.parts[0]));
      bounds.insert(as_operand(p, c.parts[1]));
    }
  }
  std::vector<std::string> found;
  for (const std::string& bound : bounds)
    for (const std::string& counter : counters) found.push_back(bound + " - " + counter);
  return found;
}

// m = m: m = fmaxf(m, s); n = kTile: n = min(kTile, rest), with the values at hand.
void missing_limit(Proposals& p, std::string_view name) {
  const auto limit = [&](int value) {
    const Expression& e = p.at(value);
    const bool real = p.is_real_value(value);
    if (e.constant || (!real && !p.is_integer_value(value)) || p.type(value) == "bool") return;
    const std::string text = p.words(e);
    std::vector<std::string> others = p.values_at(e.begin, real);
    for (const Variable* v : p.visible(e.begin))
      if (real ? is_real(v->type) : is_count(v->type))
        if (std::find(others.begin(), others.end(), v->name) == others.end())
          others.push_back(v->name);
    if (!real)
      for (std::string& rest : rests_at(p, e.begin)) others.push_back(std::move(rest));
    for (const std::string& other : others) {
      if (other == text) continue;
      for (const char* const function : {real ? "fmaxf" : "min", real ? "fminf" : "max"})
        p.replace(name, 2, value, fmt::format("{}({}, {})", function, text, other));
    }
  };
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind == Kind::kAssignment && p.op(e) == "=" && e.parts.size() == 2) limit(e.parts[1]);
  }
  for (const Statement& s : p.function().statements)
    if (s.kind == StatementKind::kDeclaration || s.kind == StatementKind::kReturn)
      for (const int e : s.expressions) limit(e);
}

constexpr Operation kCallOperations[] = {
    {"function", other_function},     {"arguments swapped", swapped_arguments},
    {"call dropped", dropped_call},   {"missing call", missing_call},
    {"missing limit", missing_limit},
};

}  // namespace

std::span<const Operation> call_operations() { return kCallOperations; }

}  // namespace attn_diag::repair
