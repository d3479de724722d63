// SARIF 2.1.0 (OASIS): one log, one run.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "harness/report/located.h"
#include "harness/report/words.h"

namespace attn_diag::report {
namespace {

constexpr const char* kRoot = "SRCROOT";

// A path as the path of a URI (RFC 3986).
std::string uri_of(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json artifact(const std::string& file, const std::string& folder) {
  const std::string path = file_below(file, folder);
  Json j;
  if (path.starts_with('/')) {
    j["uri"] = "file://" + uri_of(path);
  } else {
    j["uri"] = uri_of(path);
    j["uriBaseId"] = kRoot;
  }
  return j;
}

Json location(const LocatedPlace& place, const std::string& folder, bool with_message) {
  Json j;
  if (!place.file.empty()) {
    Json& physical = j["physicalLocation"];
    physical["artifactLocation"] = artifact(place.file, folder);
    if (place.line > 0) {
      physical["region"]["startLine"] = place.line;
      if (place.column > 0) physical["region"]["startColumn"] = place.column;
    }
  }
  if (with_message) j["message"]["text"] = place.message;
  return j;
}

Json result(const LocatedFinding& f, std::size_t rule, const std::string& folder) {
  Json j;
  j["ruleId"] = f.rule;
  j["ruleIndex"] = rule;
  j["level"] = name(f.level);
  j["message"]["text"] = f.place.message;
  j["locations"] = Json::array();
  if (!f.place.file.empty()) j["locations"].push_back(location(f.place, folder, false));
  if (!f.related.empty()) {
    Json related = Json::array();
    for (std::size_t i = 0; i < f.related.size(); ++i) {
      Json one = location(f.related[i], folder, true);
      one["id"] = i + 1;
      related.push_back(one);
    }
    j["relatedLocations"] = related;
  }
  if (!f.accepted.empty())
    j["suppressions"] = {{{"kind", "external"}, {"justification", f.accepted}}};
  return j;
}

Json rule_json(const std::string& rule) {
  Json j;
  j["id"] = rule;
  if (const std::optional<Word> word = find_word(rule)) {
    j["shortDescription"]["text"] = fmt::format("{}: {}", word->kind, rule);
    j["fullDescription"]["text"] = word->meaning;
  }
  j["help"]["text"] = fmt::format("attn-diag explain {}", rule);
  return j;
}

}  // namespace

Json sarif(const std::vector<LocatedFinding>& findings, const SarifContext& context) {
  std::vector<std::string> rules;
  for (const LocatedFinding& f : findings)
    if (std::find(rules.begin(), rules.end(), f.rule) == rules.end()) rules.push_back(f.rule);

  Json run;
  Json& driver = run["tool"]["driver"];
  driver["name"] = "attn-diag";
  driver["version"] = context.version;
  driver["rules"] = Json::array();
  for (const std::string& rule : rules) driver["rules"].push_back(rule_json(rule));
  Json invocation;
  invocation["commandLine"] = context.command;
  invocation["executionSuccessful"] = context.exit_code < 2;
  invocation["exitCode"] = context.exit_code;
  run["invocations"] = {invocation};
  run["originalUriBaseIds"][kRoot]["uri"] =
      "file://" + uri_of(context.folder) + (context.folder.ends_with('/') ? "" : "/");
  run["columnKind"] = "unicodeCodePoints";
  run["results"] = Json::array();
  for (const LocatedFinding& f : findings) {
    const auto rule = std::find(rules.begin(), rules.end(), f.rule) - rules.begin();
    run["results"].push_back(result(f, static_cast<std::size_t>(rule), context.folder));
  }
  Json log;
  log["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  log["version"] = "2.1.0";
  log["runs"] = {run};
  return log;
}

}  // namespace attn_diag::report
