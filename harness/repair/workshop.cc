#include "harness/repair/workshop.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace attn_diag::repair {

namespace fs = std::filesystem;

namespace {
constexpr const char* kDeclarations = "attn_diag_edits.h";
}

Workshop::Workshop(const build::BuildRequest& request, build::Settings settings,
                   const std::vector<SourceFile>& sources)
    : x_request(request), x_settings(std::move(settings)) {
  for (const SourceFile& source : sources) {
    x_sources.emplace_back(source.path);
    x_texts.push_back(source.text);
  }
  x_request.ask_nvcc = false;
  x_request.write_files = true;
  build::write_file(x_folder / kDeclarations, edit_declarations());
}

// Where a file of the user's lies in the folder of a library.
fs::path Workshop::moved(int number, const fs::path& path) const {
  return x_folder / fmt::format("{}", number) / path.relative_path();
}

std::size_t Workshop::for_definitions(const std::vector<std::string>& texts) const {
  std::set<fs::path> units;
  for (const fs::path& source : x_request.sources) units.insert(fs::weakly_canonical(source));
  if (!x_request.adapter.empty()) units.insert(fs::weakly_canonical(x_request.adapter));
  std::size_t found = texts.size();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!units.contains(x_sources[i])) continue;
    if (texts[i] != x_texts[i]) return i;
    found = std::min(found, i);
  }
  return found;
}

Workshop::Built Workshop::build(int number, std::vector<std::string> texts,
                                const std::string& definitions, Which which, Speed speed,
                                const std::vector<std::string>& only) const {
  const bool edits = !definitions.empty();
  const std::size_t behind = edits ? for_definitions(texts) : texts.size();
  if (behind < texts.size()) texts[behind] += definitions;
  for (std::size_t i = 0; i < x_sources.size(); ++i) {
    const fs::path to = moved(number, x_sources[i]);
    fs::create_directories(to.parent_path());
    build::write_file(to, texts[i]);
  }
  build::BuildRequest request = x_request;
  for (fs::path& source : request.sources) source = moved(number, fs::weakly_canonical(source));
  if (!request.adapter.empty())
    request.adapter = moved(number, fs::weakly_canonical(request.adapter));
  // Headers are found in the copy before they are found where they were.
  std::vector<std::string> includes;
  for (const std::string& folder : x_request.includes) {
    includes.push_back(moved(number, fs::weakly_canonical(folder)).string());
    includes.push_back(folder);
  }
  request.includes = std::move(includes);
  const fs::path folder = x_folder / fmt::format("{}", number);
  fs::create_directories(folder);
  if (edits && behind == texts.size()) {
    request.sources.push_back(folder / "attn_diag_edits.cu");
    build::write_file(request.sources.back(), definitions);
  }
  const auto flags = [&](std::initializer_list<std::string> more) {
    request.compiler_flags.insert(request.compiler_flags.end(), more);
  };
  // An array whose extent is no constant any more is another array.
  flags({"-Wno-error", "-Werror=vla"});
  if (edits) flags({"-include", (x_folder / kDeclarations).string()});
  if (speed == Speed::kSoon) {
    flags({"-O1", "-g0"});
    request.kept = build::KeptObjects{x_folder / "", (folder / "").string()};
  }
  // clang++ is the quicker compiler, and says for every edit what is wrong with it. g++ crashes while it words some
  // of these errors.
  if (edits && x_settings.no_instrumenter().empty()) {
    request.compiler = x_settings.instrumenter;
    request.only_kernels = only;
    flags({"-ferror-limit=0", "-Wno-parentheses-equality", "-Wno-unevaluated-expression"});
  }
  request.plain = which != Which::kInstrumented;
  request.lockstep = which != Which::kPlain;
  request.output = folder / "edited.so";
  Built built;
  built.library = request.output.string();
  const build::BuildRecord record = build::build_library(request, x_settings);
  built.ok = record.ok && !record.missing_adapter;
  if (built.ok) return built;
  for (const build::SourceRecord& source : record.sources)
    for (const source::Diagnostic& error : source.errors)
      built.messages += fmt::format("{}:{}: error: {}\n", error.file, error.line, error.message);
  for (const build::Step& step : record.steps)
    if (!step.ok) built.messages += step.messages;
  return built;
}

std::string Workshop::library(int number, bool instrumented) const {
  return (x_folder / fmt::format("{}", number) /
          (instrumented ? "edited.lockstep.so" : "edited.so"))
      .string();
}

void Workshop::remove(int number) const {
  std::error_code ignored;
  fs::remove_all(x_folder / fmt::format("{}", number), ignored);
}

}  // namespace attn_diag::repair
