// With nvcc: a library for GPUs, or only its opinion.
#include <fmt/format.h>

#include <cstdio>

#include "attn_diag/harness/error.h"
#include "harness/base/printable.h"
#include "harness/base/process.h"
#include "harness/toolchain/build/build_info.h"
#include "harness/toolchain/build/build_steps.h"
#include "harness/toolchain/build/request_record.h"
#include "harness/toolchain/build/scratch.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> nvcc_words(const BuildRequest& request, const std::string& nvcc,
                                    const Settings& settings) {
  // -arch=sm_90a would also make PTX for compute_90, which lacks what the "a" is for.
  const std::string number = request.arch.substr(3);
  const bool specific = number.ends_with('a') || number.ends_with('f');
  std::vector<std::string> words = {
      nvcc, "-std=" + request.standard, "-O3",
      specific ? fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number)
               : "-arch=" + request.arch};
  for (const std::string& folder : include_folders(request)) words.push_back("-I" + folder);
  for (const std::string& define : request.defines) words.push_back("-D" + define);
  // The last is that of the contract; the stand-ins would hide CUDA's own headers. Before it comes the
  // stand-in for PyTorch, which is looked through after all that was named.
  words.push_back("-I" + settings.includes.back().string());
  if (settings.includes.size() > 2)
    words.insert(words.end(),
                 {"-isystem", settings.includes[settings.includes.size() - 2].string()});
  return words;
}

// "13.0.88"; empty: it does not say.
std::string nvcc_version(const std::string& nvcc) {
  const std::string text = run_process({nvcc, "--version"}).out;
  const std::size_t at = text.find(", V");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + 3;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Whether it has --Ofast-compile: from 12.9 on.
bool compiles_fast(const std::string& nvcc) {
  int major = 0, minor = 0;
  return std::sscanf(nvcc_version(nvcc).c_str(), "%d.%d", &major, &minor) == 2 &&
         (major > 12 || (major == 12 && minor >= 9));
}

}  // namespace

std::vector<Step> check_with_nvcc(const BuildRequest& request, const Settings& settings,
                                  const std::vector<fs::path>& files) {
  std::vector<Step> steps;
  const std::optional<std::string> nvcc = find_nvcc(request);
  if (!nvcc) return steps;
  const ScratchFolder scratch;
  const bool fast = compiles_fast(*nvcc);
  for (const fs::path& file : files) {
    std::vector<std::string> words = nvcc_words(request, *nvcc, settings);
    if (fast) words.emplace_back("--Ofast-compile=max");  // nobody runs it
    words.insert(words.end(),
                 {"-x", "cu", "-cubin", file.string(), "-o", (scratch / "checked.cubin").string()});
    const ProcessResult result = run_process(words, {request.folder});
    // Headers for which the host has a stand-in (torch/extension.h) may not be here.
    const std::string messages = result.out + result.err;
    const bool lacks_header = !result.ok() && messages.find("fatal error: ") != std::string::npos &&
                              messages.find("No such file or directory") != std::string::npos;
    steps.push_back({lacks_header ? "nvcc could not check" : "nvcc", file.string(),
                     shell_line(words), messages, result.ok() || lacks_header});
  }
  return steps;
}

void build_for_cuda(const BuildRequest& request, const Settings& settings, BuildRecord& record) {
  const std::optional<std::string> nvcc = find_nvcc(request);
  if (!nvcc)
    throw Error(
        "There is no nvcc: --backend cuda compiles with the CUDA toolkit. Install it, add its bin "
        "folder to PATH or name nvcc with CUDACXX=..., or build for the CPU with --backend host.");
  const ScratchFolder scratch;
  std::vector<std::string> flags = nvcc_words(request, *nvcc, settings);
  flags.emplace_back("-Xcompiler=-fPIC,-fvisibility=hidden");
  flags.insert(flags.end(), request.compiler_flags.begin(), request.compiler_flags.end());
  BuildInfoRequest info;
  info.root = request.folder.empty() ? fs::current_path() : request.folder;
  info.folder = request.folder;
  info.exclude = fs::weakly_canonical(fs::path(*nvcc)).parent_path().parent_path();
  info.compiler = "NVIDIA nvcc";
  if (const std::string version = nvcc_version(*nvcc); !version.empty())
    info.compiler += " " + version;
  info.backend = "cuda";
  info.architectures = request.arch;
  info.flags = shell_line({flags.begin() + 1, flags.end()});

  record.ok = true;
  const auto run = [&](const std::string& name, const std::string& file,
                       const std::vector<std::string>& words) {
    const ProcessResult result = run_process(words, {request.folder});
    record.steps.push_back({name, file, shell_line(words), result.out + result.err, result.ok()});
    record.ok &= result.ok();
  };
  const fs::path temporary = request.output.string() + ".building";
  std::vector<std::string> link = {*nvcc,
                                   "-shared",
                                   "-std=c++20",
                                   "-O3",
                                   "-cudart=static",
                                   "-Xcompiler=-fPIC,-fvisibility=hidden",
                                   "-Xlinker=--build-id,--exclude-libs=ALL",
                                   "-I" + settings.includes.back().string(),
                                   "-o",
                                   temporary.string()};
  for (const fs::path& file : units_of(request)) {
    const std::string stem = fmt::format("{}", info.header_lists.size());
    const fs::path headers = scratch / (stem + ".d"), object = scratch / (stem + ".o");
    std::vector<std::string> words = flags;
    words.insert(words.end(), {"-x", "cu", "-c", "-MMD", "-MF", headers.string(), file.string(),
                               "-o", object.string()});
    run("nvcc", file.string(), words);
    info.header_lists.push_back(headers);
    link.push_back(object.string());
    record.sources.push_back({file.string(), {}, {}});
  }
  if (!record.ok) return;
  const fs::path source = scratch / "build_info.cc";
  write_file(source, build_info(info).code + request_code(request));
  link.push_back(source.string());
  run("link", request.output.string(), link);
  std::error_code error;
  if (!record.ok) {
    fs::remove(temporary, error);
    return;
  }
  fs::rename(temporary, request.output, error);
  if (error)
    throw Error(
        fmt::format("'{}' cannot be written: {}.", request.output.string(), error.message()));
  record.libraries.push_back(request.output);
}

}  // namespace attn_diag::build
