#include "harness/toolchain/adapt/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "attn_diag/harness/error.h"
#include "harness/toolchain/adapt/macros.h"
#include "harness/toolchain/source/source_error.h"

namespace attn_diag::adapt {
namespace {

namespace fs = std::filesystem;
using source::Token;
using source::TokenKind;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!fs::is_regular_file(path) || !(text << file.rdbuf()))
    throw Error(fmt::format("The source {} cannot be read.", path.string()));
  return std::move(text).str();
}

std::optional<std::int64_t> macro_value(const std::string& name, const void* context);

// "# define X 3" -> "define", "X 3", without comments and line splices.
struct Directive {
  std::string word, rest;
};
Directive parse_directive(std::string_view text) {
  std::string line;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '\n' || text[i + 1] == '\r')) {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      break;
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t end = text.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = end + 1;
      line += ' ';
    } else {
      line += text[i];
    }
  }
  std::istringstream words(line);
  Directive out;
  words >> out.word;
  std::getline(words >> std::ws, out.rest);
  while (!out.rest.empty() && std::isspace(static_cast<unsigned char>(out.rest.back())) != 0)
    out.rest.pop_back();
  return out;
}

class Reader {
 public:
  Code read(const fs::path& source) {
    add_file(source);
    return std::move(x_code);
  }

 private:
  void add_file(const fs::path& path) {
    if (!x_seen.insert(whole_path(path).string()).second) return;
    x_code.texts.push_back(read_text(path));
    source::TokenList own;
    try {
      own = source::tokenize(x_code.texts.back(), path.string());
    } catch (const source::SourceError& e) {
      throw Error(fmt::format("{}:{}: {}", e.where().file, e.where().line, e.what()));
    }
    // Places count on from file to file, so that what stands apart in them stands apart in all.
    const std::size_t offset = x_offset;
    x_offset += x_code.texts.back().size() + 1;
    const auto file = static_cast<std::uint32_t>(x_code.list.files.size());
    x_code.list.files.insert(x_code.list.files.end(), own.files.begin(), own.files.end());
    const std::size_t depth = x_taking.size();
    for (Token& token : own.tokens) {
      token.begin += offset;
      token.end += offset;
      token.file += file;
    }
    for (std::size_t i = 0; i < own.tokens.size();) {
      const Token& token = own.tokens[i];
      if (token.kind == TokenKind::kDirective) {
        obey(parse_directive(token.text), path);
      } else if (taking() && x_launching.begins_at(own.tokens, i)) {
        std::vector<Token> expanded = x_launching.expand(own.tokens, i, x_code.texts);
        for (Token& one : expanded) {
          one.begin += x_offset;
          one.end += x_offset;
          x_code.list.tokens.push_back(one);
        }
        if (!expanded.empty()) {
          x_offset = expanded.back().end + 1;
          continue;
        }
      } else if (taking()) {
        x_code.list.tokens.push_back(token);
      }
      ++i;
    }
    x_taking.resize(depth);
  }

  bool taking() const { return x_taking.empty() || x_taking.back() == Branch::kTaken; }

  void obey(const Directive& d, const fs::path& path) {
    if (d.word == "if" || d.word == "ifdef" || d.word == "ifndef") {
      if (!taking()) return x_taking.push_back(Branch::kDone);
      const bool holds = d.word == "if"      ? condition(d.rest)
                         : d.word == "ifdef" ? defined(d.rest)
                                             : !defined(d.rest);
      x_taking.push_back(holds ? Branch::kTaken : Branch::kWaiting);
    } else if (d.word == "elif" || d.word == "else") {
      if (x_taking.empty()) return;
      Branch& branch = x_taking.back();
      if (branch == Branch::kTaken)
        branch = Branch::kDone;
      else if (branch == Branch::kWaiting && (d.word == "else" || condition(d.rest)))
        branch = Branch::kTaken;
    } else if (d.word == "endif") {
      if (!x_taking.empty()) x_taking.pop_back();
    } else if (taking() && d.word == "define") {
      const std::size_t end = d.rest.find_first_of(" \t(");
      const std::string name = d.rest.substr(0, end);
      if (end == std::string::npos)
        x_code.macros[name] = "";
      else if (d.rest[end] == '(')
        define_call(name, d.rest, end);
      else
        x_code.macros[name] = d.rest.substr(d.rest.find_first_not_of(" \t", end));
    } else if (taking() && d.word == "undef") {
      x_code.macros.erase(d.rest);
      x_launching.undefine(d.rest);
    } else if (taking() && d.word == "include") {
      x_code.includes.push_back(d.rest);
      if (d.rest.size() < 3 || d.rest.front() != '"') return;
      const fs::path beside = path.parent_path() / d.rest.substr(1, d.rest.size() - 2);
      if (fs::is_regular_file(beside))
        add_file(beside);
      else
        x_code.missing.push_back(d.rest.substr(1, d.rest.size() - 2));
    }
  }

  void define_call(const std::string& name, const std::string& rest, std::size_t open) {
    x_code.calls[name] = rest.substr(std::min(rest.find(')', open), rest.size() - 1) + 1);
    x_launching.define(name, rest);
  }

  bool defined(const std::string& name) const {
    static const std::set<std::string> given = {"__CUDACC__", "__NVCC__", "__CUDA_ARCH__",
                                                "__cplusplus", "__GNUC__"};
    return given.count(name) > 0 || x_code.macros.count(name) > 0;
  }

  // What cannot be decided is taken to hold.
  bool condition(const std::string& text) const {
    const std::size_t name = text.find("defined");
    if (name != std::string::npos && text.find("&&") == std::string::npos &&
        text.find("||") == std::string::npos) {
      std::string word;
      for (const char c : text.substr(name + 7))
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') word += c;
      return defined(word) == (text.find('!') == std::string::npos);
    }
    return evaluate(text, macro_value, &x_code).value_or(1) != 0;
  }

  enum class Branch { kTaken, kWaiting, kDone };  // waiting: no branch was taken yet

  Code x_code;
  LaunchMacros x_launching;
  std::set<std::string> x_seen;
  std::vector<Branch> x_taking;
  std::size_t x_offset = 0;
};

std::optional<std::int64_t> macro_value(const std::string& name, const void* context) {
  const Code& code = *static_cast<const Code*>(context);
  const auto found = code.macros.find(name);
  if (found == code.macros.end() || found->second == name) return std::nullopt;
  return evaluate(found->second, macro_value, context);
}

}  // namespace

fs::path whole_path(const fs::path& path) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(path, error);
  return error ? fs::absolute(path) : whole;
}

Code read_code(const fs::path& source) { return Reader().read(source); }

}  // namespace attn_diag::adapt
