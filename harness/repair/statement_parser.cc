// Statements and declarations.
#include <utility>

#include "harness/repair/parser.h"

namespace attn_diag::repair {

using source::Syntax;

void Parser::declare(std::string_view name, std::string type, std::size_t from, std::size_t to,
                     std::size_t token, int statement) {
  Variable v;
  v.name = name;
  v.type = std::move(type);
  v.from = from;
  v.to = to;
  v.declared = token;
  v.statement = statement;
  x_function.variables.push_back(std::move(v));
}

void Parser::parameters(std::size_t open) {
  const auto variable = [&](std::string_view) { return false; };
  for (const Range& part : divided(x_syntax, open + 1, x_syntax.match(open))) {
    const std::optional<DeclaredType> type =
        declared_type(x_syntax, part.begin, part.end, variable);
    if (!type) continue;
    for (const Declarator& d : declarators(x_syntax, type->end, part.end)) {
      declare(x_syntax[d.name].text, type->type + d.type_suffix, x_function.open, x_function.close,
              d.name, -1);
      x_function.variables.back().is_const = type->is_const && d.type_suffix.empty();
      x_function.variables.back().const_elements = type->is_const;
    }
  }
}

void Parser::template_parameters(std::size_t open) {
  const std::size_t close = x_syntax.close_angle(open);
  if (close >= x_syntax.size()) return;
  const auto variable = [&](std::string_view) { return false; };
  for (const Range& part : divided(x_syntax, open + 1, close)) {
    if (x_syntax[part.begin].is_any({"typename", "class", "template"})) continue;
    const std::optional<DeclaredType> type =
        declared_type(x_syntax, part.begin, part.end, variable);
    if (!type) continue;
    for (const Declarator& d : declarators(x_syntax, type->end, part.end)) {
      declare(x_syntax[d.name].text, type->type, x_function.open, x_function.close, d.name, -1);
      x_function.variables.back().constant = true;
    }
  }
}

void Parser::body(std::size_t open) { block(open, -1); }

int Parser::add_statement(StatementKind kind, std::size_t begin, int parent, bool in_block) {
  Statement statement;
  statement.kind = kind;
  statement.begin = begin;
  statement.parent = parent;
  statement.in_block = in_block;
  x_function.statements.push_back(std::move(statement));
  return static_cast<int>(x_function.statements.size()) - 1;
}

void Parser::block(std::size_t open, int parent) {
  const std::size_t close = x_syntax.match(open);
  const int self = add_statement(StatementKind::kBlock, open, parent, false);
  x_function.statements[static_cast<std::size_t>(self)].end = close + 1;
  for (std::size_t i = open + 1; i < close;) {
    const std::size_t next = statement(i, close, self, true);
    i = next > i ? next : i + 1;
  }
}

std::size_t Parser::semicolon(std::size_t at, std::size_t end) const {
  for (; at < end; ++at) {
    if (x_syntax.is(at, ";")) return at;
    if (x_syntax[at].is_any({"(", "[", "{"})) at = x_syntax.match(at);
    if (x_syntax.is(at, "}") && at >= end) return end;
  }
  return end;
}

// The outermost part behind ( of if, while, for.
std::size_t Parser::branch(std::size_t at, std::size_t end, int self) {
  std::size_t i = at + 1;
  const bool constant = x_syntax.is(i, "constexpr");
  if (constant) ++i;
  if (!x_syntax.is(i, "(")) return i;
  const std::size_t close = x_syntax.match(i);
  const bool outer = std::exchange(x_constant, constant || x_constant);
  // A condition may declare what it tests.
  const std::size_t semi = semicolon(i + 1, close);
  const int condition = expression({semi < close ? semi + 1 : i + 1, close}, self);
  x_constant = outer;
  if (condition >= 0 && !constant)
    x_function.statements[static_cast<std::size_t>(self)].conditions.push_back(condition);
  i = statement(close + 1, end, self, false);
  if (x_syntax.is(at, "if") && i < end && x_syntax.is(i, "else"))
    i = statement(i + 1, end, self, false);
  return i;
}

std::size_t Parser::loop(std::size_t at, std::size_t end, int self) {
  if (!x_syntax.is(at + 1, "(")) return at + 1;
  const std::size_t open = at + 1, close = x_syntax.match(open);
  const std::size_t first = semicolon(open + 1, close);
  // Where it ends is known when its body has been read; what it declares is used there.
  const std::size_t variables = x_function.variables.size();
  const auto known = [&](std::string_view name) { return is_variable(name); };
  if (first < close) {
    const std::size_t second = semicolon(first + 1, close);
    if (const auto type = declared_type(x_syntax, open + 1, first, known))
      declaration(*type, open + 1, first, self, end);
    else
      expression({open + 1, first}, self);
    const int condition = expression({first + 1, second}, self);
    if (condition >= 0)
      x_function.statements[static_cast<std::size_t>(self)].conditions.push_back(condition);
    if (second < close) expression({second + 1, close}, self);
  } else {
    // for (T x : range)
    std::size_t colon = open + 1;
    while (colon < close && !x_syntax.is(colon, ":")) ++colon;
    if (const auto type = declared_type(x_syntax, open + 1, colon + 1, known))
      declaration(*type, open + 1, colon, self, end);
    if (colon < close) expression({colon + 1, close}, self);
  }
  const std::size_t own = x_function.variables.size();
  const std::size_t body_end = statement(close + 1, end, self, false);
  for (std::size_t v = variables; v < own; ++v) x_function.variables[v].to = body_end;
  return body_end;
}

void Parser::declaration(const DeclaredType& type, std::size_t begin, std::size_t end, int self,
                         std::size_t scope_end) {
  const bool outer = x_constant;
  // Template arguments of the type itself.
  for (std::size_t i = begin; i < type.end; ++i)
    if (x_syntax.is(i, "<")) {
      const std::size_t close =
          template_end(x_syntax, i, [&](std::string_view n) { return is_variable(n); });
      if (close >= type.end) break;
      const int statement = std::exchange(x_statement, self);
      template_arguments(i, close);
      x_statement = statement;
      i = close;
    }
  if (x_syntax.is(type.end, "[")) {  // auto [a, b] = x
    const std::size_t close = x_syntax.match(type.end);
    for (std::size_t i = type.end + 1; i < close; ++i)
      if (x_syntax[i].is_identifier()) declare(x_syntax[i].text, "auto", end, scope_end, i, self);
    if (x_syntax.is(close + 1, "=")) expression({close + 2, end}, self);
    return;
  }
  for (const Declarator& d : declarators(x_syntax, type.end, end)) {
    x_constant = true;
    for (const Range& extent : d.extents) expression(extent, self);
    x_constant = outer || type.constant || type.shared;
    int initialiser = -1;
    if (d.initialiser.begin < d.initialiser.end) {
      const std::size_t i = d.initialiser.begin;
      if (x_syntax.is(i, "(") && x_syntax.match(i) + 1 == d.initialiser.end) {
        for (const Range& part : divided(x_syntax, i + 1, d.initialiser.end - 1))
          expression(part, self);
      } else {
        initialiser = expression(d.initialiser, self);
      }
    }
    x_constant = outer;
    declare(x_syntax[d.name].text, type.type + d.type_suffix,
            d.has_initialiser ? d.initialiser.end : d.name + 1, scope_end, d.name, self);
    x_function.variables.back().initialiser = initialiser;
    x_function.variables.back().constant = type.constant;
    x_function.variables.back().is_const =
        type.is_const && d.type_suffix.find('*') == d.type_suffix.npos;
    x_function.variables.back().const_elements = type.is_const;
    x_function.variables.back().initialised = d.has_initialiser || type.shared;
  }
}

// Operands that are read: asm("..." : outputs : inputs : clobbers).
void Parser::assembly(std::size_t begin, std::size_t end, int self) {
  std::size_t open = begin;
  while (open < end && !x_syntax.is(open, "(")) ++open;
  if (open >= end) return;
  int colons = 0;
  for (std::size_t i = open + 1; i < x_syntax.match(open); ++i) {
    if (x_syntax.is(i, ":")) ++colons;
    if (x_syntax.is(i, "::")) colons += 2;
    if (!x_syntax.is(i, "(")) continue;
    const std::size_t close = x_syntax.match(i);
    const bool constant = x_syntax[i - 1].text.find('n') != std::string_view::npos;
    if (colons == 2) {
      const bool outer = std::exchange(x_constant, x_constant || constant);
      expression({i + 1, close}, self);
      x_constant = outer;
    }
    i = close;
  }
}

std::size_t Parser::statement(std::size_t at, std::size_t end, int parent, bool in_block) {
  const Token& t = x_syntax[at];
  if (t.kind == source::TokenKind::kDirective || t.is(";") || t.is("else")) return at + 1;
  if (t.is("case") || t.is("default")) {
    while (at < end && !x_syntax.is(at, ":")) ++at;
    return at + 1;
  }
  if (t.is("[") && x_syntax.is(at + 1, "[")) return x_syntax.match(at) + 1;
  if (t.is_identifier() && x_syntax.is(at + 1, ":") && !x_syntax.is(at + 1, "::")) return at + 2;
  if (t.is("{")) {
    block(at, parent);
    return x_syntax.match(at) + 1;
  }
  if (++x_depth > 100) {
    --x_depth;
    return semicolon(at, end) + 1;
  }
  const auto done = [&](int self, std::size_t next) {
    x_function.statements[static_cast<std::size_t>(self)].end = std::min(next, end);
    --x_depth;
    return std::min(next, end);
  };
  if (t.is("if") || t.is("while") || t.is("switch")) {
    const StatementKind kind = t.is("if")      ? StatementKind::kIf
                               : t.is("while") ? StatementKind::kLoop
                                               : StatementKind::kOther;
    const int self = add_statement(kind, at, parent, in_block);
    return done(self, branch(at, end, self));
  }
  if (t.is("for")) {
    const int self = add_statement(StatementKind::kLoop, at, parent, in_block);
    return done(self, loop(at, end, self));
  }
  if (t.is("do")) {
    const int self = add_statement(StatementKind::kLoop, at, parent, in_block);
    std::size_t i = statement(at + 1, end, self, false);
    if (x_syntax.is(i, "while") && x_syntax.is(i + 1, "(")) {
      const int condition = expression({i + 2, x_syntax.match(i + 1)}, self);
      if (condition >= 0)
        x_function.statements[static_cast<std::size_t>(self)].conditions.push_back(condition);
      i = x_syntax.match(i + 1) + 2;
    }
    return done(self, i);
  }
  const std::size_t stop = semicolon(at, end);
  if (t.is_any({"using", "typedef", "static_assert", "goto", "struct", "class", "enum", "union",
                "template", "try"})) {
    const int self = add_statement(StatementKind::kOther, at, parent, in_block);
    return done(self, stop + 1);
  }
  if (t.is_any({"asm", "__asm__", "__asm"})) {
    const int self = add_statement(StatementKind::kOther, at, parent, in_block);
    assembly(at, stop, self);
    return done(self, stop + 1);
  }
  if (t.is("return") || t.is("break") || t.is("continue")) {
    const StatementKind kind = t.is("return") ? StatementKind::kReturn : StatementKind::kJump;
    const int self = add_statement(kind, at, parent, in_block);
    if (kind == StatementKind::kReturn) expression({at + 1, stop}, self);
    return done(self, stop + 1);
  }
  const auto known = [&](std::string_view name) { return is_variable(name); };
  if (const auto type = declared_type(x_syntax, at, stop + 1, known)) {
    const int self = add_statement(StatementKind::kDeclaration, at, parent, in_block);
    declaration(*type, at, stop, self, end);
    return done(self, stop + 1);
  }
  const int self = add_statement(StatementKind::kExpression, at, parent, in_block);
  expression({at, stop}, self);
  return done(self, stop + 1);
}

}  // namespace attn_diag::repair
