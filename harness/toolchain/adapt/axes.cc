#include "harness/toolchain/adapt/axes.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace attn_diag::adapt {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The last word of the code in the line before a comment; empty: there is none.
std::string name_before_comment(std::string_view text, std::size_t at) {
  while (at > 0 && std::string_view(" \t;,)=").find(text[at - 1]) != std::string_view::npos) --at;
  std::size_t begin = at;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return std::string(text.substr(begin, at - begin));
}

std::string comments_of_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      continue;
    }
    const bool line = text.substr(i, 2) == "//";
    if (!line && text.substr(i, 2) != "/*") continue;
    const std::size_t end = std::min(text.find(line ? "\n" : "*/", i + 2), text.size());
    std::size_t begin = i;
    while (begin < end && std::string_view("/*! \t<").find(text[begin]) != std::string_view::npos)
      ++begin;
    // "half* out;  // [batch, heads, dim]" is about `out`.
    if (begin < end && (text[begin] == '[' || text[begin] == '('))
      out += name_before_comment(text, i) + ' ';
    out += std::string(text.substr(begin, end - begin)) + '\n';
    i = end;
  }
  return out;
}

Role role_of(const std::string& name) {
  const Role role = classify_constant(name).role;
  return role == Role::kUnknown ? classify_constant(name + "s").role : role;
}

// Adds the axes that a word stands for; false if it stands for none.
bool add_axes(std::string name, std::vector<Role>& axes) {
  const bool number = name.find_first_not_of("0123456789") == std::string::npos;
  if (number && name == "3") return true;
  if (number) {
    axes.push_back(Role::kHeadDim);
    return !name.empty();
  }
  name = name.substr(name.find_first_not_of("0123456789"));  // "3C"
  const Role role = role_of(name);
  if (role == Role::kBatchHeads)
    axes.insert(axes.end(), {Role::kBatch, Role::kHeads});
  else if (role == Role::kTokens)
    axes.insert(axes.end(), {Role::kBatch, Role::kSeqlen});
  else if (role == Role::kHidden)
    axes.insert(axes.end(), {Role::kHeads, Role::kHeadDim});
  else
    axes.push_back(role);
  return true;
}

// The word before a place, over blanks and what stands between a name and its shape.
std::string name_before(std::string_view text, std::size_t at) {
  static const std::set<std::string_view> fillers = {
      "is", "are", "has", "of", "as", "shape", "stored", "tensor", "layout", "cache"};
  for (;;) {
    while (at > 0 && std::string_view(" :=\t").find(text[at - 1]) != std::string_view::npos) --at;
    std::size_t begin = at;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    const std::string_view word = text.substr(begin, at - begin);
    if (fillers.count(word) == 0) return std::string(word);
    at = begin;
  }
}

// With two lengths and no heads ("n_q" and "s"), "n_q" is a number of heads.
std::vector<Role> with_heads(std::vector<Role> axes) {
  const auto has = [&](Role role) {
    return std::find(axes.begin(), axes.end(), role) != axes.end();
  };
  if (has(Role::kSeqlen) && has(Role::kSeqlenQ) && !has(Role::kHeads) && !has(Role::kKvHeads))
    std::replace(axes.begin(), axes.end(), Role::kSeqlenQ, Role::kHeads);
  return axes;
}

// In brackets: "B, H * 2, D", "seq][heads][dim". Empty if it is something else.
std::vector<Role> axes_from(std::string_view text, std::size_t at) {
  std::vector<Role> axes;
  std::string word;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (is_word(c)) {
      if (!word.empty() && text[i - 1] == ' ') word += '_';  // "head dim"
      word += c;
      continue;
    }
    if (c == ' ' || c == '\t') continue;
    const bool next = c == ',' || c == '*' || text.substr(i, 2) == "][";
    if (!next && c != ']' && c != ')') return {};
    if (word.empty() || !add_axes(word, axes)) return {};
    word.clear();
    if (!next) return with_heads(axes);
    i += c == ']' ? 1 : 0;
  }
  return {};
}

}  // namespace

std::vector<std::string> comments_of(const Model& model) {
  std::vector<std::string> out;
  for (const std::string& text : model.code().texts) out.push_back(comments_of_text(text));
  const source::Syntax& s = model.syntax();
  for (std::size_t i = 0; i + 1 < s.size(); ++i) {
    if (s[i].text.find("CHECK") == std::string_view::npos || !s.is(i + 1, "(")) continue;
    for (std::size_t j = i + 2; j < s.match(i + 1); ++j)
      if (s[j].kind == source::TokenKind::kString) out.emplace_back(s[j].text);
  }
  return out;
}

std::vector<NamedAxes> axes_in(const std::string& text) {
  std::vector<NamedAxes> out;
  for (std::size_t at = text.find_first_of("[("); at != std::string::npos;
       at = text.find_first_of("[(", at + 1))
    if (std::vector<Role> axes = axes_from(text, at + 1); axes.size() >= 2)
      out.push_back({name_before(text, at), std::move(axes)});
  // "B x H x N x d"
  for (std::size_t at = text.find(" x "); at != std::string::npos;) {
    const std::size_t cross = at;
    std::size_t begin = at;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    std::vector<Role> axes;
    bool known = begin < at && add_axes(text.substr(begin, at - begin), axes);
    while (known && text.compare(at, 3, " x ") == 0) {
      std::size_t end = at + 3;
      while (end < text.size() && is_word(text[end])) ++end;
      known = end > at + 3 && add_axes(text.substr(at + 3, end - at - 3), axes);
      at = end;
    }
    if (known) out.push_back({name_before(text, begin), std::move(axes)});
    at = text.find(" x ", std::max(at, cross + 1));
  }
  return out;
}

}  // namespace attn_diag::adapt
