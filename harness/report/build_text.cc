#include "harness/report/build_text.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "harness/toolchain/build/translate_unit.h"

namespace attn_diag::report {
namespace {

using build::BuildRecord;
using source::Item;
using source::ItemKind;

struct KindName {
  ItemKind kind;
  const char *title, *key;
};
constexpr std::array<KindName, 6> kKinds = {{
    {ItemKind::kLaunch, "Launches", "launch"},
    {ItemKind::kSharedArray, "Static shared memory", "shared"},
    {ItemKind::kDynamicShared, "Dynamic shared memory", "dynamic_shared"},
    {ItemKind::kLaunchBounds, "Launch bounds", "launch_bounds"},
    {ItemKind::kAsm, "Inline PTX", "asm"},
    {ItemKind::kPragma, "Pragmas of nvcc, left out", "pragma"},
}};

const char* key_of(ItemKind kind) {
  for (const KindName& name : kKinds)
    if (name.kind == kind) return name.key;
  return "";
}

std::string explain_source(const build::SourceRecord& source, const Style& style) {
  std::string s = fmt::format("{}\n", paint(style, Colour::kBold, source.file));
  for (const KindName& kind : kKinds) {
    std::string lines;
    std::map<std::string, std::vector<std::string>> instructions;  // by name: places
    for (const Item& item : source.items) {
      if (item.kind != kind.kind) continue;
      const std::string place = fmt::format("{}:{}", item.file, item.line);
      for (const std::string& instruction : item.instructions)
        instructions[instruction].push_back(place);
      if (item.instructions.empty()) lines += fmt::format("    {}: {}\n", place, item.text);
    }
    for (const auto& [name, places] : instructions)
      lines += fmt::format("    {:<44} {:>4}x  {}\n", name, places.size(), places.front());
    if (!lines.empty()) s += fmt::format("  {}\n{}", kind.title, lines);
  }
  if (source.items.empty()) s += "  Nothing had to be translated.\n";
  for (const source::Diagnostic& error : source.errors)
    s += fmt::format("  {}: {}:{}: {}\n", paint(style, Colour::kRed, "Not translated"), error.file,
                     error.line, error.message);
  return s;
}

Json item_json(const Item& item) {
  Json json = {
      {"kind", key_of(item.kind)}, {"file", item.file}, {"line", item.line}, {"text", item.text}};
  if (!item.instructions.empty()) json["instructions"] = item.instructions;
  return json;
}

}  // namespace

std::string build_messages(const BuildRecord& record) {
  std::string s;
  for (const build::SourceRecord& source : record.sources)
    for (const source::Diagnostic& error : source.errors) s += build::diagnostic_text(error);
  for (const build::Step& step : record.steps) {
    if (step.messages.empty() && step.ok) continue;
    if (step.name == "nvcc") s += fmt::format("nvcc says of {}:\n", step.file);
    if (step.name == "nvcc could not check")
      s += fmt::format("nvcc could not check {}, since a header is not here:\n", step.file);
    s += step.messages;
    if (!s.empty() && s.back() != '\n') s += '\n';
    if (!step.ok && step.messages.empty())
      s += fmt::format("{} failed without a message: {}\n", step.name, step.command);
  }
  return s;
}

std::string build_text(const BuildRecord& record, bool explain, const Style& style) {
  std::string s;
  if (explain)
    for (const build::SourceRecord& source : record.sources) s += explain_source(source, style);
  for (const auto& library : record.libraries)
    s += fmt::format("{} {}\n", paint(style, Colour::kGreen, "wrote"), library.string());
  return s;
}

Json build_json(const BuildRecord& record, const CommandContext& context) {
  Json json = {{"schema", kJsonSchema},
               {"version", context.version},
               {"command", context.command},
               {"ok", record.ok && !record.missing_adapter && !record.refused_by_nvcc},
               {"adapter", !record.missing_adapter},
               {"refused_by_nvcc", record.refused_by_nvcc}};
  json["libraries"] = Json::array();
  for (const auto& library : record.libraries) json["libraries"].push_back(library.string());
  json["sources"] = Json::array();
  for (const build::SourceRecord& source : record.sources) {
    Json entry = {{"file", source.file}, {"translated", Json::array()}, {"errors", Json::array()}};
    for (const Item& item : source.items) entry["translated"].push_back(item_json(item));
    for (const source::Diagnostic& error : source.errors)
      entry["errors"].push_back(
          {{"file", error.file}, {"line", error.line}, {"message", error.message}});
    json["sources"].push_back(entry);
  }
  json["steps"] = Json::array();
  for (const build::Step& step : record.steps)
    json["steps"].push_back({{"name", step.name},
                             {"file", step.file},
                             {"ok", step.ok},
                             {"command", step.command},
                             {"messages", step.messages}});
  json["reproduce"] = context.reproduce;
  return json;
}

}  // namespace attn_diag::report
