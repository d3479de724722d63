#include "harness/report/check_suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "attn_diag/harness/error.h"

namespace attn_diag::report {
namespace {

using host::CheckFinding;

constexpr const char* kForm =
    "A line is KIND ARRAY PLACE # REASON, as in: race sRow my_kernel.cu:12 # equal values";

// The pieces between stars, each at its first place behind the one before.
bool matches(std::string_view glob, std::string_view text) {
  const std::size_t first = glob.find('*');
  if (first == std::string_view::npos) return glob == text;
  if (!text.starts_with(glob.substr(0, first))) return false;
  text.remove_prefix(first);
  glob.remove_prefix(first + 1);
  for (std::size_t star = glob.find('*'); star != std::string_view::npos; star = glob.find('*')) {
    const std::size_t at = text.find(glob.substr(0, star));
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + star);
    glob.remove_prefix(star + 1);
  }
  return text.ends_with(glob);
}

bool matches_place(const std::string& glob, const host::CheckAccess& access) {
  if (glob == "*") return true;
  const auto is_at = [&](const host::SourcePlace& p) {
    const std::string text = fmt::format("{}:{}", p.file, p.line);
    return matches(glob, text) || matches("*/" + glob, text);
  };
  return std::any_of(access.places.begin(), access.places.end(), is_at);
}

bool matches(const Suppression& s, const CheckFinding& f) {
  return matches(s.kind, host::name(f.kind)) && matches(s.array, f.array) &&
         (matches_place(s.place, f.access) || (f.has_other && matches_place(s.place, f.other)));
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::vector<Suppression> parse_suppressions(const std::string& text, const std::string& file) {
  std::vector<Suppression> out;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    Suppression s;
    s.line = number;
    const std::size_t hash = line.find('#');
    std::istringstream words(line.substr(0, hash));
    std::string surplus;
    const bool whole = (words >> s.kind >> s.array >> s.place) && !(words >> surplus);
    if (!whole)
      throw Error(fmt::format("{}:{}: expected three words and a reason, found '{}'. {}", file,
                              number, line, kForm));
    bool known = false;
    for (int k = 0; k < host::kNumCheckKinds; ++k)
      known = known || matches(s.kind, host::name(static_cast<host::CheckKind>(k)));
    if (!known)
      throw Error(fmt::format("{}:{}: there is no kind '{}'. {}", file, number, s.kind, kForm));
    if (hash != std::string::npos) s.reason = trimmed(line.substr(hash + 1));
    if (s.reason.empty())
      throw Error(fmt::format("{}:{}: the reason is missing. {}", file, number, kForm));
    out.push_back(std::move(s));
  }
  return out;
}

std::vector<Suppression> read_suppressions(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw Error(fmt::format("The suppression file {} cannot be read: check --suppressions.", file));
  return parse_suppressions({std::istreambuf_iterator<char>(in), {}}, file);
}

void apply_suppressions(const std::vector<Suppression>& suppressions, const std::string& file,
                        CheckView& view) {
  std::vector<CheckFinding> standing;
  std::vector<bool> used(suppressions.size(), false);
  for (CheckFinding& f : view.result.report.findings) {
    const auto by = std::find_if(suppressions.begin(), suppressions.end(),
                                 [&](const Suppression& s) { return matches(s, f); });
    if (by == suppressions.end()) {
      standing.push_back(std::move(f));
      continue;
    }
    used[static_cast<std::size_t>(by - suppressions.begin())] = true;
    view.suppressed.push_back({std::move(f), by->reason, by->line});
  }
  view.result.report.findings = std::move(standing);
  for (std::size_t i = 0; i < suppressions.size(); ++i) {
    const Suppression& s = suppressions[i];
    if (!used[i])
      view.unused_suppressions.push_back(
          fmt::format("{}:{}: {} {} {}", file, s.line, s.kind, s.array, s.place));
  }
}

}  // namespace attn_diag::report
