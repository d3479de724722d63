// The lines that differ, with three around them.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/repair/edit.h"

namespace attn_diag::repair {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const std::size_t end = newline == text.npos ? text.size() : newline + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

std::string marked(char mark, std::string_view line) {
  std::string text = mark + std::string(line);
  if (!text.ends_with('\n')) text += "\n\\ No newline at end of file\n";
  return text;
}

}  // namespace

std::string unified_diff(const std::string& name, const std::string& before,
                         const std::string& after) {
  const std::vector<std::string_view> a = lines_of(before), b = lines_of(after);
  // One place differs: what both begin and end with is left out.
  std::size_t begin = 0;
  while (begin < std::min(a.size(), b.size()) && a[begin] == b[begin]) ++begin;
  std::size_t end = 0;
  while (end < std::min(a.size(), b.size()) - begin &&
         a[a.size() - 1 - end] == b[b.size() - 1 - end])
    ++end;
  if (begin == a.size() && begin == b.size()) return "";
  constexpr std::size_t kAround = 3;
  const std::size_t from = begin - std::min(begin, kAround);
  const std::size_t behind = std::min(end, kAround);
  const std::size_t a_end = a.size() - end, b_end = b.size() - end;
  const auto range = [](std::size_t first, std::size_t count) {
    return count == 1 ? fmt::format("{}", first + 1)
                      : fmt::format("{},{}", count == 0 ? first : first + 1, count);
  };
  std::string text =
      fmt::format("--- a/{0}\n+++ b/{0}\n@@ -{1} +{2} @@\n", name,
                  range(from, a_end + behind - from), range(from, b_end + behind - from));
  for (std::size_t i = from; i < begin; ++i) text += marked(' ', a[i]);
  for (std::size_t i = begin; i < a_end; ++i) text += marked('-', a[i]);
  for (std::size_t i = begin; i < b_end; ++i) text += marked('+', b[i]);
  for (std::size_t i = a_end; i < a_end + behind; ++i) text += marked(' ', a[i]);
  return text;
}

}  // namespace attn_diag::repair
