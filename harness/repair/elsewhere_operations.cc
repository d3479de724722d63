// What the function has elsewhere: what is wrong in one place is often right in another.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;
using NameSet = std::set<std::string_view>;

std::size_t num_shared(const NameSet& a, const NameSet& b) {
  return static_cast<std::size_t>(
      std::count_if(a.begin(), a.end(), [&](std::string_view name) { return b.contains(name); }));
}

// Whether the value can be another one.
bool is_value(const Proposals& p, int i) {
  const Expression& e = p.at(i);
  const bool known = e.kind != Kind::kOpaque && e.kind != Kind::kBraces &&
                     e.kind != Kind::kAssignment && e.kind != Kind::kPostfix &&
                     e.kind != Kind::kParenthesis && e.kind != Kind::kNumber;
  if (!known || e.constant || p.is_callee(i) || p.is_target(i)) return false;
  return e.parent < 0 || p.at(e.parent).kind != Kind::kMember;
}

// Whether nothing beside it can take a part of another expression that stands in its place.
bool stands_alone(const Proposals& p, int i) {
  const int parent = p.at(i).parent;
  if (parent < 0) return true;
  const Kind kind = p.at(parent).kind;
  return kind == Kind::kIndex || kind == Kind::kCall || kind == Kind::kAssignment ||
         kind == Kind::kParenthesis;
}

// An expression of a function of the file.
struct Known {
  std::string text, operand;                      // as it is, as the operand of an operator
  std::map<std::string_view, std::string> names;  // with the types of variables; empty: no variable
  bool real = false, here = false;                // whether this function has it
};

// Each text once, those of this function first.
std::vector<Known> known_values(const Proposals& p) {
  constexpr std::size_t kLong = 70;  // nobody's small slip
  std::vector<Known> found;
  std::set<std::string> texts;
  const auto add = [&](const Proposals& of, bool here) {
    for (int i = 0; i < of.num_expressions(); ++i) {
      const Expression& e = of.at(i);
      const bool made = e.kind == Kind::kBinary || e.kind == Kind::kCall || e.kind == Kind::kIndex;
      if (!made || !is_value(of, i)) continue;
      Known known;
      known.here = here;
      known.real = of.is_real_value(i);
      if (!known.real && !of.is_count_value(i)) continue;
      known.text = of.words(e);
      if (known.text.size() > kLong || !texts.insert(known.text).second) continue;
      known.operand = as_operand(of, i);
      for (const std::string_view name : of.names_in(e.begin, e.end)) {
        const Variable* const v = of.variable(name, e.begin);
        known.names[name] = v == nullptr ? "" : v->type;
      }
      found.push_back(std::move(known));
    }
  };
  add(p, true);
  std::vector<Edit> none;
  for (const DeviceFunction& other : p.code().functions)
    if (&other != &p.function() && other.on_host == p.function().on_host)
      add(Proposals(p.program(), p.file(), other, none), false);
  return found;
}

bool is_known_at(const Proposals& p, const Known& known, std::size_t token) {
  return std::all_of(known.names.begin(), known.names.end(), [&](const auto& name) {
    if (name.second.empty()) return true;
    const Variable* const v = p.variable(name.first, token);
    return v != nullptr && v->type == name.second;
  });
}

// a[i + col]: a[row * d + col], which stands elsewhere: half of the names are the same, or it is part of that.
void other_expression(Proposals& p, std::string_view name) {
  const std::vector<Known> all = known_values(p);
  for (int i = 0; i < p.num_expressions(); ++i) {
    if (!is_value(p, i)) continue;
    const Expression& e = p.at(i);
    const bool real = p.is_real_value(i);
    if (!real && !p.is_count_value(i)) continue;
    const std::string text = p.words(e);
    const NameSet names = p.names_in(e.begin, e.end);
    if (names.empty()) continue;
    for (const Known& other : all) {
      if (other.real != real || other.text == text) continue;
      const auto shared = static_cast<std::size_t>(std::count_if(
          names.begin(), names.end(), [&](std::string_view n) { return other.names.contains(n); }));
      const bool all_shared = shared == names.size();
      if (2 * shared < std::max(names.size(), std::size_t{2}) && !all_shared) continue;
      // What it only loses is dropped elsewhere.
      if (text.find(other.text) != std::string::npos) continue;
      if (!is_known_at(p, other, e.begin)) continue;
      const bool near = all_shared || (other.here && 2 * shared >= other.names.size());
      p.replace(name, near ? 1 : 2, i, stands_alone(p, i) ? other.text : other.operand);
    }
  }
}

// i * n: base, of which the first value has a name in common with it.
void variable_for_expression(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kBinary || !is_value(p, i) || !p.is_count_value(i)) continue;
    const NameSet names = p.names_in(e.begin, e.end);
    for (const Variable* v : p.visible(e.begin)) {
      if (v->initialiser < 0 || names.contains(v->name) || !is_count(v->type)) continue;
      const Expression& first = p.at(v->initialiser);
      if (num_shared(names, p.names_in(first.begin, first.end)) > 0) p.replace(name, 1, i, v->name);
    }
  }
}

// i: i / group, where "/ group" stands elsewhere.
void operation_of_elsewhere(Proposals& p, std::string_view name) {
  struct Operand {
    int expression = -1;
    int times = 0;
  };
  std::map<std::string, Operand> operations;  // " / group"
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kBinary || e.parts.size() != 2 || !p.is_integer_value(i)) continue;
    const std::string_view op = p.op(e);
    const Expression& right = p.at(e.parts[1]);
    const bool made = op == "/" || op == "%" || op == "^" || op == "<<" || op == ">>" || op == "&";
    if (!made || right.kind == Kind::kBinary || right.kind == Kind::kOpaque) continue;
    Operand& operand = operations[fmt::format(" {} {}", op, p.words(right))];
    operand.expression = e.parts[1];
    ++operand.times;
  }
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    const bool simple = e.kind == Kind::kName || e.kind == Kind::kMember || e.kind == Kind::kIndex;
    if (!simple || !is_value(p, i) || !p.is_count_value(i)) continue;
    const std::string text = p.words(e);
    for (const auto& [operation, operand] : operations) {
      if (operation.ends_with(" " + text)) continue;
      if (!p.is_known_at(p.at(operand.expression), e.begin)) continue;
      const std::string other = text + operation;
      p.replace(name, operand.times > 1 ? 1 : 2, i, stands_alone(p, i) ? other : "(" + other + ")");
    }
  }
}

// int next = stage: int next = stage ^ 1.
void other_buffer(Proposals& p, std::string_view name) {
  for (const Variable& v : p.function().variables) {
    if (v.initialiser < 0 || !is_integer(v.type)) continue;
    const Expression& e = p.at(v.initialiser);
    if (e.kind != Kind::kName || e.constant) continue;
    p.replace(name, 1, v.initialiser, p.words(e) + " ^ 1");
    p.replace(name, 1, v.initialiser, "1 - " + p.words(e));
  }
}

// t[i + r][j + c]: t[i + c][j + r]; n < end ? n : end: m < end ? m : end.
void renamed_throughout(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.constant || e.kind == Kind::kOpaque || e.kind == Kind::kBraces || p.is_callee(i))
      continue;
    const bool whole = e.parent < 0 || p.at(e.parent).kind == Kind::kAssignment;
    if (!whole && e.kind != Kind::kIndex && e.kind != Kind::kCall) continue;
    // Numbers among its names, and how often they are there.
    std::map<std::string_view, int> times;
    for (std::size_t t = e.begin; t < e.end; ++t)
      if (p.is_name(t, e.begin)) ++times[p.code().token(t).text];
    std::erase_if(times, [&](const auto& entry) {
      const Variable* v = p.variable(entry.first, e.begin);
      return v == nullptr || !is_count(v->type);
    });
    constexpr std::size_t kMany = 8;
    if (times.size() > kMany) continue;
    for (auto a = times.begin(); a != times.end(); ++a)
      for (auto b = std::next(a); b != times.end(); ++b)
        p.replace(name, 1, i,
                  renamed(p, e.begin, e.end, {{a->first, b->first}, {b->first, a->first}}));
    for (const auto& [from, number] : times) {
      if (number < 2 || !whole) continue;
      for (const Variable* to : p.visible(e.begin))
        if (to->name != from && is_count(to->type) && !times.contains(to->name))
          p.replace(name, 1, i, renamed(p, e.begin, e.end, {{from, to->name}}));
    }
  }
}

// load<A>(x): load<B>(x), which stands elsewhere.
void other_instance(Proposals& p, std::string_view name) {
  std::map<std::string, std::set<std::string>> instances;  // by what stands before "<"
  const auto split = [&](int callee) {
    const std::string text = p.words(callee);
    return std::pair(text.substr(0, text.find('<')), text);
  };
  const auto is_instance = [&](int i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kCall || e.parts.empty() || p.at(e.parts[0]).kind != Kind::kName)
      return false;
    const std::string callee = p.words(e.parts[0]);
    return callee.ends_with(">") && callee.find("_cast<") == std::string::npos;
  };
  for (int i = 0; i < p.num_expressions(); ++i) {
    if (!is_instance(i)) continue;
    const auto [before, text] = split(p.at(i).parts[0]);
    instances[before].insert(text);
  }
  for (int i = 0; i < p.num_expressions(); ++i) {
    if (!is_instance(i)) continue;
    const Expression& callee = p.at(p.at(i).parts[0]);
    const auto [before, text] = split(p.at(i).parts[0]);
    for (const std::string& other : instances[before])
      if (other != text) p.replace(name, 0, i, callee.begin, callee.end, other);
  }
}

// load(a, p, n): load(a, p, stride), as another call of it has.
void argument_of_elsewhere(Proposals& p, std::string_view name) {
  constexpr std::size_t kMany = 8;                // of a function that is called everywhere
  std::map<std::string, std::vector<int>> calls;  // by what is called, without template arguments
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kCall || e.constant || e.parts.size() < 3) continue;
    const std::string callee = p.words(e.parts[0]);
    calls[callee.substr(0, callee.find('<'))].push_back(i);
  }
  for (const auto& [callee, all] : calls) {
    if (all.size() < 2 || all.size() > kMany) continue;
    for (const int call : all)
      for (std::size_t k = 1; k < p.at(call).parts.size(); ++k) {
        const int argument = p.at(call).parts[k];
        if (!p.is_integer_value(argument)) continue;
        for (const int other : all) {
          if (other == call || p.at(other).parts.size() != p.at(call).parts.size()) continue;
          const int there = p.at(other).parts[k];
          if (p.is_integer_value(there) && p.words(there) != p.words(argument) &&
              p.is_known_at(p.at(there), p.at(call).begin))
            p.replace(name, 0, argument, p.words(there));
        }
      }
  }
}

// threadIdx.x > threadIdx.y: col > row, where these are that and where the tile begins.
void index_of_all(Proposals& p, std::string_view name) {
  const auto has_term = [&](int sum, const std::string& text) {
    std::vector<int> open = {sum};
    while (!open.empty()) {
      const Expression& e = p.at(open.back());
      const bool whole = open.back() != sum && p.words(e) == text;
      open.pop_back();
      if (whole) return true;
      if (e.kind == Kind::kParenthesis || (e.kind == Kind::kBinary && p.op(e) == "+"))
        open.insert(open.end(), e.parts.begin(), e.parts.end());
    }
    return false;
  };
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kBinary || e.constant || e.parts.size() != 2 || !is_relation(p.op(e)))
      continue;
    std::string sides[2];
    bool any = false;
    for (int side = 0; side < 2; ++side) {
      sides[side] = p.words(e.parts[static_cast<std::size_t>(side)]);
      const Kind kind = p.at(e.parts[static_cast<std::size_t>(side)]).kind;
      if (kind != Kind::kName && kind != Kind::kMember) continue;
      for (const Variable* v : p.visible(e.begin)) {
        if (v->initialiser < 0 || !is_count(v->type) || !has_term(v->initialiser, sides[side]))
          continue;
        sides[side] = v->name;
        any = true;
        break;
      }
    }
    if (any) p.replace(name, 0, i, fmt::format("{} {} {}", sides[0], p.op(e), sides[1]));
  }
}

constexpr Operation kElsewhereOperations[] = {
    {"as elsewhere", other_expression},
    {"variable for expression", variable_for_expression},
    {"as elsewhere", operation_of_elsewhere},
    {"other buffer", other_buffer},
    {"renamed throughout", renamed_throughout},
    {"template arguments", other_instance},
    {"as elsewhere", argument_of_elsewhere},
    {"index of all", index_of_all},
};

}  // namespace

std::span<const Operation> elsewhere_operations() { return kElsewhereOperations; }

}  // namespace attn_diag::repair
