// Statements that are missing, made of what the function has beside them.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;

// The variable that a statement stores to; null: none, or not one that is known.
const Variable* stored_by(const Proposals& p, const Statement& s) {
  const Expression* const assignment = assignment_in(p, s);
  if (assignment == nullptr) return nullptr;
  int target = assignment->parts[0];
  while (p.at(target).kind == Kind::kIndex && !p.at(target).parts.empty())
    target = p.at(target).parts[0];
  if (p.at(target).kind != Kind::kName) return nullptr;
  return p.variable(p.code().token(p.at(target).begin).text, p.at(target).begin);
}

// beta = __shfl_sync(mask, beta, 0); alone: alpha = __shfl_sync(mask, alpha, 0); belongs beside it.
void done_for_another(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_statements(); ++i) {
    const Statement& s = p.statement(i);
    const Variable* const stored = stored_by(p, s);
    if (stored == nullptr || !s.in_block || stored->constant) continue;
    const std::string element = without_extents(stored->type);
    if (!is_real(element) && !is_integer(element)) continue;
    for (const Variable* other : p.visible(s.begin)) {
      if (other->name == stored->name || other->type != stored->type || other->constant ||
          other->is_const)
        continue;
      const std::string text = renamed(p, s.begin, s.end, {{stored->name, other->name}});
      if (p.code().text.find(text) == std::string::npos) p.insert(name, 1, i, false, text);
    }
  }
}

// for (...) l += p; where l was set to 0 before another loop around it: for (...) { l = 0.f; ... }
void missing_reset(Proposals& p, std::string_view name) {
  std::set<std::pair<int, const Variable*>> seen;  // the first statement of a loop
  const auto first_in = [&](int block) {
    for (int i = block + 1; i < p.num_statements(); ++i)
      if (p.statement(i).parent == block) return i;
    return -1;
  };
  for (const Statement& s : p.function().statements) {
    const Variable* const stored = stored_by(p, s);
    if (stored == nullptr || stored->statement < 0 || stored->is_const) continue;
    const std::string element = without_extents(stored->type);
    if (!is_real(element) && !is_integer(element)) continue;
    const bool array = element.size() != stored->type.size();
    // The blocks of the loops around it, up to where it is declared.
    for (int at = s.parent; at >= 0; at = p.statement(at).parent) {
      const Statement& block = p.statement(at);
      if (block.begin <= stored->declared) break;
      if (block.kind != StatementKind::kBlock || block.parent < 0 ||
          p.statement(block.parent).kind != StatementKind::kLoop)
        continue;
      const int first = first_in(at);
      if (first < 0 || !seen.emplace(first, stored).second) continue;
      if (array) {
        p.insert(name, 1, first, true,
                 fmt::format("for (auto& element : {}) element = 0;", stored->name));
      } else {
        p.insert(name, 1, first, true, fmt::format("{} = 0;", stored->name));
        if (is_real(element)) p.insert(name, 1, first, true, stored->name + " = -INFINITY;");
      }
    }
  }
}

// m[r] = m_new; alone: l[r] *= alpha; belongs beside it.
void missing_element(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_statements(); ++i) {
    const Statement& s = p.statement(i);
    const Variable* const stored = stored_by(p, s);
    if (stored == nullptr || !s.in_block || !stored->type.ends_with("[]") ||
        !is_real(without_extents(stored->type)))
      continue;
    const Expression& target = p.at(assignment_in(p, s)->parts[0]);
    const std::vector<const Variable*> visible = p.visible(s.end);
    for (const Variable* other : visible) {
      if (other->name == stored->name || other->type != stored->type || other->is_const) continue;
      const std::string element =
          renamed(p, target.begin, target.end, {{stored->name, other->name}});
      for (const Variable* factor : visible)
        if (is_real(factor->type))
          for (const char* const op : {"*=", "+=", "="})
            p.insert(name, 1, i, false, fmt::format("{} {} {};", element, op, factor->name));
    }
  }
}

// x from another lane, some lanes away: __shfl_xor_sync(mask, x, distance).
struct Shuffle {
  int call = -1;
  int value = -1, distance = -1;
};

std::vector<Shuffle> shuffles_of(const Proposals& p) {
  std::vector<Shuffle> found;
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kCall || e.constant || e.parts.size() < 4) continue;
    const std::string callee = p.words(e.parts[0]);
    if (callee == "__shfl_xor_sync" || callee == "__shfl_down_sync")
      found.push_back({i, e.parts[2], e.parts[3]});
  }
  return found;
}

constexpr const char* kDistances[] = {"1", "2", "4", "8", "16"};

// Whether a block has such a statement.
bool has_statement(const Proposals& p, int block, const std::string& text) {
  return std::any_of(p.function().statements.begin(), p.function().statements.end(),
                     [&](const Statement& s) {
                       return s.parent == block && p.code().words(s.begin, s.end) == text;
                     });
}

// l += __shfl_xor_sync(mask, l, 1); alone: that over lanes two apart belongs beside it.
void missing_distance(Proposals& p, std::string_view name) {
  const std::vector<Shuffle> shuffles = shuffles_of(p);
  for (int i = 0; i < p.num_statements(); ++i) {
    const Statement& s = p.statement(i);
    const Expression* const assignment = assignment_in(p, s);
    if (assignment == nullptr || !s.in_block) continue;
    for (const Shuffle& shuffle : shuffles) {
      const Expression& call = p.at(shuffle.call);
      const Expression& distance = p.at(shuffle.distance);
      if (call.begin < s.begin || call.end > s.end || distance.kind != Kind::kNumber ||
          p.words(shuffle.value) != p.words(assignment->parts[0]))
        continue;
      for (const char* const other : kDistances) {
        const std::string text = p.code().words(s.begin, distance.begin) + " " + other +
                                 p.code().words(distance.end, s.end);
        if (p.words(shuffle.distance) != other && !has_statement(p, s.parent, text))
          p.insert(name, 0, i, false, text);
      }
    }
  }
}

// l += p; in a function whose lanes add up something else: l += __shfl_xor_sync(mask, l, 1);
void missing_shuffle(Proposals& p, std::string_view name) {
  const std::vector<Shuffle> shuffles = shuffles_of(p);
  if (shuffles.empty()) return;
  const Expression& call = p.at(shuffles.front().call);
  const Expression& mask = p.at(call.parts[1]);
  const std::string begin = p.code().words(call.begin, p.at(shuffles.front().value).begin);
  std::set<std::pair<int, std::string>> seen;  // behind which statement, of what
  for (int i = 0; i < p.num_statements(); ++i) {
    const Variable* const stored = stored_by(p, p.statement(i));
    if (stored == nullptr || !is_real(stored->type) || stored->is_const) continue;
    // Behind the store, and behind the loops and blocks that it is in.
    for (int at = i; at >= 0 && p.statement(at).begin > stored->declared;
         at = p.statement(at).parent) {
      if (!p.statement(at).in_block || !p.is_known_at(mask, p.statement(at).end) ||
          !seen.emplace(at, stored->name).second)
        continue;
      for (const char* const distance : kDistances) {
        const std::string other = fmt::format("{} {}, {})", begin, stored->name, distance);
        p.insert(name, 1, at, false, fmt::format("{} += {};", stored->name, other));
        p.insert(name, 1, at, false, fmt::format("{0} = fmaxf({0}, {1});", stored->name, other));
      }
    }
  }
}

// float l = 0.f; that nothing is ever stored to: l = l * alpha + p; where the loop makes alpha and p.
void missing_update(Proposals& p, std::string_view name) {
  std::set<const Variable*> stored;
  for (int i = 0; i < p.num_expressions(); ++i)
    if (const Expression& e = p.at(i); e.kind == Kind::kName && p.is_target(i))
      stored.insert(p.variable(p.code().token(e.begin).text, e.begin));
  for (const Variable& v : p.function().variables) {
    if (v.statement < 0 || v.constant || v.is_const || !is_real(v.type) || stored.contains(&v))
      continue;
    for (int i = 0; i < p.num_statements(); ++i) {
      const Statement& s = p.statement(i);
      // Where others are stored, or named, in a loop that begins behind it.
      if (!s.in_block || s.begin < v.declared || s.end > v.to) continue;
      if (s.kind != StatementKind::kDeclaration && stored_by(p, s) == nullptr) continue;
      int loop = s.parent;
      while (loop >= 0 && p.statement(loop).kind != StatementKind::kLoop)
        loop = p.statement(loop).parent;
      if (loop < 0 || p.statement(loop).begin < v.declared) continue;
      // What that loop makes.
      std::vector<std::string> made;
      for (const Variable* other : p.visible(s.end))
        if (is_real(other->type) && other->declared > p.statement(loop).begin)
          made.push_back(other->name);
      constexpr std::size_t kMany = 8;
      if (made.size() > kMany) continue;
      for (const std::string& a : made) {
        for (const char* const form :
             {"{0} = {1};", "{0} += {1};", "{0} *= {1};", "{0} = fmaxf({0}, {1});"})
          p.insert(name, 0, i, false, fmt::format(fmt::runtime(form), v.name, a));
        for (const std::string& b : made)
          if (a != b)
            p.insert(name, 1, i, false, fmt::format("{0} = {0} * {1} + {2};", v.name, a, b));
      }
    }
  }
}

constexpr Operation kInsertionOperations[] = {
    {"as for another", done_for_another},    {"missing reset", missing_reset},
    {"missing assignment", missing_element}, {"missing distance", missing_distance},
    {"missing shuffle", missing_shuffle},    {"missing update", missing_update},
};

}  // namespace

std::span<const Operation> insertion_operations() { return kInsertionOperations; }

}  // namespace attn_diag::repair
