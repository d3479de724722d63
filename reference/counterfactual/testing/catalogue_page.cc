#include "reference/counterfactual/testing/catalogue_page.h"

#include <optional>
#include <stdexcept>
#include <string_view>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::reference::testing {
namespace {

constexpr std::string_view kIntroduction = R"(# Catalogue of known bugs

<!-- Made by `ninja -C build update_catalogue_page`; a test compares it with the code. -->

`attn-diag diagnose` knows these bugs. For each of them it computes, in fp64, what o, lse and every stage
tensor would be if the kernel had it, with the rounding bound of every number, and compares. The names
below are what it reports, what `--why-not` takes, and what `find_hypothesis()` takes
([counterfactual.h](../reference/include/attn_diag/reference/counterfactual.h)).

*First stage* is the first whose tensors the bug changes. *Parameters* are what a diagnosis says with the
name: **bold** ones are fitted to the numbers, the others are tried one by one. Bugs marked *tiles* or
*splits* depend on how the kernel cuts keys and queries, which an output alone does not say: where a
file does not either, the usual sizes are tried. Formulas are those of the catalogue's chapters:

| | |
|---|---|
| F1 to F5 | logits, columns |
| F6, F18, F19, F27, F28 | what is read |
| F7 to F10, F12 | which keys count |
| F11, F15 to F17, F21, F29 to F31 | max, sum, exp, precision, lanes |
| F13, F14, F32, F34 | from tile to tile |
| F20, F21b | the second product |
| F22 to F25b | merge of splits |
| F2, F26, F33 | the end, and where o is stored |

Pairs of bugs are found too, where both change other things.
)";

std::string chapter(Family family) {
  switch (family) {
    case Family::kLogits:
      return "Logits";
    case Family::kMask:
      return "Which keys count";
    case Family::kFetch:
      return "What is read";
    case Family::kSoftmax:
      return "Softmax";
    case Family::kPv:
      return "The second product";
    case Family::kRecurrence:
      return "From tile to tile";
    case Family::kCombine:
      return "Merge of splits";
    case Family::kFinish:
      return "The end";
    case Family::kStore:
      return "Where o is stored";
  }
  return {};
}

// A bar would end the cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped + " | ";
}

// Which of its parameters a hypothesis fits, if any: set() says so.
bool fits(const Hypothesis& hypothesis) {
  try {
    Deviation deviation;
    hypothesis.set(deviation, 0.5);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::string row(const Hypothesis& hypothesis) {
  const HypothesisInfo& info = hypothesis.info();
  std::string parameters;
  for (const std::string_view parameter : info.parameters) {
    if (!parameters.empty()) parameters += ", ";
    const std::string_view mark = fits(hypothesis) ? "**" : "";
    parameters.append(mark).append(parameter).append(mark);
  }
  std::string needs;
  if (info.needs_tiles) needs = "tiles";
  if (info.needs_splits) needs += needs.empty() ? "splits" : ", splits";
  return "| `" + std::string(info.id) + "` | " + cell(info.statement) + cell(info.formula) +
         cell(attn_diag::name(info.stage)) + cell(parameters) + cell(needs) +
         cell(info.citation.empty() ? "no public report" : info.citation) +
         std::string(info.remedy) + " |\n";
}

}  // namespace

std::string catalogue_page() {
  std::string page(kIntroduction);
  std::optional<Family> family;
  for (const Hypothesis* hypothesis : catalogue()) {
    const HypothesisInfo& info = hypothesis->info();
    if (family != info.family) {
      family = info.family;
      page += "\n## " + chapter(info.family) +
              "\n\n| id | the bug | formula | first stage | parameters | depends on | seen in | "
              "what to look for |\n|---|---|---|---|---|---|---|---|\n";
    }
    page += row(*hypothesis);
  }
  return page;
}

}  // namespace attn_diag::reference::testing
