#include "harness/lines/text_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using Found = std::vector<LineSuspect>;

bool is_among(const Found& suspects, const std::string& file, int line) {
  return std::any_of(suspects.begin(), suspects.end(), [&](const LineSuspect& one) {
    return one.place.file == file && one.place.line == line;
  });
}

void add(Found& found, const LinePlace& beside, int line, std::string why) {
  if (!is_among(found, beside.file, line))
    found.push_back({{beside.file, beside.function, line, 0, "", ""}, std::move(why)});
}

// "const float log2e = 1.4427f, ln2 = 0.6931f;": log2e has a number with a fraction for good.
bool is_constant_number(const std::vector<Token>& tokens, std::string_view name) {
  if (std::none_of(tokens.begin(), tokens.end(), [](const Token& token) {
        return token.is_any({"const", "constexpr"});
      }))
    return false;
  for (std::size_t i = 1; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is(name) || !tokens[i + 1].is("=")) continue;
    const std::size_t number = i + (tokens[i + 2].is("-") ? 3 : 2);
    return number + 1 < tokens.size() && tokens[number + 1].is_any({",", ";"}) &&
           tokens[number].text.find_first_of("0123456789") == 0 &&
           tokens[number].text.find_first_of(".ef") != std::string_view::npos;
  }
  return false;
}

// The lines that give a number to what a line multiplies or divides by.
Found factors_of(SourceText& text, const LinePlace& at) {
  Found found;
  const std::vector<Token> tokens = tokens_of(text.statement(at.file, at.line));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_factor = (i > 0 && tokens[i - 1].is_any({"*", "/"})) ||
                           (i + 1 < tokens.size() && tokens[i + 1].is("*"));
    if (!is_factor || !tokens[i].is_identifier()) continue;
    const int line = text.declared_above(at.file, at.line, tokens[i].text);
    if (line != 0 && line != at.line &&
        is_constant_number(tokens_of(text.line(at.file, line)), tokens[i].text))
      add(found, at, line, fmt::format("is the number that {} has there", tokens[i].text));
  }
  return found;
}

// Behind the first `most` suspects, which are not moved.
void put_behind(std::size_t most, Found found, Found& suspects) {
  const auto near = static_cast<std::ptrdiff_t>(std::min(suspects.size(), most));
  const Found first(suspects.begin(), suspects.begin() + near);
  std::erase_if(found, [&](const LineSuspect& one) {
    return is_among(first, one.place.file, one.place.line);
  });
  std::erase_if(suspects, [&](const LineSuspect& one) {
    return is_among(found, one.place.file, one.place.line);
  });
  suspects.insert(suspects.begin() + near, found.begin(), found.end());
}

// What other lines compute and nothing takes, in any function that was watched.
Found unused_of(SourceText& text, const std::vector<LinePlace>& places) {
  Found found;
  for (const LinePlace& at : places)
    for (const UnusedName& one : text.computed_for_nothing(at.file, at.line))
      add(found, at, one.line,
          fmt::format("computes {}, which nothing takes: what is to do so is missing behind it",
                      one.name));
  return found;
}

// All suspects, then a line of each other function.
std::vector<LinePlace> places_of(const host::ValueGraph& graph, const LineDivergence& out) {
  std::vector<LinePlace> places;
  for (const LineSuspect& one : out.suspects) places.push_back(one.place);
  std::set<std::pair<std::string, std::string>> known;
  for (const LinePlace& at : places) known.insert({at.file, at.function});
  for (std::size_t s = 1; s < graph.sites.size(); ++s) {
    const host::ValueSite& site = graph.sites[s];
    if (site.ran && known.insert({site.file, site.function}).second)
      places.push_back({site.file, site.function, site.line, 0, "", ""});
  }
  return places;
}

}  // namespace

void suggest_by_text(SourceText& text, const host::ValueGraph& graph, LineDivergence& out) {
  if (out.suspects.empty()) return;
  Found found;
  const std::vector<LinePlace> places = places_of(graph, out);
  for (const LinePlace& at : places) {
    for (const int line : text.decided_by_literal(at.file, at.line))
      add(found, at, line, "tests nothing: its condition is a constant");
    for (const int line : text.without_effect(at.file, at.line))
      add(found, at, line, "does nothing: its body is empty");
    for (const int line : text.calls_without_effect(at.file, at.line))
      add(found, at, line, "is all of a function that is called, and does nothing");
    for (const UnchangedName& one : text.never_computed(at.file, at.line))
      add(found, at, one.line,
          fmt::format("computes {}, and nothing computes {}, which begins beside it", one.beside,
                      one.name));
    for (const SourceText::Unpaired& one : text.unpaired_calls(at.file, at.line))
      add(found, at, one.line,
          fmt::format("is where {} is missing, beside {}", one.missing, one.present));
  }
  if (found.empty()) {
    if (out.answer == LineAnswer::kLine) return;
    put_behind(2, factors_of(text, out.suspects.front().place), out.suspects);
    put_behind(1, unused_of(text, places), out.suspects);
    return;
  }
  // What was claimed explains what is seen, and so may this.
  if (out.answer == LineAnswer::kLine) {
    const LinePlace& claimed = out.suspects.front().place;
    if (is_among(found, claimed.file, claimed.line)) return;
    out.answer = LineAnswer::kUnsure;
    out.reason = "the text shows another line by itself";
  }
  std::erase_if(out.suspects, [&](const LineSuspect& one) {
    return is_among(found, one.place.file, one.place.line);
  });
  out.suspects.insert(out.suspects.begin(), found.begin(), found.end());
}

}  // namespace attn_diag::lines
