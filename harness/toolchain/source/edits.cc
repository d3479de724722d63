#include "harness/toolchain/source/edits.h"

#include <algorithm>
#include <stdexcept>

namespace attn_diag::source {
namespace {

// The newlines of a text, and its lines that begin with "#". The text may begin within a line.
std::string lines_left(std::string_view text) {
  std::string left;
  std::size_t newline = text.find('\n');
  while (newline != std::string_view::npos) {
    left += '\n';
    const std::size_t begin = newline + 1;
    newline = text.find('\n', begin);
    const std::size_t hash = text.find_first_not_of(" \t", begin);
    if (newline != std::string_view::npos && hash < newline && text[hash] == '#')
      left += text.substr(begin, newline - begin);
  }
  return left;
}

}  // namespace

void Edits::replace(std::size_t begin, std::size_t end, std::string text) {
  x_edits.push_back({begin, end, std::move(text)});
}

std::string Edits::apply(std::string_view original) const {
  std::vector<Edit> edits = x_edits;
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return a.begin != b.begin ? a.begin < b.begin : (a.end == a.begin) > (b.end == b.begin);
  });
  std::string result;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < at) throw OverlappingEdits{edit.begin};
    result += original.substr(at, edit.begin - at);
    result += edit.text;
    result += lines_left(original.substr(edit.begin, edit.end - edit.begin));
    at = edit.end;
  }
  result += original.substr(at);
  return result;
}

}  // namespace attn_diag::source
