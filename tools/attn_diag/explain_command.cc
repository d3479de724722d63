// attn-diag explain: what a word of a report or of a flag means.
#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/report/json.h"
#include "harness/report/words.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/suggest.h"

namespace attn_diag::cli {
namespace {

using report::Json;
using report::Word;

std::string word_text(const Word& word, const report::Style& style) {
  std::string s = fmt::format("{}  {}\n", report::paint(style, report::Colour::kBold, word.word),
                              report::paint(style, report::Colour::kDim, word.kind));
  for (const std::string* part : {&word.meaning, &word.advice})
    if (!part->empty()) s += "  " + report::wrap(*part, style.width - 2, 2) + '\n';
  if (!word.see.empty()) s += fmt::format("  See {}.\n", word.see);
  return s;
}

// "exit code", then the words of it within the line.
std::string list_text(const report::Style& style) {
  std::string s;
  std::string kind, line;
  const auto end_kind = [&] {
    if (!kind.empty())
      s += report::paint(style, report::Colour::kBold, kind) + "\n  " +
           report::wrap(line, style.width - 2, 2) + '\n';
  };
  for (const Word& word : report::words()) {
    if (word.kind != kind) {
      end_kind();
      kind = word.kind;
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + word.word;
  }
  end_kind();
  return s + "\nattn-diag explain WORD says what one of them means.\n";
}

Json word_json(const Word& word) {
  return {{"word", word.word},
          {"kind", word.kind},
          {"meaning", word.meaning},
          {"advice", word.advice},
          {"see", word.see}};
}

}  // namespace

CommandResult explain_command(const Session& session) {
  const Flags& flags = session.flags;
  std::vector<Word> found = flags.files.empty() && flags.json
                                ? report::words()
                                : report::find_words(flags.files.empty() ? "" : flags.files[0]);
  if (!flags.files.empty() && found.empty()) {
    std::vector<std::string> all;
    for (const Word& word : report::words()) all.push_back(word.word);
    throw Error(fmt::format("There is no word '{}'.{} attn-diag explain lists those there are.",
                            flags.files[0], did_you_mean(flags.files[0], all)));
  }
  CommandResult outcome;
  if (flags.json) {
    Json j;
    j["schema"] = report::kJsonSchema;
    j["version"] = ATTN_DIAG_VERSION;
    j["command"] = "explain";
    j["words"] = Json::array();
    for (const Word& word : found) j["words"].push_back(word_json(word));
    outcome.out = report::dump_json(j);
  } else if (flags.files.empty()) {
    outcome.out = list_text(session.style);
  } else {
    for (const Word& word : found) outcome.out += word_text(word, session.style);
  }
  return outcome;
}

}  // namespace attn_diag::cli
