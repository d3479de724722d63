#include "harness/report/adapt_text.h"

#include <fmt/format.h>

namespace attn_diag::report {
namespace {

constexpr std::pair<adapt::NoteKind, const char*> kTitles[] = {
    {adapt::NoteKind::kFound, "Found"},
    {adapt::NoteKind::kGuessed, "Guessed"},
    {adapt::NoteKind::kUnknown, "Not known: look for the comments in the adapter"},
    {adapt::NoteKind::kCheck, "Check first, if the result is wrong"}};

const char* key_of(adapt::NoteKind kind) {
  switch (kind) {
    case adapt::NoteKind::kFound:
      return "found";
    case adapt::NoteKind::kGuessed:
      return "guessed";
    case adapt::NoteKind::kUnknown:
      return "unknown";
    case adapt::NoteKind::kCheck:
      return "check";
  }
  return "";
}

}  // namespace

std::string adapt_notes(const adapt::Draft& draft, const Style& style) {
  std::string text;
  for (const auto& [kind, title] : kTitles) {
    std::string lines;
    for (const adapt::Note& note : draft.notes)
      if (note.kind == kind) lines += "  " + wrap(note.text, style.width - 2, 4) + '\n';
    if (!lines.empty()) text += std::string(title) + '\n' + lines;
  }
  std::string others;
  for (const adapt::CandidateRecord& c : draft.candidates)
    if (!c.chosen)
      others += "  " +
                wrap(fmt::format("{}() in line {}: {}", c.name, c.line,
                                 c.why_not.empty() ? adapt::words(c.way) : c.why_not),
                     style.width - 2, 4) +
                '\n';
  return others.empty() ? text : text + "Also looked at\n" + others;
}

Json adapt_json(const adapt::Draft& draft, const CommandContext& context) {
  Json j = json_head(context);
  j["source"] = draft.source;
  j["kernel"] = draft.kernel;
  j["adapter"] = draft.text;
  j["functions"] = Json::array();
  for (const adapt::CandidateRecord& c : draft.candidates)
    j["functions"].push_back({{"name", c.name},
                              {"line", c.line},
                              {"way", adapt::words(c.way)},
                              {"chosen", c.chosen},
                              {"why_not", c.why_not.empty() ? Json(nullptr) : Json(c.why_not)}});
  for (const auto& [kind, title] : kTitles) {
    Json& list = j[key_of(kind)] = Json::array();
    for (const adapt::Note& note : draft.notes)
      if (note.kind == kind) list.push_back(note.text);
  }
  return j;
}

}  // namespace attn_diag::report
