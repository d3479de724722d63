// Numbers, names and members.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;

struct Number {
  std::uint64_t value = 0;
  bool hex = false;
  std::string suffix;  // "u"
};

std::optional<Number> integer_of(std::string_view text) {
  Number number;
  number.hex = text.starts_with("0x") || text.starts_with("0X");
  const char* begin = text.data() + (number.hex ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(begin, end, number.value, number.hex ? 16 : 10);
  if (read.ec != std::errc()) return std::nullopt;
  number.suffix.assign(read.ptr, end);
  for (const char c : number.suffix)
    if (std::string_view("uUlLzZ").find(c) == std::string_view::npos) return std::nullopt;
  return number;
}

std::string spelled(const Number& like, std::uint64_t value) {
  return (like.hex ? fmt::format("{:#x}", value) : fmt::format("{}", value)) + like.suffix;
}

// The value of "0.5f"; nullopt: it is none.
std::optional<double> real_of(std::string_view text, std::string& suffix) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  suffix.assign(read.ptr, text.data() + text.size());
  if (suffix != "" && suffix != "f" && suffix != "F") return std::nullopt;
  return value;
}

// As "1.f" is written, or as "1.0f".
std::string spelled(std::string_view like, double value, const std::string& suffix) {
  std::string text = fmt::format("{}", value);
  const bool bare = like.ends_with("." + suffix);
  if (text.find_first_of(".e") == std::string::npos) text += bare ? "." : ".0";
  return text + suffix;
}

// A mask of lanes, as __shfl_sync(0xffffffff, x, 0) begins with: other masks are rarely meant.
bool is_lane_mask(const Proposals& p, int i) {
  const Expression& e = p.at(i);
  if (e.parent < 0 || p.at(e.parent).kind != Kind::kCall || p.at(e.parent).parts.size() < 2)
    return false;
  const std::string callee = p.words(p.at(e.parent).parts[0]);
  return callee.ends_with("_sync") && p.at(e.parent).parts[1] == i;
}

// The 2 of x * 2 or x / 2: x * 1 is x, which "operand dropped" says shorter.
bool is_factor(const Proposals& p, int i) {
  const Expression& e = p.at(i);
  if (e.parent < 0 || p.at(e.parent).kind != Kind::kBinary) return false;
  const std::string_view op = p.op(p.at(e.parent));
  return op == "*" || (op == "/" && p.at(e.parent).parts.back() == i);
}

// The 1 of x + 1: x + 0 is x, likewise.
bool is_added(const Proposals& p, int i) {
  const Expression& e = p.at(i);
  if (e.parent < 0 || p.at(e.parent).kind != Kind::kBinary) return false;
  const std::string_view op = p.op(p.at(e.parent));
  return op == "+" || op == "-";
}

void other_integer(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kNumber) continue;
    const std::optional<Number> n = integer_of(p.code().token(e.begin).text);
    if (!n) continue;
    const std::uint64_t x = n->value;
    const auto put = [&](int tier, const std::string& text) { p.replace(name, tier, i, text); };
    const int tier = is_lane_mask(p, i) ? 1 : 0;
    put(tier, spelled(*n, x + 1));
    if (x > 2 || (x == 2 && !is_factor(p, i)) || (x == 1 && !is_added(p, i)))
      put(tier, spelled(*n, x - 1));
    if (x > 1) put(tier, spelled(*n, x * 2));
    if (x > 3 || (x > 1 && !is_factor(p, i))) put(tier, spelled(*n, x / 2));
    if (x > 1) put(1, spelled(*n, 0));
    if (x == 0 && n->suffix.empty()) put(tier, "-1");
    if (x != 0xffffffff && tier == 1) put(0, "0xffffffff");
    if (x > 3) put(1, spelled(*n, x * 4));
    if (x > 3) put(1, spelled(*n, x / 4));
    if (x > 2) put(1, spelled(*n, 1));
    // Other bits of a selector, as of __byte_perm.
    if (n->hex && x > 0xff)
      for (int shift = 0; shift < 16; shift += 4)
        put(1, spelled(*n, x ^ (std::uint64_t{1} << shift)));
  }
}

void other_real(Proposals& p, std::string_view name) {
  constexpr double kLog2e = 1.4426950408889634, kLn2 = 0.6931471805599453;
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kNumber || integer_of(p.code().token(e.begin).text)) continue;
    std::string suffix;
    const std::optional<double> x = real_of(p.code().token(e.begin).text, suffix);
    if (!x) continue;
    const auto put = [&](int tier, double value) {
      std::string text = value < 0 ? "-" : "";
      text.append(spelled(p.code().token(e.begin).text, std::fabs(value), suffix));
      p.replace(name, tier, i, text);
    };
    if (*x == 0) {
      put(0, 1);
      p.replace(name, 0, i, "-INFINITY");
      put(1, -1);
      continue;
    }
    put(0, -*x);
    put(0, 2 * *x);
    put(0, *x / 2);
    put(0, 0);
    if (*x != 1) put(0, 1);
    if (*x != 1) put(1, 1 / *x);
    if (std::fabs(*x - kLog2e) < 1e-3) put(0, kLn2);
    if (std::fabs(*x - kLn2) < 1e-3) put(0, kLog2e);
  }
}

// -INFINITY as the start of a maximum: 0, INFINITY, and back.
void other_infinity(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    const std::string text = p.words(e);
    if (text == "-INFINITY" || text == "-FLT_MAX" || text == "- INFINITY") {
      p.replace(name, 0, i, "0.f");
      p.replace(name, 0, i, "INFINITY");
    }
    if (e.kind == Kind::kName && text == "INFINITY" &&
        (e.parent < 0 || p.at(e.parent).kind != Kind::kPrefix)) {
      p.replace(name, 0, i, "-INFINITY");
      p.replace(name, 0, i, "0.f");
    }
  }
}

bool same_kind(std::string_view a, std::string_view b) {
  return a == b || (is_count(a) && is_count(b));
}

const std::array<std::string_view, 4> kBuiltIn = {"threadIdx.x", "threadIdx.y", "blockIdx.x",
                                                  "blockIdx.y"};

// i: j, of the same type.
void other_name(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kName || e.end != e.begin + 1 || p.is_callee(i)) continue;
    const Variable* v = p.variable(p.code().token(e.begin).text, e.begin);
    if (v == nullptr || v->type.empty() || v->type == "auto") continue;
    const bool target = p.is_target(i);
    const int tier = p.in_index(i) || is_pointer_or_array(v->type) ? 0 : 1;
    for (const Variable* other : p.visible(e.begin)) {
      if (other->name == v->name || !same_kind(other->type, v->type)) continue;
      // What is stored to must be the same thing to the compiler.
      if (target && (other->constant || other->is_const ||
                     other->const_elements != v->const_elements || other->type != v->type))
        continue;
      if (e.constant && !other->constant) continue;
      // Where more than elements are read, what is const is no value for what is not.
      const bool read = e.parent >= 0 && p.at(e.parent).kind == Kind::kIndex;
      if (!read && is_pointer_or_array(v->type) && other->const_elements && !v->const_elements)
        continue;
      p.replace(name, target ? 1 : tier, i, other->name);
    }
    if (target || e.constant || !is_integer(v->type)) continue;
    for (const std::string_view built_in : kBuiltIn)
      if (p.code().text.find(built_in) != std::string::npos)
        p.replace(name, 1, i, std::string(built_in));
  }
}

// a[i / n]: a[i / n + 1]; f(i * n): f(i * n - 1).
void sum_off_by_one(Proposals& p, std::string_view name, int i) {
  const Expression& e = p.at(i);
  if (e.parent < 0 || e.constant || !p.is_integer_value(i)) return;
  const Expression& whole = p.at(e.parent);
  if ((whole.kind != Kind::kIndex && whole.kind != Kind::kCall) || whole.parts.front() == i) return;
  const std::string_view op = p.op(e);
  const bool binds = op == "+" || op == "-" || op == "*" || op == "/" || op == "%";
  for (const char* const step : {" + 1", " - 1"})
    p.replace(name, 1, i, (binds ? p.words(e) : "(" + p.words(e) + ")") + step);
}

// i: i + 1, i - 1.
void off_by_one(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind == Kind::kBinary) sum_off_by_one(p, name, i);
    if ((e.kind != Kind::kName && e.kind != Kind::kMember) || p.is_callee(i) || p.is_target(i))
      continue;
    if (e.parent >= 0 && p.at(e.parent).kind == Kind::kMember) continue;
    if (!p.is_integer_value(i)) continue;
    // Beside a sum nothing binds stronger.
    const bool bare =
        e.parent < 0 || p.at(e.parent).kind == Kind::kIndex || p.at(e.parent).kind == Kind::kCall ||
        p.at(e.parent).kind == Kind::kAssignment || p.at(e.parent).kind == Kind::kParenthesis;
    for (const char* const step : {" + 1", " - 1"}) {
      const std::string text = p.words(e) + step;
      p.replace(name, e.constant || p.in_index(i) ? 0 : 1, i, bare ? text : "(" + text + ")");
    }
    p.replace("factor of 2", 1, i, bare ? p.words(e) + " * 2" : "(" + p.words(e) + " * 2)");
    p.replace("factor of 2", 1, i, bare ? p.words(e) + " / 2" : "(" + p.words(e) + " / 2)");
  }
}

// b.z: a.z, with each a of b's type.
std::vector<std::string> other_members(const Proposals& p, const Expression& e) {
  std::vector<std::string> found;
  if (e.kind != Kind::kMember || e.op != e.begin + 2) return found;
  const Variable* const object = p.variable(p.code().token(e.begin).text, e.begin);
  if (object == nullptr) return found;
  for (const Variable* other : p.visible(e.begin))
    if (other != object && other->type == object->type)
      found.push_back(other->name + p.code().words(e.begin + 1, e.end));
  return found;
}

// p: p * alpha, p / l, with each real number at hand.
void missing_factor(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    const bool value = e.kind == Kind::kName || e.kind == Kind::kIndex || e.kind == Kind::kMember ||
                       e.kind == Kind::kCall || e.kind == Kind::kParenthesis;
    if (!value || e.constant || p.is_callee(i) || p.is_target(i) || !p.is_real_value(i)) continue;
    if (e.kind == Kind::kName && p.variable(p.words(e), e.begin) == nullptr) continue;
    const std::string text = p.words(e);
    const bool divisor = e.parent >= 0 && p.at(e.parent).kind == Kind::kBinary &&
                         p.op(p.at(e.parent)) == "/" && p.at(e.parent).parts.back() == i;
    for (const Variable* v : p.visible(e.begin)) {
      if (!is_real(v->type) || v->name == text) continue;
      const std::string product = text + " * " + v->name, quotient = text + " / " + v->name;
      p.replace(name, 1, i, divisor ? "(" + product + ")" : product);
      p.replace(name, 2, i, divisor ? "(" + quotient + ")" : quotient);
    }
    for (const std::string& factor : other_members(p, e))
      p.replace(
          name, 1, i,
          divisor ? fmt::format("({} * {})", text, factor) : fmt::format("{} * {}", text, factor));
    p.replace("sign", 1, i, divisor || e.parent >= 0 ? "(-" + text + ")" : "-" + text);
  }
}

// i: i + j, i * n.
void missing_term(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    const bool value = e.kind == Kind::kName || e.kind == Kind::kMember;
    if (!value || e.constant || p.is_callee(i) || p.is_target(i) || !p.is_integer_value(i))
      continue;
    if (e.parent >= 0 && p.at(e.parent).kind == Kind::kMember) continue;
    const std::string text = p.words(e);
    for (const Variable* v : p.visible(e.begin)) {
      if (!is_count(v->type) || v->name == text) continue;
      p.replace(name, 2, i, text + " * " + v->name);
      p.replace(name, 2, i, "(" + text + " + " + v->name + ")");
      p.replace(name, 2, i, "(" + text + " - " + v->name + ")");
    }
  }
}

// threadIdx.x: threadIdx.y, blockIdx.x; v.x: v.y; a.rows: a.keys.
void other_member(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kMember || p.is_callee(i)) continue;
    const std::string_view field = p.code().token(e.op).text, object = p.code().token(e.begin).text;
    const bool built_in = object == "threadIdx" || object == "blockIdx" || object == "blockDim" ||
                          object == "gridDim";
    // What has elements is a fragment's.
    const bool indexed =
        e.parent >= 0 && p.at(e.parent).kind == Kind::kIndex && p.at(e.parent).parts[0] == i;
    if (!indexed && (field == "x" || field == "y" || field == "z" || field == "w"))
      for (const char* const other : {"x", "y", "z", "w"})
        if (field != other && !(built_in && *other == 'w'))
          p.replace(name, 0, i, e.op, e.op + 1, other);
    if (built_in && e.op == e.begin + 2)
      for (const char* const other : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
        if (object != other) p.replace(name, 0, i, e.begin, e.begin + 1, other);
    if (e.parts.empty()) continue;
    std::string of = p.type(e.parts[0]);
    while (of.ends_with("*")) of.pop_back();
    const Record* record = p.program().record(of);
    if (record == nullptr) continue;
    const std::string type = p.type(i);
    for (const Variable& other : record->fields)
      if (other.name != field && same_kind(other.type, type))
        p.replace(name, 0, i, e.op, e.op + 1, other.name);
  }
}

constexpr Operation kValueOperations[] = {
    {"integer", other_integer},         {"real number", other_real},
    {"infinity", other_infinity},       {"name", other_name},
    {"member", other_member},           {"off by one", off_by_one},
    {"missing factor", missing_factor}, {"missing term", missing_term},
};

}  // namespace

std::span<const Operation> value_operations() { return kValueOperations; }

}  // namespace attn_diag::repair
