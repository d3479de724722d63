// Finding, loading and describing kernel libraries.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/kernels/adapter.h"

namespace attn_diag {

// A kernel of a loaded library. Cheap to copy; keeps the library loaded.
class Kernel {
 public:
  // Loads by the user's spelling: "fa1", "split_k@reduce-counts-l-twice", "./library.so:name",
  // "./library.so" (if it has one kernel). `backend` is "host" or "cuda", and must be that of a library
  // named by path. `lockstep` picks the build with memory-access instrumentation. Loading a cuda build
  // needs no GPU. Throws Error naming what was looked for, where, and what there is.
  static Kernel load(const std::string& spec, const std::string& backend, bool lockstep = false);
  // A function of this program, of backend "caller": it is called with memory of this process, and nothing else is
  // known of it. `info` outlives the Kernel.
  static Kernel of_caller(const std::string& name, const KernelInfo& info);

  const KernelInfo& info() const;
  const BuildInfo& build() const;
  const std::string& spec() const;
  const std::string& library_path() const;
  // Kernel, library, build id, compiler, flags, sources as they are on disk now.
  Provenance provenance() const;

 private:
  struct State;
  std::shared_ptr<const State> x_state;
};

// Whether the gate is compiled into the kernel.
inline bool has_gate(const KernelInfo& kernel, Gate gate) {
  return (kernel.gates >> static_cast<unsigned>(gate) & 1u) != 0;
}

// What `attn-diag list` shows.
struct LibraryEntry {
  std::string path, file_stem;  // "split_k@reduce-counts-l-twice"
  std::string fault;            // "" for none
  std::string backend;
  bool lockstep = false;
  std::string architectures, compiler;  // as BuildInfo has them
  std::vector<std::string> kernels;     // empty if it cannot be loaded, then `problem` says why
  std::string problem;
  bool stale = false, sources_missing = false;  // as Provenance has them

  // What --kernel takes for one of `kernels`: the stem, where that says it all.
  std::string spec(const std::string& kernel) const;
};
// Directories searched: $ATTN_DIAG_KERNEL_PATH (colon separated), then ../lib/attn_diag/kernels
// beside the running program.
std::vector<std::string> kernel_directories();
std::vector<LibraryEntry> list_libraries();
// A library anywhere, as list_libraries() describes those it finds. Throws Error if there is no such file.
LibraryEntry describe_library(const std::string& path);

// The libraries that list_libraries() finds with a build for the backend, without planted faults: what --kernel takes
// for each, sorted.
std::vector<std::string> kernels_built_for(const std::string& backend);

// Lower 64 bits of XXH3 of a file's bytes; nullopt if it cannot be read.
std::optional<std::uint64_t> hash_file(const std::string& path);

}  // namespace attn_diag
