#include "attn_diag/harness/kernel.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/call_clock.h"
#include "harness/base/close_names.h"
#include "harness/base/helper.h"
#include "harness/base/user_code.h"
#include "harness/library/build_id.h"
#include "harness/library/elf_file.h"

namespace attn_diag {

// Part of Kernel::State, which has a name outside of this file.
struct LoadedLibrary {
  std::string path;  // absolute
  const KernelLibrary* library = nullptr;
  const BuildInfo* build = nullptr;
};

namespace {

namespace fs = std::filesystem;

// What a user wrote, taken apart.
struct Spec {
  bool is_path = false;
  std::string library;  // a path, or the stem of a library file: "split_k@fault"
  std::string kernel;   // empty: the only one
};

Spec parse_spec(const std::string& text) {
  std::size_t suffix = text.rfind(".so:");  // a kernel's name may hold ".so" too
  if (suffix == std::string::npos && text.ends_with(".so")) suffix = text.size() - 3;
  const bool ends_in_library = suffix != std::string::npos;
  if (!ends_in_library && text.find('/') == std::string::npos) {
    if (text.empty() || text.find(':') != std::string::npos)
      throw Error(
          fmt::format("'{}' is not a kernel. Name it as fa1, split_k@fault or "
                      "./library.so:name.",
                      text));
    return {false, text, text.substr(0, text.find('@'))};
  }
  if (!ends_in_library)
    throw Error(
        fmt::format("'{}' is not a kernel library: its name must end in .so, or in "
                    ".so:name.",
                    text));
  const std::string kernel = suffix + 3 < text.size() ? text.substr(suffix + 4) : "";
  return {true, text.substr(0, suffix + 3), kernel};
}

std::string suffix_of(const std::string& backend, bool lockstep) {
  return lockstep ? ".lockstep.so" : "." + backend + ".so";
}

// The library built beside `path` for the lockstep schedule.
std::string lockstep_build_of(const std::string& path) {
  const std::string suffix = suffix_of("host", false);
  const bool named_so = path.size() > suffix.size() &&
                        path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0;
  const std::string lockstep =
      path.substr(0, path.size() - (named_so ? suffix.size() : 3)) + suffix_of("host", true);
  if (!fs::exists(lockstep))
    throw Error(
        fmt::format("{} has no build for the lockstep schedule: {} does not exist. "
                    "attn-diag build makes it, without --no-lockstep and --backend cuda; "
                    "attn_diag_add_kernel() does with the option LOCKSTEP. Both need clang and "
                    "llvm-dev of one version (tools/setup installs them).",
                    path, lockstep));
  return lockstep;
}

LoadedLibrary load_library(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error(fmt::format("The kernel library {} does not exist.", path));
  const std::string absolute = fs::canonical(path, ignored).string();
  // Never unloaded: kernels' shared memory is thread-local storage of the library, and worker
  // threads outlive a Kernel.
  const UserCode guard;         // constructors
  const host::TimedCall timed;  // static objects of the user's are made
  void* const handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const std::string why = dlerror();
    // The loader calls a library of another machine not found.
    if (const std::string foreign = why_foreign(absolute); !foreign.empty())
      throw Error(fmt::format(
          "The kernel library {} cannot be loaded. {} Build it on this machine, for this machine.",
          path, foreign));
    // Symbols that the executor lacks were promised by the headers of another version.
    const bool mismatch = why.find("undefined symbol") != std::string::npos;
    throw Error(fmt::format("The kernel library {} cannot be loaded: {}.{}", path, why,
                            mismatch ? " Rebuild it against this attn-diag." : ""));
  }
  const auto library_symbol =
      reinterpret_cast<const KernelLibrary* (*)()>(dlsym(handle, "attn_diag_kernel_library"));
  const auto build_symbol =
      reinterpret_cast<const BuildInfo* (*)()>(dlsym(handle, "attn_diag_build_info"));
  for (const auto& [name, found] :
       {std::pair{"attn_diag_kernel_library", library_symbol != nullptr},
        std::pair{"attn_diag_build_info", build_symbol != nullptr}})
    if (!found)
      throw Error(
          fmt::format("{} is not a kernel library: it does not export {}(). Build it with "
                      "attn_diag_add_kernel().",
                      path, name));
  LoadedLibrary loaded{absolute, library_symbol(), build_symbol()};
  if (loaded.library->abi_version != kKernelAbiVersion)
    throw Error(
        fmt::format("{} was built for version {} of the kernel contract, this program has "
                    "version {}. Rebuild the library against this attn-diag.",
                    path, loaded.library->abi_version, kKernelAbiVersion));
  return loaded;
}

std::vector<std::string> kernel_names(const KernelLibrary& library) {
  std::vector<std::string> names;
  for (int i = 0; i < library.num_kernels; ++i) names.emplace_back(library.kernels[i].name);
  return names;
}

const KernelInfo& kernel_named(const LoadedLibrary& loaded, const std::string& name) {
  const KernelLibrary& library = *loaded.library;
  if (name.empty() && library.num_kernels == 1) return library.kernels[0];
  for (int i = 0; i < library.num_kernels; ++i)
    if (library.kernels[i].name == name) return library.kernels[i];
  const std::string there = fmt::format("{}", fmt::join(kernel_names(library), ", "));
  if (name.empty())
    throw Error(fmt::format("{} has several kernels: {}. Add the one you mean: {}:{}.", loaded.path,
                            there, loaded.path, library.kernels[0].name));
  throw Error(fmt::format("{} has no kernel '{}'. It has: {}.", loaded.path, name,
                          there.empty() ? "none" : there));
}

// "fa1.host.so" -> "fa1", "host".
struct FileName {
  std::string stem, backend;
  bool lockstep = false;
};
std::optional<FileName> parse_file_name(const std::string& file) {
  for (const auto& [backend, lockstep] :
       {std::pair{"host", false}, std::pair{"host", true}, std::pair{"cuda", false}}) {
    const std::string suffix = suffix_of(backend, lockstep);
    if (file.size() > suffix.size() &&
        file.compare(file.size() - suffix.size(), suffix.size(), suffix) == 0)
      return FileName{file.substr(0, file.size() - suffix.size()), backend, lockstep};
  }
  return std::nullopt;
}

// Kernel library files of a directory, sorted.
std::vector<fs::path> library_files(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored))
    if (parse_file_name(entry.path().filename().string())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string why_no_build(const std::string& backend, bool lockstep) {
  if (lockstep)
    return "has no build for the lockstep schedule. Give attn_diag_add_kernel() the option "
           "LOCKSTEP; it needs clang and llvm-dev of one version (tools/setup installs them).";
  if (backend == "cuda")
    return "has no build for backend cuda. Build it where nvcc is found (fault kernels: cmake "
           "--build "
           "<build> --target fault_kernels_cuda), or use --backend host.";
  return "has no build for backend host. Build its library, or use --backend cuda.";
}

// The file of a kernel that was named without a path.
std::string find_library(const std::string& stem, const std::string& backend, bool lockstep) {
  const std::vector<std::string> directories = kernel_directories();
  std::vector<std::string> there;
  bool has_other_build = false;
  for (const std::string& directory : directories) {
    const fs::path candidate = fs::path(directory) / (stem + suffix_of(backend, lockstep));
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) return candidate.string();
    for (const fs::path& file : library_files(directory)) {
      const FileName name = *parse_file_name(file.filename().string());
      if (!name.lockstep) there.push_back(name.stem);
      has_other_build |= !name.lockstep && name.stem == stem;
    }
  }
  if (has_other_build)
    throw Error(fmt::format("Kernel '{}' {}", stem, why_no_build(backend, lockstep)));
  std::sort(there.begin(), there.end());
  there.erase(std::unique(there.begin(), there.end()), there.end());
  const std::vector<std::string> close = close_names(stem, there);
  std::string message = fmt::format("There is no kernel '{}'.", stem);
  if (!close.empty()) message += fmt::format(" Did you mean {}?", fmt::join(close, " or "));
  message += there.empty() ? " No kernels were found"
                           : fmt::format(" There are: {}", fmt::join(there, ", "));
  message += fmt::format(
      " (searched: {}). A library elsewhere is named by path: "
      "./library.so:name.",
      fmt::join(directories, ", "));
  if (stem.find('@') != std::string::npos)
    message += " Fault kernels are built on request: cmake --build <build> --target fault_kernels.";
  throw Error(message);
}

}  // namespace

struct Kernel::State {
  std::string spec;
  LoadedLibrary loaded;
  const KernelInfo* info;
};

Kernel Kernel::load(const std::string& spec, const std::string& backend, bool lockstep) {
  if (backend != "host" && backend != "cuda")
    throw Error(fmt::format("There is no backend '{}'; there are host and cuda.", backend));
  if (lockstep && backend != "host")
    throw Error("The lockstep schedule is one of the host executor. Use --backend host.");
  const Spec parsed = parse_spec(spec);
  std::string path;
  if (!parsed.is_path)
    path = find_library(parsed.library, backend, lockstep);
  else
    path = lockstep ? lockstep_build_of(parsed.library) : parsed.library;
  LoadedLibrary loaded = load_library(path);
  if (loaded.build->backend != backend)
    throw Error(
        fmt::format("{} was built for backend {}, not for {}. Use --backend {}, or name the "
                    "library built for {}.",
                    path, loaded.build->backend, backend, loaded.build->backend, backend));
  const KernelInfo& info = kernel_named(loaded, parsed.kernel);
  Kernel kernel;
  kernel.x_state = std::make_shared<const State>(State{spec, std::move(loaded), &info});
  return kernel;
}

Kernel Kernel::of_caller(const std::string& name, const KernelInfo& info) {
  static constexpr BuildInfo kBuild{0, nullptr, "", "", "caller", "", false, ""};
  Kernel kernel;
  kernel.x_state = std::make_shared<const State>(State{name, {"", nullptr, &kBuild}, &info});
  return kernel;
}

const KernelInfo& Kernel::info() const { return *x_state->info; }
const BuildInfo& Kernel::build() const { return *x_state->loaded.build; }
const std::string& Kernel::spec() const { return x_state->spec; }
const std::string& Kernel::library_path() const { return x_state->loaded.path; }

namespace {

std::vector<SourceState> sources_of(const BuildInfo& build) {
  std::vector<SourceState> sources;
  for (int i = 0; i < build.num_sources; ++i) {
    const SourceFile& source = build.sources[i];
    const std::optional<std::uint64_t> on_disk = hash_file(source.path);
    sources.push_back({source.path, source.xxh3, on_disk.value_or(0), on_disk.has_value()});
  }
  return sources;
}

}  // namespace

Provenance Kernel::provenance() const {
  Provenance provenance;
  provenance.kernel = spec();
  provenance.library = library_path();
  if (x_state->loaded.library != nullptr)
    provenance.build_id = build_id_at(x_state->loaded.library);
  provenance.compiler = build().compiler;
  provenance.flags = build().flags;
  provenance.backend = build().backend;
  provenance.sources = sources_of(build());
  return provenance;
}

std::vector<std::string> kernel_directories() {
  std::vector<std::string> directories;
  if (const char* const path = std::getenv("ATTN_DIAG_KERNEL_PATH")) {
    const std::string list = path;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      if (end > begin) directories.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    directories.push_back(
        (program.parent_path().parent_path() / "lib" / "attn_diag" / "kernels").string());
  return directories;
}

namespace {

// Fills in what loading tells, without loading it into this process: its constructors may do anything.
void load_entry(LibraryEntry& entry) {
  HelperLimits limits;
  limits.seconds_per_answer = kSecondsToLoad;
  try {
    Helper helper(limits, [&](const Bytes&) {
      const LoadedLibrary loaded = load_library(entry.path);
      Provenance provenance;
      provenance.sources = sources_of(*loaded.build);
      WireWriter to;
      to.texts(kernel_names(*loaded.library)).text(loaded.build->backend);
      to.text(loaded.build->architectures).text(loaded.build->compiler);
      return to.truth(provenance.stale()).truth(provenance.sources_missing()).take();
    });
    const Bytes answer = helper.ask({});
    WireReader from(answer);
    entry.kernels = from.texts();
    entry.backend = from.text();
    entry.architectures = from.text();
    entry.compiler = from.text();
    entry.stale = from.truth();
    entry.sources_missing = from.truth();
  } catch (const HelperLost& lost) {
    entry.problem = fmt::format("its own code failed while it was loaded: {}.", lost.what());
  } catch (const Error& error) {
    entry.problem = error.what();
  }
}

}  // namespace

std::string LibraryEntry::spec(const std::string& kernel) const {
  return kernels.size() == 1 && file_stem != path ? file_stem : path + ":" + kernel;
}

std::vector<LibraryEntry> list_libraries() {
  std::vector<LibraryEntry> entries;
  for (const std::string& directory : kernel_directories()) {
    for (const fs::path& file : library_files(directory)) {
      const FileName name = *parse_file_name(file.filename().string());
      LibraryEntry entry;
      entry.path = file.string();
      entry.file_stem = name.stem;
      entry.backend = name.backend;
      entry.lockstep = name.lockstep;
      const std::size_t at = name.stem.find('@');
      if (at != std::string::npos) entry.fault = name.stem.substr(at + 1);
      load_entry(entry);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::vector<std::string> kernels_built_for(const std::string& backend) {
  std::vector<std::string> names;
  for (const LibraryEntry& library : list_libraries())
    if (library.backend == backend && library.fault.empty()) names.push_back(library.file_stem);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

LibraryEntry describe_library(const std::string& path) {
  if (!fs::is_regular_file(path))
    throw Error(fmt::format("The kernel library {} does not exist.", path));
  LibraryEntry entry;
  entry.path = path;
  entry.file_stem = path;
  load_entry(entry);
  return entry;
}

std::optional<std::uint64_t> hash_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::array<char, 65536> buffer;
  while (file.read(buffer.data(), buffer.size()) || file.gcount() > 0)
    XXH3_64bits_update(state.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return std::nullopt;
  return XXH3_64bits_digest(state.get());
}

}  // namespace attn_diag
