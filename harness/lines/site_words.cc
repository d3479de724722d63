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

// "12" or "12~/src/a.h"
NamedLine line_in(std::string_view word) {
  NamedLine out;
  out.line = std::atoi(std::string(word).c_str());
  const std::size_t path = word.find('~');
  if (path == word.npos) return out;
  for (std::size_t i = path + 1; i < word.size(); ++i)
    if (word[i] == '%' && i + 2 < word.size()) {
      out.file +=
          static_cast<char>(std::strtol(std::string(word.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out.file += word[i];
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
    NamedLine one = line_in(word.substr(at + 1, std::min(colon, equals) - at - 1));
    one.name = word.substr(0, at);
    if (equals != word.npos && equals < colon)
      one.constant = std::atof(std::string(word.substr(equals + 1)).c_str());
    if (colon != word.npos) one.sources = word.substr(colon + 1);
    out.push_back(std::move(one));
  }
  return out;
}

// "loop 12 n@9: n@11:x,if 30 row@4:yt,"
std::vector<Condition> conditions_in(const std::string& words) {
  std::vector<Condition> out;
  for (const std::string_view word : split(words, ',')) {
    const std::vector<std::string_view> parts = split(word, ' ');
    if (parts.size() < 2) continue;
    Condition one = {parts[0] == "loop", line_in(parts[1]), variables_in(word, ' ')};
    // What is assigned below an if alone is another variable, which has the same value.
    const std::vector<NamedLine> tests = one.tests;
    if (!one.loop)
      std::erase_if(one.tests, [&](const NamedLine& test) {
        return std::all_of(tests.begin(), tests.end(), [&](const NamedLine& other) {
          return other.name != test.name || (other.file == one.at.file && other.line > one.at.line);
        });
      });
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<NamedLine> lines_in(const std::string& words) {
  std::vector<NamedLine> out;
  for (const std::string_view word : split(words, ',')) out.push_back(line_in(word));
  return out;
}

std::string bare_name(const std::string& function) {
  const std::string name = function.substr(0, function.find_first_of("<("));
  return name.substr(name.find_last_of(": ") + 1);
}

}  // namespace attn_diag::lines
