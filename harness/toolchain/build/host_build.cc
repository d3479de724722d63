// For the host executor: translate, compile, link; plain and instrumented at the same time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <future>

#include "attn_diag/harness/error.h"
#include "harness/base/printable.h"
#include "harness/base/process.h"
#include "harness/toolchain/build/build_info.h"
#include "harness/toolchain/build/build_steps.h"
#include "harness/toolchain/build/kept.h"
#include "harness/toolchain/build/request_record.h"
#include "harness/toolchain/build/scratch.h"
#include "harness/toolchain/build/translate_unit.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

namespace {

enum class BuildKind { kPlain, kLockstep, kWatch };

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

const char* name_of(BuildKind kind) {
  return kind == BuildKind::kPlain ? "plain" : kind == BuildKind::kLockstep ? "lockstep" : "watch";
}

struct Variant {
  BuildKind kind = BuildKind::kPlain;
  std::string compiler;
  std::string name;  // "g++ (lockstep)"
  fs::path library;
};

// What compiling one file for one variant gave.
struct UnitResult {
  SourceRecord record;
  std::vector<Step> steps;
  fs::path object, headers;
  bool ok = false;
};

// The stand-in headers need C++20. C++23 had no name yet when clang 14 was made.
std::string standard_of(const BuildRequest& request) {
  if (request.standard == "c++17") return "-std=c++20";
  return "-std=" + (request.standard == "c++23" ? "c++2b" : request.standard);
}

bool leaves_out(const BuildRequest& request, const Settings& settings, const Variant& variant) {
  return !request.only_kernels.empty() && variant.compiler == settings.instrumenter;
}

std::vector<std::string> options_of(const BuildRequest& request, const Settings& settings,
                                    const Variant& variant) {
  std::vector<std::string> words = {
      standard_of(request),         "-O3", "-g", "-march=native", "-fPIC", "-fvisibility=hidden",
      "-fvisibility-inlines-hidden"};
  const auto append = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  append(settings.compile);
  if (leaves_out(request, settings, variant))
    words.push_back("-fpass-plugin=" + settings.leave_out_plugin.string());
  if (variant.kind == BuildKind::kLockstep) {
    append(settings.instrumented);
    words.push_back("-fpass-plugin=" + settings.plugin.string());
  } else if (variant.kind == BuildKind::kWatch) {
    append(settings.watched);
    words.push_back("-fpass-plugin=" + settings.watch_plugin.string());
  }
  append(request.compiler_flags);
  return words;
}

// Where ccache is installed, what it has compiled before is not compiled again: of two builds of a kernel seldom more
// changes than one file. What it cannot do (its folder may not be written to) is done without it.
ProcessResult compile(const std::vector<std::string>& words, const fs::path& folder) {
  if (is_program("ccache")) {
    std::vector<std::string> cached = {"ccache"};
    cached.insert(cached.end(), words.begin(), words.end());
    ProcessResult result = run_process(cached, {folder});
    if (result.ok() || result.err.find("ccache: error") == std::string::npos) return result;
  }
  return run_process(words, {folder});
}

// What an object depends on beside the text and the options: what -march=native is here, where paths begin, and what the
// plugin is, of which ccache knows the path alone. As a comment of the text, since a cache may be that of many machines,
// and told to overlook the folder.
std::string circumstances(const BuildRequest& request, const Settings& settings, BuildKind kind) {
  std::string flags;
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; flags.empty() && std::getline(cpus, line);)
    if (line.starts_with("flags")) flags = line;
  const fs::path folder = request.folder.empty() ? fs::current_path() : request.folder;
  const std::string plugin = kind == BuildKind::kLockstep ? hash_of_file(settings.plugin)
                             : kind == BuildKind::kWatch  ? hash_of_file(settings.watch_plugin)
                                                          : "";
  return fmt::format("\n// {}\n// {}\n// {}\n", flags, one_line(folder.string()), plugin);
}

UnitResult compile_unit(const BuildRequest& request, const Settings& settings,
                        const Variant& variant, const ScratchFolder& scratch, const fs::path& file,
                        std::size_t number) {
  const std::vector<std::string> options = options_of(request, settings, variant);
  const std::string stem = fmt::format("{}.{}", number, name_of(variant.kind));
  UnitResult result;
  result.record.file = file.string();
  result.headers = scratch / (stem + ".d");
  result.object = scratch / (stem + ".o");

  std::vector<std::string> words = {variant.compiler, "-xc++"};
  words.insert(words.end(), options.begin(), options.end());
  for (const std::string& folder : include_folders(request)) words.push_back("-I" + folder);
  for (const std::string& define : request.defines) words.push_back("-D" + define);
  for (const fs::path& folder : settings.includes) words.push_back("-I" + folder.string());
  words.insert(words.end(), settings.preprocess.begin(), settings.preprocess.end());
  words.push_back("-D__CUDA_ARCH__=" + arch_number(request.arch) + "0");
  words.push_back(
      fmt::format("-DATTN_DIAG_HOST_MOST_STATIC_SHARED={}", static_shared_limit(request.arch)));
  words.insert(words.end(), {"-MMD", "-MF", result.headers.string(), "-MT", "unit", file.string()});
  Unit unit = translate_unit(words, file, {request.folder});
  result.record.items = std::move(unit.translation.items);
  result.record.errors = std::move(unit.translation.errors);
  words.emplace_back("-E");
  if (!unit.preprocessed || !unit.preprocessor_messages.empty())
    result.steps.push_back({variant.name, file.string(), shell_line(words),
                            unit.preprocessor_messages, unit.preprocessed});
  if (!unit.preprocessed || !result.record.errors.empty()) return result;
  if (!request.write_files) {
    result.ok = true;
    return result;
  }

  std::string text = unit.translation.text + circumstances(request, settings, variant.kind);
  if (leaves_out(request, settings, variant))
    text += fmt::format(  // callouts::kOnlyKernels
        "static const char attn_diag_only_kernels[] __asm__(\"attn_diag_only_kernels\") "
        "__attribute__((used)) = \"{}\";\n",
        fmt::join(request.only_kernels, " "));
  words = {variant.compiler};
  words.insert(words.end(), options.begin(), options.end());
  fs::path kept;
  if (request.kept) {
    kept = kept_object(*request.kept, words, text);
    if (fs::exists(kept)) {
      result.object = kept;
      result.ok = true;
      return result;
    }
    if (variant.compiler == settings.instrumenter)
      if (auto beginning = precompiled_beginning(*request.kept, words, file, text)) {
        text = std::move(beginning->rest);
        words.insert(words.end(), {"-Xclang", "-include-pch", "-Xclang", beginning->header});
      }
  }
  const fs::path translated = scratch / (stem + ".ii");
  write_file(translated, text);
  words.insert(words.end(), {"-c", translated.string(), "-o", result.object.string()});
  const ProcessResult compiled =
      request.kept ? run_process(words, {request.folder}) : compile(words, request.folder);
  if (request.kept && compiled.ok()) {
    std::error_code error;  // then it lies where it was
    fs::rename(result.object, kept, error);
    if (!error) result.object = kept;
  }
  result.steps.push_back(
      {variant.name, file.string(), shell_line(words),
       request.kept ? compiled.err : with_columns_of_source(compiled.err, request.folder),
       compiled.ok()});
  result.ok = compiled.ok();
  return result;
}

// Of units that others include as well what to do; empty: there are none.
std::string included_twice(const BuildRequest& request,
                           const std::vector<const UnitResult*>& units) {
  std::string words;
  for (const UnitResult* unit : units) {
    const fs::path file = fs::weakly_canonical(unit->record.file);
    for (const UnitResult* other : units) {
      const std::vector<fs::path> included = included_files(other->headers, request.folder);
      if (other != unit && std::find(included.begin(), included.end(), file) != included.end())
        words += fmt::format(
            "attn-diag: hint: {} includes {}, which is compiled by itself as well: leave {} out of "
            "the command.\n",
            other->record.file, unit->record.file, unit->record.file);
    }
  }
  return words;
}

// Links the objects of a variant, under a name of its own until it is whole.
Step link(const BuildRequest& request, const Settings& settings, const Variant& variant,
          const ScratchFolder& scratch, const std::vector<const UnitResult*>& units) {
  BuildInfoRequest info;
  info.root = request.folder.empty() ? fs::current_path() : request.folder;
  info.folder = request.folder;
  info.compiler = compiler_version(variant.compiler);
  info.flags = shell_line(options_of(request, settings, variant));
  info.backend = "host";
  info.lockstep = variant.kind == BuildKind::kLockstep;
  for (const UnitResult* unit : units) info.header_lists.push_back(unit->headers);
  const fs::path source = scratch / fmt::format("build_info.{}.cc", name_of(variant.kind));
  write_file(source, build_info(info).code + request_code(request) +
                         "#include <attn_diag_host/static_shared_behind.h>\n");

  const fs::path temporary = variant.library.string() + ".building";
  std::vector<std::string> words = {variant.compiler, "-std=c++20", "-shared",
                                    "-fPIC",          "-O1",        "-fvisibility=hidden"};
  for (const fs::path& folder : settings.includes) words.push_back("-I" + folder.string());
  for (const UnitResult* unit : units) words.push_back(unit->object.string());
  words.push_back(source.string());  // behind all static shared memory
  words.insert(words.end(), {"-o", temporary.string(), settings.executor.string(),
                             "-Wl,-rpath," + settings.executor.parent_path().string(),
                             "-Wl,--build-id", "-Wl,--no-undefined"});
  // Sanitizers and the like have a library of their own.
  for (const std::string& flag : request.compiler_flags)
    for (const char* const prefix : {"-fsanitize", "-l", "-L", "-Wl,", "--coverage", "-pg"})
      if (flag.starts_with(prefix)) words.push_back(flag);
  const ProcessResult linked = run_process(words, {request.folder});
  Step step{
      variant.kind == BuildKind::kPlain ? "link" : fmt::format("link ({})", name_of(variant.kind)),
      variant.library.string(), shell_line(words), linked.err, linked.ok()};
  if (!step.ok && step.messages.find("multiple definition") != std::string::npos)
    step.messages += included_twice(request, units);
  std::error_code error;
  if (step.ok)
    fs::rename(temporary, variant.library, error);
  else
    fs::remove(temporary, error);
  if (step.ok && error)
    throw Error(
        fmt::format("'{}' cannot be written: {}.", variant.library.string(), error.message()));
  return step;
}

}  // namespace

void build_for_host(const BuildRequest& request, const Settings& settings, BuildRecord& record) {
  const std::string compiler = find_compiler(request);
  std::vector<Variant> variants;
  if (request.watch) {
    if (const std::string missing = settings.no_instrumenter(); !missing.empty())
      throw Error(missing);
    variants.push_back({BuildKind::kWatch, settings.instrumenter,
                        file_name(settings.instrumenter) + " (watch)", request.output});
  } else if (request.plain) {
    variants.push_back({BuildKind::kPlain, compiler, file_name(compiler), request.output});
  }
  if (request.lockstep && !request.watch && request.write_files) {
    const std::string stem = request.output.string();
    const std::string library = stem.substr(0, stem.size() - 3) + ".lockstep.so";
    const std::string missing = settings.no_instrumenter();
    if (missing.empty())
      variants.push_back({BuildKind::kLockstep, settings.instrumenter,
                          file_name(settings.instrumenter) + " (lockstep)", library});
    else
      record.steps.push_back({"instrument", library, "",
                              "'" + library +
                                  "', for attn-diag check and the schedule lockstep, "
                                  "is not built: " +
                                  missing + "\n",
                              true});
  }
  const ScratchFolder scratch;
  const std::vector<fs::path> units = units_of(request);
  std::future<std::vector<Step>> nvcc;
  if (request.ask_nvcc)
    nvcc =
        std::async(std::launch::async, [&] { return check_with_nvcc(request, settings, units); });

  std::vector<std::vector<std::future<UnitResult>>> running(variants.size());
  for (std::size_t v = 0; v < variants.size(); ++v)
    for (std::size_t u = 0; u < units.size(); ++u)
      running[v].push_back(std::async(std::launch::async, [&, v, u] {
        return compile_unit(request, settings, variants[v], scratch, units[u], u);
      }));

  record.ok = true;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    std::vector<UnitResult> results;
    for (auto& unit : running[v]) results.push_back(unit.get());
    // The instrumented build says the same again.
    const bool said = v > 0 && !record.ok;
    bool ok = true;
    std::vector<const UnitResult*> linked;
    for (UnitResult& result : results) {
      ok &= result.ok;
      linked.push_back(&result);
      for (const Step& step : result.steps)
        if (!said && (!step.ok || v == 0)) record.steps.push_back(step);
      if (v == 0) record.sources.push_back(result.record);
    }
    if (ok && record.ok && request.write_files) {
      record.steps.push_back(link(request, settings, variants[v], scratch, linked));
      ok = record.steps.back().ok;
      if (ok) record.libraries.push_back(variants[v].library);
    }
    record.ok &= ok;
  }
  if (nvcc.valid())
    for (const Step& step : nvcc.get()) {
      record.steps.push_back(step);
      record.refused_by_nvcc |= !step.ok;
    }
}

}  // namespace attn_diag::build
