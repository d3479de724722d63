// Flags of `attn-diag build`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attn_diag::cli {

inline constexpr const char* kBuildSummary =
    "A kernel library from CUDA C++ sources, for the host or for GPUs";
inline constexpr const char* kBuildFooter = R"(
Sources are compiled as they are: launches <<<...>>>, shared memory, inline PTX and CUDA's headers
are translated for the host executor. x.so runs with every schedule but lockstep; beside it
x.lockstep.so serves lockstep and check. Where nvcc is found, it compiles the sources too, and its
errors are shown. What follows -- goes to the compiler.

A library needs an adapter, which says how to call its kernels: attn-diag adapt drafts one.

Examples:
  attn-diag build my_kernel.cu -o my_kernel.so
  attn-diag build my_kernel.cu --adapter my_adapter.cu -o my_kernel.so --include include
  attn-diag build my_kernel.cu -o my_kernel.so --explain
  attn-diag build my_kernel.cu -o my_kernel.cuda.so --backend cuda --arch sm_90
  attn-diag run --kernel ./my_kernel.so

Exit codes: 0 written; 2 not written, or what was written cannot be used: a compiler's errors,
unsupported code, no adapter.)";

struct BuildFlags {
  std::vector<std::string> includes, defines, compiler_flags;
  std::string standard, arch, adapter;
  bool explain = false, no_lockstep = false, no_nvcc = false;
};

void add_build_flags(CLI::App& app, BuildFlags& flags);

// Takes what is behind "--" of `attn-diag build ... -- flags` out of the words.
std::vector<std::string> take_compiler_flags(std::vector<std::string>& words);

}  // namespace attn_diag::cli
