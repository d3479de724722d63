// The words that reports and flags use, and what they mean: what attn-diag explain says. A word that a registry explains
// (input kinds, the catalogue, properties) has its text from there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::report {

struct Word {
  std::string word;     // "race"
  std::string kind;     // "finding of check"
  std::string meaning;  // complete sentences
  std::string advice;   // what to do or look for; may be empty
  std::string see;      // a command or a page; may be empty
};

// All of them, by kind, in the order of the registries.
const std::vector<Word>& words();

// Exactly this word, as it is written or with other capitals and with '-' and '_' exchanged. Two kinds may share a word:
// then the first.
std::optional<Word> find_word(std::string_view text);
// The word in all its kinds.
std::vector<Word> find_words(std::string_view text);

}  // namespace attn_diag::report
