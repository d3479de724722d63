#include "harness/diagnose/tap_lines.h"

#include <cctype>
#include <fstream>

namespace attn_diag {
namespace {

// "partial_o" -> "Tensor::kPartialO"
std::string enumerator(Tensor tensor) {
  std::string text = "Tensor::k";
  bool capital = true;
  for (const char c : name(tensor)) {
    if (c == '_') {
      capital = true;
      continue;
    }
    text += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    capital = false;
  }
  return text;
}

bool names(const std::string& line, const std::string& word) {
  const std::size_t at = line.find(word);
  if (at == std::string::npos) return false;
  const std::size_t end = at + word.size();
  return end == line.size() || std::isalnum(static_cast<unsigned char>(line[end])) == 0;
}

}  // namespace

std::vector<TapLine> find_tap_lines(const Provenance& provenance, Tensor tensor) {
  const std::string word = enumerator(tensor);
  std::vector<TapLine> lines;
  for (const SourceState& source : provenance.sources) {
    if (source.path.ends_with("attn_diag/kernels/tap.h")) continue;  // which says what a tap is
    std::ifstream file(source.path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::size_t begin = line.find_first_not_of(" \t");
      if (begin != std::string::npos && line.compare(begin, 4, "tap.") == 0 && names(line, word))
        lines.push_back({source.path, number});
    }
  }
  return lines;
}

}  // namespace attn_diag
