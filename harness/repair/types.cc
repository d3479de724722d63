#include "harness/repair/types.h"

#include <algorithm>
#include <array>

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;

constexpr std::array<std::string_view, 18> kRealCalls = {
    "__expf",  "expf",      "exp2f", "__logf",           "logf",        "log2f",
    "__log2f", "fmaxf",     "fminf", "__half2float",     "sqrtf",       "rsqrtf",
    "fmaf",    "__fmaf_rn", "fabsf", "__bfloat162float", "__low2float", "__high2float"};

bool is_vector_member(std::string_view name) {
  return name == "x" || name == "y" || name == "z" || name == "w";
}

// "float" of "float[]", "float*".
std::string element_of(std::string type) {
  if (type.ends_with("[]"))
    type.resize(type.size() - 2);
  else if (type.ends_with("*"))
    type.pop_back();
  else
    return "";
  // "float[][]" loses its first extent, and "float*[]" holds pointers: the suffix is cut either way.
  return type;
}

bool is_real_number(std::string_view number) {
  const bool hex = number.starts_with("0x") || number.starts_with("0X");
  return !hex && (number.find('.') != number.npos || number.find('e') != number.npos ||
                  number.find('E') != number.npos || number.ends_with("f"));
}

class Types {
 public:
  Types(const Program& program, const Code& code, const DeviceFunction& function)
      : x_program(program), x_code(code), x_function(function) {}

  std::string of(int expression) const;

 private:
  const Expression& at(int expression) const {
    return x_function.expressions[static_cast<std::size_t>(expression)];
  }
  std::string part(const Expression& e, std::size_t i) const {
    return i < e.parts.size() ? of(e.parts[i]) : "";
  }
  std::string of_name(const Expression& e) const;
  std::string of_member(const Expression& e) const;
  std::string of_binary(const Expression& e) const;
  std::string of_call(const Expression& e) const;
  std::string returned_by(std::string_view function) const;

  const Program& x_program;
  const Code& x_code;
  const DeviceFunction& x_function;
};

std::string Types::of_name(const Expression& e) const {
  const Variable* v = variable_at(x_function, x_code.token(e.begin).text, e.begin);
  if (v != nullptr && e.end == e.begin + 1) return v->type;
  const std::string_view text = x_code.token(e.end - 1).text;
  if (text == "INFINITY" || text == "FLT_MAX" || text.starts_with("M_")) return "float";
  if (text == "warpSize") return "int";
  return "";
}

std::string Types::of_member(const Expression& e) const {
  const std::string_view name = x_code.token(e.op).text;
  const std::string_view object = x_code.token(e.begin).text;
  if (object == "threadIdx" || object == "blockIdx" || object == "blockDim" || object == "gridDim")
    return "int";
  std::string record = part(e, 0);
  while (record.ends_with("*")) record.pop_back();
  if (is_vector_member(name) && record.starts_with("float")) return "float";
  if (is_vector_member(name) && (record.starts_with("int") || record.starts_with("uint")))
    return "int";
  if (const Record* known = x_program.record(record))
    for (const Variable& field : known->fields)
      if (field.name == name) return field.type;
  return "";
}

std::string Types::of_binary(const Expression& e) const {
  const std::string_view o = operator_of(x_code, e);
  if (is_relation(o) || o == "&&" || o == "||") return "bool";
  const std::string left = part(e, 0), right = part(e, 1);
  if (left.ends_with("*") || left.ends_with("]")) return left;
  if (is_real(left) || is_real(right)) return "float";
  if (is_integer(left) && is_integer(right)) return "int";
  return left == right ? left : "";
}

// What a device function of the user's returns, where all of that name return the same.
std::string Types::returned_by(std::string_view function) const {
  std::string type;
  for (const auto& file : x_program.files)
    for (const DeviceFunction& f : file->functions) {
      if (f.name != function) continue;
      if (f.returns.empty() || (!type.empty() && type != f.returns)) return "";
      type = f.returns;
    }
  return is_integer(type) || is_real(type) ? type : "";
}

std::string Types::of_call(const Expression& e) const {
  if (e.parts.empty()) return "";
  const Expression& callee = at(e.parts[0]);
  const std::string name = x_code.words(callee.begin, callee.end);
  if (std::find(kRealCalls.begin(), kRealCalls.end(), name) != kRealCalls.end()) return "float";
  if (name == "min" || name == "max") return part(e, 1);
  if (name.starts_with("__shfl_")) return part(e, 2);
  if (name == "__ldg") return element_of(part(e, 1));
  if (name.starts_with("static_cast<")) return name.substr(12, name.size() - 13);
  if (name == "int" || name == "float") return name;
  // ns::f<4>(x)
  std::size_t last = callee.begin;
  for (std::size_t i = callee.begin; i < callee.end && !x_code.token(i).is("<"); ++i)
    if (x_code.token(i).is_identifier()) last = i;
  return returned_by(x_code.token(last).text);
}

std::string Types::of(int expression) const {
  if (expression < 0) return "";
  const Expression& e = at(expression);
  switch (e.kind) {
    case Kind::kName:
      return of_name(e);
    case Kind::kNumber:
      return is_real_number(x_code.token(e.begin).text) ? "float" : "int";
    case Kind::kParenthesis:
    case Kind::kPostfix:
      return e.parts.size() == 1 ? part(e, 0) : "";
    case Kind::kPrefix: {
      const std::string_view o = operator_of(x_code, e);
      if (o == "!") return "bool";
      if (o == "*") return element_of(part(e, 0));
      if (o == "&") return part(e, 0).empty() ? "" : part(e, 0) + "*";
      return part(e, 0);
    }
    case Kind::kCast: {
      const std::size_t close = x_code.syntax->match(e.begin);
      return close < e.end ? x_code.words(e.begin + 1, close) : "";
    }
    case Kind::kIndex:
      return element_of(part(e, 0));
    case Kind::kMember:
      return of_member(e);
    case Kind::kBinary:
      return of_binary(e);
    case Kind::kAssignment:
      return part(e, 0);
    case Kind::kConditional:
      return part(e, 1).empty() ? part(e, 2) : part(e, 1);
    case Kind::kCall:
      return of_call(e);
    default:
      return "";
  }
}

}  // namespace

std::string_view operator_of(const Code& code, const Expression& e) {
  const Token& t = code.token(e.op);
  if (t.is(">") && code.token(e.op + 1).begin == t.end) {
    if (code.token(e.op + 1).is(">")) return ">>";
    if (code.token(e.op + 1).is(">=")) return ">>=";
  }
  return t.text;
}

const Variable* variable_at(const DeviceFunction& function, std::string_view name,
                            std::size_t token) {
  const Variable* found = nullptr;
  for (const Variable& v : function.variables)
    if (v.name == name && v.from <= token && token < v.to)
      if (found == nullptr || v.from >= found->from) found = &v;
  return found;
}

bool is_pointer_or_array(std::string_view type) {
  return type.ends_with("*") || type.ends_with("[]");
}

bool is_relation(std::string_view op) {
  return op == "<" || op == ">" || op == "<=" || op == ">=" || op == "==" || op == "!=";
}

std::string without_extents(std::string type) {
  while (type.ends_with("[]")) type.resize(type.size() - 2);
  return type;
}

std::string type_of(const Program& program, const Code& code, const DeviceFunction& function,
                    int expression) {
  return Types(program, code, function).of(expression);
}

void deduce_types(Program& program) {
  for (const auto& code : program.files)
    for (DeviceFunction& function : code->functions)
      for (Variable& v : function.variables) {
        if ((v.type != "auto" && v.type != "auto*") || v.initialiser < 0) continue;
        std::string type = type_of(program, *code, function, v.initialiser);
        // An array is handed on as the address of its first element.
        if (type.ends_with("[]")) type = element_of(type) + "*";
        if (!type.empty() && (v.type == "auto" || type.ends_with("*"))) v.type = type;
      }
}

}  // namespace attn_diag::repair
