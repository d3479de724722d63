// Launches, constants, structures, aliases and instances of a source.
#include <algorithm>

#include "harness/toolchain/adapt/model.h"

namespace attn_diag::adapt {
namespace {

using source::Syntax;
using source::TokenKind;

// "ns::kernel<T, 64>" -> "kernel".
std::string last_name(const std::string& callee) {
  std::string name = callee.substr(0, callee.find('<'));
  const std::size_t colons = name.rfind("::");
  if (colons != std::string::npos) name = name.substr(colons + 2);
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name;
}

std::vector<std::string> template_arguments(const std::string& callee) {
  const std::size_t open = callee.find('<'), close = callee.rfind('>');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return Model::split_text(callee.substr(open + 1, close - open - 1));
}

// The first token of "ns::kernel<T>" that ends before `end`.
std::size_t callee_begin(const Syntax& s, std::size_t end) {
  std::size_t i = end;
  if (i > 0 && s.is(i - 1, ">")) {
    i = s.open_angle(i - 1);
    if (i == s.size()) return end;
  }
  if (i == 0 || !s[i - 1].is_identifier()) return end;
  --i;
  while (i >= 2 && s.is(i - 1, "::") && s[i - 2].is_identifier()) i -= 2;
  return i;
}

// The ">>>" behind a "<<<": the first of three ">" before "(".
std::size_t configuration_end(const Syntax& s, std::size_t open) {
  for (std::size_t i = open + 1; i + 3 < s.size(); ++i) {
    if (s.is(i, "(") || s.is(i, "[") || s.is(i, "{")) i = s.match(i);
    if (s.is(i, ";")) break;
    if (s.is(i, ">") && s.is(i + 1, ">") && s.is(i + 2, ">") && s.is(i + 3, "(")) return i;
  }
  return s.size();
}

}  // namespace

// What the addresses in "void* args[] = {&q, &k}" are of, for the name of the array.
std::vector<std::string> Model::addressed(const FunctionModel& f, const std::string& name) const {
  const Syntax& s = *x_syntax;
  std::vector<std::string> out;
  for (std::size_t i = f.open; i + 4 < f.close && out.empty(); ++i) {
    if (!s[i].is(name) || !s.is(i + 1, "[")) continue;
    const std::size_t open = s.match(i + 1) + 2;
    if (!s.is(open - 1, "=") || !s.is(open, "{")) continue;
    for (const std::string& part : split(open + 1, s.match(open))) {
      const std::size_t at = part.rfind('&');
      out.push_back(at == std::string::npos ? part : part.substr(at + 1));
    }
  }
  return out;
}

void Model::add_launches(FunctionModel& f) {
  const Syntax& s = *x_syntax;
  for (std::size_t i = f.open; i < f.close; ++i) {
    if (s[i].is_identifier() && s.is(i + 1, "(")) f.calls.insert(std::string(s[i].text));
    if (s[i].is_identifier() && s.is(i + 1, "<")) {
      const std::size_t close = s.close_angle(i + 1);
      if (close < s.size() && s.is(close + 1, "(")) f.calls.insert(std::string(s[i].text));
    }
    Launch launch;
    launch.at = i;
    launch.line = s.line(i);
    if (s.is(i, "<<<")) {
      const std::size_t begin = callee_begin(s, i), close = configuration_end(s, i);
      if (begin == i || close == s.size()) continue;
      launch.callee = text(begin, i);
      const std::vector<std::string> values = split(i + 1, close);
      if (values.size() < 2) continue;
      launch.grid = values[0];
      launch.block = values[1];
      if (values.size() > 2) launch.shared = values[2];
      launch.arguments = split(close + 4, s.match(close + 3));
    } else if ((s.is(i, "cudaLaunchKernel") || s.is(i, "cudaLaunchCooperativeKernel") ||
                s.is(i, "cudaLaunchKernelEx") || s.is(i, "cudaLaunchKernelExC")) &&
               s.is(i + 1, "(")) {
      const std::vector<std::string> values = split(i + 2, s.match(i + 1));
      const bool has_config = s[i].text.find("Ex") != std::string_view::npos;
      if (values.size() < 2) continue;
      launch.callee = values[has_config ? 1 : 0];
      const std::size_t cast = launch.callee.rfind(')');  // (void*)kernel
      if (cast != std::string::npos) launch.callee = launch.callee.substr(cast + 1);
      if (!has_config && values.size() > 2) {
        launch.grid = values[1];
        launch.block = values[2];
      }
      if (!has_config && values.size() > 4) {
        launch.arguments = addressed(f, values[3]);
        if (values[4] != "0") launch.shared = values[4];
      }
    } else {
      continue;
    }
    launch.kernel = last_name(launch.callee);
    launch.templates = template_arguments(launch.callee);
    f.calls.insert(launch.kernel);
    f.launches.push_back(std::move(launch));
  }
}

// A log-sum-exp by what is stored, whatever its name: lse[i] = m + logf(l). Then what is passed for it.
void Model::add_stored_logs() {
  const Syntax& s = *x_syntax;
  static const std::set<std::string_view> logs = {"log",  "logf",  "__logf",
                                                  "log2", "log2f", "__log2f"};
  // In a function about splits it is not that of the whole row.
  const auto splits = [&](const FunctionModel& f) {
    for (std::size_t i = f.name_at; i < f.close; ++i)
      for (const char* word : {"split", "Split", "SPLIT", "chunk", "Chunk", "partial"})
        if (s[i].text.find(word) != std::string_view::npos) return true;
    return false;
  };
  for (FunctionModel& f : x_functions)
    for (Parameter& p : f.parameters) {
      if (splits(f) || !f.is_kernel || !p.is_pointer || p.is_const || p.element != "float")
        continue;
      for (std::size_t i = f.open; i < f.close && !p.holds_lse; ++i) {
        if (!s[i].is(p.name) || !s.is(i + 1, "[")) continue;
        std::size_t at = s.match(i + 1) + 1;
        bool sum = false, log = false;
        for (const std::size_t end = s.statement_end(i); at < end; ++at) {
          sum |= s.is(at, "+") || s.is(at, "-");
          log |= logs.count(s[at].text) > 0;
        }
        p.holds_lse = s.is(s.match(i + 1) + 1, "=") && sum && log;
      }
    }
  const auto first_name = [](const std::string& argument) {
    std::size_t i = 0, end = 0;
    while (i < argument.size() && std::isalpha(static_cast<unsigned char>(argument[i])) == 0 &&
           argument[i] != '_')
      ++i;
    for (end = i;
         end < argument.size() &&
         (std::isalnum(static_cast<unsigned char>(argument[end])) != 0 || argument[end] == '_');)
      ++end;
    return argument.substr(i, end - i);
  };
  bool grew = true;
  const auto pass = [&](FunctionModel& f, const FunctionModel& to,
                        const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < arguments.size() && i < to.parameters.size(); ++i) {
      if (!to.parameters[i].holds_lse) continue;
      const std::string name = first_name(arguments[i]);
      grew |= f.lse_names.insert(name).second;
      for (Parameter& p : f.parameters) p.holds_lse |= p.name == name && !p.is_const;
    }
  };
  while (grew) {
    grew = false;
    for (FunctionModel& f : x_functions) {
      if (f.is_kernel || f.is_device) continue;
      for (const Launch& launch : f.launches)
        if (const FunctionModel* kernel = function(launch.kernel))
          pass(f, *kernel, launch.arguments);
      for (std::size_t i = f.open; i < f.close; ++i) {
        if (!s[i].is_identifier() || f.calls.count(std::string(s[i].text)) == 0) continue;
        const FunctionModel* other = function(std::string(s[i].text));
        if (other == nullptr || other->is_kernel || other == &f) continue;
        std::size_t open = i + 1;
        if (s.is(open, "<")) open = std::min(s.close_angle(open) + 1, f.close);
        if (s.is(open, "(")) pass(f, *other, split(open + 1, s.match(open)));
      }
    }
  }
}

void Model::add_constants() {
  const Syntax& s = *x_syntax;
  const auto add = [&](const std::string& name, const std::string& text) {
    if (x_constants.emplace(name, text).second) x_constant_names.push_back(name);
  };
  for (const auto& [name, text] : x_code->macros)
    if (!text.empty()) add(name, text);
  for (std::size_t i = 0; i + 3 < s.size(); ++i) {
    // [static] constexpr int a = 1, b = 2; const int c = 3;
    if ((s.is(i, "constexpr") || s.is(i, "const")) && s[i + 1].is_identifier()) {
      std::size_t j = i + 1;
      while (s[j].is_identifier() && !s.is(j + 1, "=")) ++j;
      while (j + 2 < s.size() && s[j].is_identifier() && s.is(j + 1, "=")) {
        std::size_t end = j + 2;
        while (end < s.size() && !s.is(end, ";") && !s.is(end, ",")) {
          if (s.is(end, "(") || s.is(end, "{") || s.is(end, "[")) end = s.match(end);
          if (s.is(end, ")") || s.is(end, "}")) {
            ++end;
            continue;
          }
          ++end;
        }
        add(std::string(s[j].text), text(j + 2, end));
        j = end + 1;
        if (!s.is(end, ",")) break;
      }
    } else if (s.is(i, "enum")) {
      std::size_t open = i;
      while (open < s.size() && !s.is(open, "{") && !s.is(open, ";")) ++open;
      if (!s.is(open, "{")) continue;
      for (std::size_t j = open + 1; j < s.match(open); ++j)
        if (s[j].is_identifier() && s.is(j + 1, "=")) {
          std::size_t end = j + 2;
          while (end < s.match(open) && !s.is(end, ",")) ++end;
          add(std::string(s[j].text), text(j + 2, end));
          j = end;
        }
    }
  }
}

void Model::add_structures() {
  const Syntax& s = *x_syntax;
  for (std::size_t i = 0; i + 2 < s.size(); ++i) {
    const bool is_enum = i > 0 && s.is(i - 1, "enum");
    if ((!s.is(i, "struct") && !s.is(i, "class")) || is_enum) continue;
    std::size_t j = i + 1;
    while (j < s.size() && (s.is(j, "__align__") || s.is(j, "alignas")) && s.is(j + 1, "("))
      j = s.match(j + 1) + 1;
    StructModel out;
    bool in_class = false;
    out.scope = scope_of(i, in_class);
    out.is_template = i > 0 && s.is(i - 1, ">");
    const std::size_t statement = s.statement_begin(i);
    if (out.is_template && s.is(statement, "template") && s.is(statement + 1, "<"))
      out.templates = template_parameters(statement + 1);
    if (s[j].is_identifier()) out.name = std::string(s[j++].text);
    // typedef struct {...} Name;
    if (i > 0 && s.is(i - 1, "typedef") && s.is(j, "{") && s[s.match(j) + 1].is_identifier())
      out.name = std::string(s[s.match(j) + 1].text);
    if (out.name.empty()) continue;
    for (; j < s.size() && !s.is(j, "{") && !s.is(j, ";") && !s.is(j, "("); ++j)
      if (s[j].is_identifier() && !s.is(j, "public") && !s.is(j, "final"))
        out.bases.emplace_back(s[j].text);
    if (!s.is(j, "{")) continue;
    const std::size_t close = s.match(j);
    for (std::size_t begin = j + 1; begin < close;) {
      std::size_t end = begin;
      bool is_data = true;
      while (end < close && !s.is(end, ";")) {
        if (s.is(end, "(")) is_data = false;
        if (s.is(end, "{")) {
          end = s.match(end);
          if (!is_data) break;  // a member function's body
        } else if (s.is(end, "(") || s.is(end, "[")) {
          end = s.match(end);
        }
        ++end;
      }
      while (begin + 1 < end && s.is(begin + 1, ":") &&
             (s.is(begin, "public") || s.is(begin, "private")))
        begin += 2;
      std::size_t at = begin;
      while (at < end && s[at].is_any({"explicit", "inline", "constexpr", "__host__"})) ++at;
      if (!is_data && s.is(at, out.name) && s.is(at + 1, "(") && !out.constructor) {
        const std::vector<std::string> given = split(at + 2, s.match(at + 1));
        // A copy constructor does not make the object of sizes.
        if (given.empty() || given.front().find(out.name) == std::string::npos) {
          out.constructor.emplace();
          for (const std::string& text : given)
            if (text != "void") out.constructor->push_back(parse_parameter(text));
        }
      }
      const bool is_other = s.is(begin, "static") || s.is(begin, "using") ||
                            s.is(begin, "typedef") || s.is(begin, "template") ||
                            s.is(begin, "struct") || s.is(begin, "enum");
      if (is_data && !is_other && begin < end) {
        // "int b, h, d;" and "half *q, *k;" declare several.
        const std::vector<std::string> parts = split(begin, end);
        Parameter first = parse_parameter(parts.front());
        if (!first.name.empty()) out.members.push_back(first);
        for (std::size_t k = 1; k < parts.size(); ++k) {
          const bool pointer = parts[k].find('*') != std::string::npos;
          Parameter next = parse_parameter(first.element + (pointer ? " " : " ") + parts[k]);
          next.is_const = first.is_const;
          if (!next.name.empty()) out.members.push_back(next);
        }
      }
      begin = end + 1;
    }
    x_structures.emplace(out.name, std::move(out));
  }
}

void Model::add_aliases() {
  const Syntax& s = *x_syntax;
  for (std::size_t i = 0; i + 3 < s.size(); ++i) {
    if (s.is(i, "using") && s[i + 1].is_identifier() && s.is(i + 2, "=")) {
      const std::size_t end = s.statement_end(i);
      x_aliases.emplace(std::string(s[i + 1].text), text(i + 3, end));
    } else if (s.is(i, "typedef")) {
      const std::size_t end = s.statement_end(i);
      if (end < s.size() && s.is(end, ";") && end > i + 2)
        x_aliases.emplace(std::string(s[end - 1].text), text(i + 1, end - 1));
    }
  }
}

std::vector<std::vector<std::string>> Model::instances(const std::string& name) const {
  const Syntax& s = *x_syntax;
  std::vector<std::vector<std::string>> out;
  for (std::size_t i = 0; i + 1 < s.size(); ++i) {
    if (!s[i].is(name) || !s.is(i + 1, "<")) continue;
    const std::size_t close = s.close_angle(i + 1);
    if (close == s.size()) continue;
    const std::vector<std::string> arguments = split(i + 2, close);
    if (std::find(out.begin(), out.end(), arguments) == out.end()) out.push_back(arguments);
  }
  return out;
}

}  // namespace attn_diag::adapt
