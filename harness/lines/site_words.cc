#include "harness/lines/site_words.h"

#include <algorithm>
#include <cstdlib>

namespace attn_diag::lines {
namespace {

std::vector<std::string_view> split(std::string_view words, char by) {
  std::vector<std::string_view> out;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(by), words.size());
    if (end > 0) out.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return out;
}

}  // namespace

// "row@12:yt"
std::vector<NamedLine> variables_in(std::string_view words, char by) {
  std::vector<NamedLine> out;
  for (const std::string_view word : split(words, by)) {
    const std::size_t at = word.find('@'), colon = word.find(':');
    if (at == word.npos) continue;
    const std::size_t equals = word.find('=', at);
    std::optional<double> constant;
    if (equals != word.npos && equals < colon)
      constant = std::atof(std::string(word.substr(equals + 1)).c_str());
    out.push_back({std::string(word.substr(0, at)),
                   std::atoi(std::string(word.substr(at + 1)).c_str()),
                   colon == word.npos ? "" : std::string(word.substr(colon + 1)), constant});
  }
  return out;
}

// "loop 12 n@9: n@11:x,if 30 row@4:yt,"
std::vector<Condition> conditions_in(const std::string& words) {
  std::vector<Condition> out;
  for (const std::string_view word : split(words, ',')) {
    const std::vector<std::string_view> parts = split(word, ' ');
    if (parts.size() < 2) continue;
    out.push_back(
        {parts[0] == "loop", std::atoi(std::string(parts[1]).c_str()), variables_in(word, ' ')});
  }
  return out;
}

std::vector<int> lines_in(const std::string& words) {
  std::vector<int> out;
  for (const std::string_view word : split(words, ','))
    out.push_back(std::atoi(std::string(word).c_str()));
  return out;
}

}  // namespace attn_diag::lines
