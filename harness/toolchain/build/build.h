// A kernel library from a user's sources: what `attn-diag build` does, as records.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/toolchain/build/settings.h"
#include "harness/toolchain/source/translate.h"

namespace attn_diag::build {

enum class Backend { kHost, kCuda };

// Of copies of the same sources that are built one after the other: objects of units that are the same in another copy,
// and, by clang, what units include before their own first line. Their paths are those of the copy that came first.
struct KeptObjects {
  std::filesystem::path folder;
  std::string copy;  // where this copy lies: how the paths of its files begin
};

struct BuildRequest {
  std::vector<std::filesystem::path> sources;
  std::filesystem::path adapter;  // empty: among the sources
  std::filesystem::path output;   // x.so; the instrumented build is x.lockstep.so
  Backend backend = Backend::kHost;
  std::vector<std::string> includes, defines, compiler_flags;
  // Where compilers run, so where paths in compiler_flags begin; the other paths are of this process. Empty: here.
  std::filesystem::path folder;
  std::string standard = "c++20";  // the host's headers need c++20, and get it instead of c++17
  std::string arch = "sm_90";      // what __CUDA_ARCH__ says; what nvcc compiles for
  std::string compiler;            // empty: $CXX, else g++
  std::string nvcc;                // empty: $CUDACXX, else nvcc, else where toolkits are installed
  bool plain = true;               // x.so itself; backend host may leave it out for x.lockstep.so
  bool lockstep = true;
  bool watch =
      false;  // nothing but the watch build, which tells where numbers come from, into `output`
  bool ask_nvcc = true;             // compile for the host with nvcc too, where there is one
  bool write_files = true;          // else only translate
  std::optional<KeptObjects> kept;  // for backend host
  // Of backend host, by clang: of the kernels that sources launch compile these alone, by their symbols' names, as
  // host::launched_kernels() has them. What launches others throws KernelLeftOut. Empty: all.
  std::vector<std::string> only_kernels;
};

// One run of a compiler.
struct Step {
  std::string name;      // "g++", "g++ (lockstep)", "link", "nvcc"
  std::string file;      // what it compiled
  std::string command;   // as one would type it
  std::string messages;  // as the compiler wrote them
  bool ok = true;
};

struct SourceRecord {
  std::string file;
  std::vector<source::Item> items;         // translated
  std::vector<source::Diagnostic> errors;  // not translatable
};

struct BuildRecord {
  std::vector<SourceRecord> sources;
  std::vector<Step> steps;                       // with messages or failed ones among them
  std::vector<std::filesystem::path> libraries;  // written
  bool refused_by_nvcc = false;                  // what was written for the host is no CUDA C++
  bool missing_adapter = false;  // nothing in the library says how to call its kernels
  bool ok = false;               // everything asked for was written
};

// Throws Error for what keeps it from starting: a missing file, no compiler. What compilers say is in
// the record. Files appear whole or not at all.
BuildRecord build_library(const BuildRequest& request, const Settings& settings);

// The compiler and nvcc that a request leads to. Throws Error if there is none.
std::string find_compiler(const BuildRequest& request);
std::optional<std::string> find_nvcc(const BuildRequest& request);

// What `attn-diag build` was asked for when it wrote this library, whose file is read and not loaded; `output` is the
// library. nullopt: it was built otherwise (attn_diag_add_kernel()), or by another version.
std::optional<BuildRequest> request_of(const std::filesystem::path& library);

// Whether a shared library defines a symbol for others.
bool exports_symbol(const std::filesystem::path& library, const std::string& symbol);

}  // namespace attn_diag::build
