// Statements: left out, added, in another order; conditions and barriers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;

template <class Visit>
void for_each_statement(const Proposals& p, const Visit& visit) {
  for (int i = 0; i < p.num_statements(); ++i) visit(i, p.statement(i));
}

// Conditions of the function, each text once.
std::vector<int> conditions_of(const Proposals& p) {
  std::vector<int> found;
  std::set<std::string> texts;
  const auto add = [&](int e) {
    if (!p.at(e).constant && texts.insert(p.words(e)).second) found.push_back(e);
  };
  for (const Statement& s : p.function().statements)
    for (const int condition : s.conditions) add(condition);
  for (int i = 0; i < p.num_expressions(); ++i)
    if (p.at(i).kind == Kind::kConditional && !p.at(i).parts.empty()) add(p.at(i).parts[0]);
  return found;
}

void other_condition(Proposals& p, std::string_view name) {
  for_each_statement(p, [&](int, const Statement& s) {
    for (const int condition : s.conditions) {
      p.replace(name, 0, condition, "!(" + p.words(condition) + ")");
      if (s.kind != StatementKind::kIf) continue;
      p.replace(name, 0, condition, "true");
      p.replace(name, 0, condition, "false");
    }
  });
  for (int i = 0; i < p.num_expressions(); ++i)
    if (p.at(i).kind == Kind::kConditional && !p.at(i).parts.empty())
      p.replace(name, 0, p.at(i).parts[0], "!(" + p.words(p.at(i).parts[0]) + ")");
}

// true, where a comparison or a flag belongs.
void constant_condition(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    const std::string text = p.words(e);
    if (e.constant || (text != "true" && text != "false")) continue;
    for (const int condition : conditions_of(p))
      if (p.is_known_at(p.at(condition), e.begin)) p.replace(name, 0, i, p.words(condition));
    const std::vector<const Variable*> visible = p.visible(e.begin);
    if (p.code().text.find("threadIdx.x") != std::string::npos)
      for (const Variable* b : visible)
        if (is_count(b->type)) p.replace(name, 1, i, "threadIdx.x < " + b->name);
    for (const Variable* a : visible) {
      if (!is_integer(a->type)) continue;
      if (!a->constant) p.replace(name, 0, i, a->name);
      for (const Variable* b : visible)
        if (a != b && is_integer(b->type) && a->type != "bool" && b->type != "bool" &&
            !(a->constant && b->constant))
          for (const char* const relation : {" < ", " >= "})
            p.replace(name, 1, i, a->name + relation + b->name);
    }
  }
}

// i < n: i < n && j < m.
void stricter_condition(Proposals& p, std::string_view name) {
  const std::vector<int> all = conditions_of(p);
  for (const int condition : all)
    for (const int other : all) {
      if (other == condition || !p.is_known_at(p.at(other), p.at(condition).begin)) continue;
      p.replace(name, 1, condition,
                fmt::format("{} && {}", as_operand(p, condition), as_operand(p, other)));
      p.replace(name, 2, condition,
                fmt::format("{} || {}", as_operand(p, condition), as_operand(p, other)));
    }
}

bool is_simple(const Statement& s) {
  return s.kind == StatementKind::kExpression || s.kind == StatementKind::kReturn ||
         s.kind == StatementKind::kJump;
}

// Comparisons of an index with a bound that the function is given.
std::vector<std::string> bounds_at(const Proposals& p, const Statement& s) {
  std::vector<std::string> found;
  const std::set<std::string_view> read = p.names_in(s.begin, s.end);
  for (const Variable* index : p.visible(s.begin)) {
    if (!is_integer(index->type) || index->constant || !read.contains(index->name)) continue;
    for (const Variable* bound : p.visible(s.begin)) {
      const bool given = bound->statement < 0 || bound->constant;
      if (bound != index && given && is_integer(bound->type))
        found.push_back(index->name + " < " + bound->name);
    }
  }
  return found;
}

void missing_guard(Proposals& p, std::string_view name) {
  const std::vector<int> conditions = conditions_of(p);
  for_each_statement(p, [&](int i, const Statement& s) {
    if (!is_simple(s) && s.kind != StatementKind::kLoop && s.kind != StatementKind::kIf) return;
    const std::string text(p.code().written(s.begin, s.end));
    const std::string line = p.code().words(s.begin, s.end);
    const auto put = [&](int tier, const std::string& condition) {
      p.replace_statement(name, tier, i, fmt::format("if ({}) {}", condition, text),
                          fmt::format("if ({}) {}", condition, line));
    };
    std::set<std::string> seen;
    for (const int condition : conditions) {
      const Expression& c = p.at(condition);
      if (c.begin >= s.begin && c.end <= s.end) continue;
      if (!p.is_known_at(c, s.begin)) continue;
      seen.insert(p.words(c));
      put(1, p.words(c));
      put(2, "!(" + p.words(c) + ")");
    }
    if (!is_simple(s)) return;
    for (const std::string& bound : bounds_at(p, s))
      if (seen.insert(bound).second) put(2, bound);
  });
}

// x[i]: i < n ? x[i] : 0.
void missing_zero(Proposals& p, std::string_view name) {
  const std::vector<int> conditions = conditions_of(p);
  const auto guard = [&](int value) {
    const Expression& e = p.at(value);
    if (e.constant || !p.is_real_value(value)) return;
    for (const int condition : conditions) {
      const Expression& c = p.at(condition);
      if ((c.begin >= e.begin && c.end <= e.end) || !p.is_known_at(c, e.begin)) continue;
      for (const char* const other : {"0.f", "-INFINITY"})
        p.replace(name, 2, value,
                  fmt::format("{} ? {} : {}", as_operand(p, condition), p.words(value), other));
    }
  };
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind == Kind::kAssignment && p.op(e) == "=" && e.parts.size() == 2) guard(e.parts[1]);
  }
  for (const Statement& s : p.function().statements)
    if (s.kind == StatementKind::kDeclaration)
      for (const int e : s.expressions) guard(e);
}

bool synchronises(std::string_view text) {
  // What a warp computes or moves together.
  for (const char* const word : {"mma", "matrix_sync", "shfl", "fragment"})
    if (text.find(word) != text.npos) return false;
  for (const char* const word : {"sync", "wait", "fence", "arrive", "commit", "barrier"})
    if (text.find(word) != text.npos) return true;
  return false;
}

// Where one of a family is there, the others belong beside it.
constexpr std::string_view kFamilies[][5] = {
    {"producer_acquire()", "producer_commit()", "consumer_wait()", "consumer_release()"},
    {"__pipeline_commit()", "__pipeline_wait_prior(0)", "__pipeline_wait_prior(1)"},
    {"arrive_and_wait()", "sync()"},
};

void add_families(std::vector<std::string>& calls) {
  const std::vector<std::string> known = calls;
  for (const std::string& call : known)
    for (const auto& family : kFamilies)
      for (const std::string_view member : family) {
        if (member.empty() || !call.ends_with(std::string(member) + ";")) continue;
        const std::string object = call.substr(0, call.size() - member.size() - 1);
        for (const std::string_view other : family) {
          const std::string text = object + std::string(other) + ";";
          if (!other.empty() && std::find(calls.begin(), calls.end(), text) == calls.end())
            calls.push_back(text);
        }
      }
}

// A call by which threads wait for each other.
struct Barrier {
  std::string text;
  int expression = -1;  // of the function, that needs what is known there; -1: it needs nothing
};

// Whether the function can call it: in its file it stands before.
bool is_declared_for(const Proposals& p, std::string_view name) {
  for (const DeviceFunction& f : p.code().functions)
    if (f.name == name && f.open > p.function().open) return false;
  return true;
}

// As the function or CUDA has them.
std::vector<Barrier> barriers_of(const Proposals& p) {
  std::vector<std::string> found = {"__syncthreads();", "__syncwarp();"};
  std::map<std::string, int> expressions;
  for (const auto& file : p.program().files)
    for (const DeviceFunction& f : file->functions)
      for (const Statement& s : f.statements) {
        if (f.on_host || s.kind != StatementKind::kExpression || s.expressions.size() != 1)
          continue;
        const Expression& e = f.expressions[static_cast<std::size_t>(s.expressions[0])];
        const std::string text = file->words(s.begin, s.end);
        if (e.kind != Kind::kCall || !synchronises(text) || text.size() > 60) continue;
        const bool here = &f == &p.function();
        // From another function only what needs nothing from it.
        if (!here && text.find("()") == text.npos) continue;
        if (!here && !is_declared_for(p, text.substr(0, text.find('(')))) continue;
        if (here) expressions.emplace(text, s.expressions[0]);
        if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
      }
  if (p.code().text.find("__threadfence") != std::string::npos ||
      p.code().text.find("atomic") != std::string::npos)
    found.emplace_back("__threadfence();");
  add_families(found);
  std::vector<Barrier> barriers;
  for (std::string& text : found) {
    const auto at = expressions.find(text);
    barriers.push_back({std::move(text), at == expressions.end() ? -1 : at->second});
  }
  return barriers;
}

void missing_barrier(Proposals& p, std::string_view name) {
  const std::vector<Barrier> barriers = barriers_of(p);
  for_each_statement(p, [&](int i, const Statement& s) {
    if (!s.in_block) return;
    // The first of a block, and behind each: between two statements once.
    const Statement& block = p.statement(s.parent);
    const bool first = s.begin == block.begin + 1;
    for (const Barrier& barrier : barriers) {
      if (barrier.expression >= 0 && !p.is_known_at(p.at(barrier.expression), s.begin)) continue;
      // As the file has them.
      const std::string call = barrier.text.substr(0, barrier.text.size() - 1);
      const int tier = p.code().text.find(call) != std::string::npos ? 0 : 1;
      if (first) p.insert(name, tier, i, true, barrier.text);
      if (s.kind != StatementKind::kReturn && s.kind != StatementKind::kJump)
        p.insert(name, tier, i, false, barrier.text);
    }
  });
}

void dropped_statement(Proposals& p, std::string_view name) {
  for_each_statement(p, [&](int i, const Statement& s) {
    if (!is_simple(s)) return;
    p.replace_statement(name, 0, i, s.in_block ? "" : ";");
  });
}

// a; b;: b; a;
// m = m_new; a = expf(m - m_new): the second reads what the first has just stored.
bool is_used_by(const Proposals& p, const Statement& s, const Statement& next) {
  return assignment_in(p, s) != nullptr && p.is_name(s.begin, s.begin) &&
         p.names_in(next.begin, next.end).contains(p.code().token(s.begin).text);
}

// The statement behind one in its block, where both can change places; -1: there is none.
int next_of(const Proposals& p, int i) {
  const Statement& s = p.statement(i);
  if (!s.in_block || s.kind == StatementKind::kReturn) return -1;
  for (int j = i + 1; j < p.num_statements(); ++j) {
    const Statement& next = p.statement(j);
    if (next.parent != s.parent || !next.in_block || next.begin < s.end) continue;
    return next.begin != s.end || next.kind == StatementKind::kReturn ? -1 : j;
  }
  return -1;
}

void swapped_statements(Proposals& p, std::string_view name) {
  for_each_statement(p, [&](int i, const Statement& s) {
    const int j = next_of(p, i);
    if (j < 0) return;
    const Statement& next = p.statement(j);
    const Code& code = p.code();
    const std::size_t end = code.token(s.end - 1).end;
    p.replace_two(name, is_used_by(p, s, next) ? 0 : 1, i, j,
                  std::string(code.written(next.begin, next.end)) +
                      code.text.substr(end, code.token(next.begin).begin - end) +
                      std::string(code.written(s.begin, s.end)),
                  code.words(next.begin, next.end) + " " + code.words(s.begin, s.end));
  });
}

// a[2] = v.w; a[3] = v.z: a[2] = v.z; a[3] = v.w.
void swapped_values(Proposals& p, std::string_view name) {
  const auto value_of = [&](const Statement& s) -> const Expression* {
    const Expression* const e = assignment_in(p, s);
    return e == nullptr || p.op(*e) != "=" ? nullptr : &p.at(e->parts[1]);
  };
  for_each_statement(p, [&](int i, const Statement& s) {
    const int j = next_of(p, i);
    if (j < 0) return;
    const Statement& next = p.statement(j);
    const Expression *const a = value_of(s), *const b = value_of(next);
    if (a == nullptr || b == nullptr || p.words(*a) == p.words(*b)) return;
    const Code& code = p.code();
    const bool alike = code.token(s.begin).text == code.token(next.begin).text;
    const auto text = [&](std::size_t begin, std::size_t end) {
      return code.text.substr(begin, end - begin);
    };
    const auto begin_of = [&](std::size_t token) { return code.token(token).begin; };
    const auto end_of = [&](std::size_t token) { return code.token(token - 1).end; };
    p.replace_two(
        name, alike ? 0 : 1, i, j,
        text(begin_of(s.begin), begin_of(a->begin)) + text(begin_of(b->begin), end_of(b->end)) +
            text(end_of(a->end), begin_of(b->begin)) + text(begin_of(a->begin), end_of(a->end)) +
            text(end_of(b->end), end_of(next.end)),
        code.words(s.begin, a->begin) + " " + p.words(*b) + "; " +
            code.words(next.begin, b->begin) + " " + p.words(*a) + ";");
  });
}

void other_jump(Proposals& p, std::string_view name) {
  for_each_statement(p, [&](int i, const Statement& s) {
    if (s.kind != StatementKind::kJump) return;
    p.replace_statement(name, 0, i, p.code().token(s.begin).is("break") ? "continue;" : "break;");
  });
}

// float s; : float s = 0.f;
void missing_initialiser(Proposals& p, std::string_view name) {
  for (const Variable& v : p.function().variables) {
    if (v.initialised || v.statement < 0 || v.constant) continue;
    const bool array = v.type.ends_with("[]");
    const std::string element = without_extents(v.type);
    if (!is_real(element) && !is_integer(element)) continue;
    std::size_t behind = v.declared;
    while (p.code().token(behind + 1).is("[")) behind = p.code().syntax->match(behind + 1);
    if (array) {
      p.extend_declaration(
          name, 0, v.statement, behind, " = {}",
          fmt::format("for (char& byte : reinterpret_cast<char(&)[sizeof({0})]>({0})) byte = 0;",
                      v.name));
    } else {
      const char* const zero = is_real(element) ? "0.f" : "0";
      p.extend_declaration(name, 0, v.statement, behind, fmt::format(" = {}", zero),
                           fmt::format("{} = {};", v.name, zero));
      if (is_real(element))
        p.extend_declaration(name, 0, v.statement, behind, " = -INFINITY",
                             v.name + " = -INFINITY;");
    }
  }
}

// m = m_new; l *= alpha; l += p;
void missing_assignment(Proposals& p, std::string_view name) {
  for_each_statement(p, [&](int i, const Statement& s) {
    if (!s.in_block || s.kind == StatementKind::kReturn || s.kind == StatementKind::kJump) return;
    const std::vector<const Variable*> visible = p.visible(s.end);
    for (const Variable* to : visible) {
      if (to->constant || to->type.ends_with("[]") || to->type.ends_with("*")) continue;
      if (!is_real(to->type) || to->is_const) continue;
      for (const Variable* from : visible) {
        if (from == to || from->type != to->type) continue;
        for (const char* const op : {"=", "*=", "+="})
          p.insert(name, 2, i, false, fmt::format("{} {} {};", to->name, op, from->name));
      }
    }
  });
}

// Names of a tile of K where one of V belongs, and the like: "k" for "v", "sK" for "sV".
std::string with_other_operand(const Proposals& p, const Statement& s, char from, char to) {
  std::string text;
  for (std::size_t i = s.begin; i < s.end; ++i) {
    const Token& t = p.code().token(i);
    std::string word(t.text);
    if (t.is_identifier() && (i == s.begin || !p.code().token(i - 1).is("::"))) {
      const auto other = [&](std::size_t at) {
        std::string changed = word;
        const bool upper = word[at] >= 'A' && word[at] <= 'Z';
        changed[at] = static_cast<char>(upper ? to - 'a' + 'A' : to);
        return changed;
      };
      for (std::size_t at = 0; at < word.size(); ++at) {
        if ((word[at] | 0x20) != from) continue;
        const std::string changed = other(at);
        const bool member = i > s.begin && p.code().token(i - 1).is_any({".", "->"});
        if (p.variable(changed, s.begin) != nullptr ||
            (member && p.code().text.find(changed) != std::string::npos)) {
          word = changed;
          break;
        }
      }
    }
    if (i > s.begin && t.begin > p.code().token(i - 1).end) text += ' ';
    text += word;
  }
  return text;
}

// sK[i] = k[i]; alone: sV[i] = v[i]; belongs beside it.
void missing_twin(Proposals& p, std::string_view name) {
  for_each_statement(p, [&](int i, const Statement& s) {
    if (s.kind != StatementKind::kExpression || !s.in_block) return;
    const std::string text = p.code().words(s.begin, s.end);
    for (const char from : {'k', 'v', 'q', 'm', 'l', 'o'})
      for (const char to : {'k', 'v', 'q', 'm', 'l', 'o'}) {
        if (from == to) continue;
        const std::string twin = with_other_operand(p, s, from, to);
        if (twin != text && p.code().text.find(twin) == std::string::npos)
          p.insert(name, 1, i, false, twin);
      }
  });
}

constexpr Operation kStatementOperations[] = {
    {"condition", other_condition},
    {"constant condition", constant_condition},
    {"statement dropped", dropped_statement},
    {"jump", other_jump},
    {"initialiser", missing_initialiser},
    {kBarrierOperation, missing_barrier},
    {"statements swapped", swapped_statements},
    {"values swapped", swapped_values},
    {"guard", missing_guard},
    {"stricter condition", stricter_condition},
    {"guarded value", missing_zero},
    {"missing assignment", missing_assignment},
    {"missing twin", missing_twin},
};

}  // namespace

std::span<const Operation> statement_operations() { return kStatementOperations; }

}  // namespace attn_diag::repair
