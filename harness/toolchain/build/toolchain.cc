// Which compilers there are.
#include <cstdlib>

#include "attn_diag/harness/error.h"
#include "harness/base/process.h"
#include "harness/toolchain/build/build.h"

namespace attn_diag::build {

std::string find_compiler(const BuildRequest& request) {
  const char* variable = std::getenv("CXX");
  const bool from_variable = request.compiler.empty() && variable != nullptr && *variable != '\0';
  const std::string compiler = !request.compiler.empty() ? request.compiler
                               : from_variable           ? variable
                                                         : "g++";
  if (!is_program(compiler))
    throw Error(
        "There is no compiler '" + compiler + "'" +
        (from_variable ? ", which the environment variable CXX names" : "") +
        ": kernels are compiled with g++ or clang++. Install one (apt install g++) or name it "
        "with CXX=...");
  return compiler;
}

std::optional<std::string> find_nvcc(const BuildRequest& request) {
  if (!request.nvcc.empty()) return request.nvcc;
  const char* variable = std::getenv("CUDACXX");
  if (variable != nullptr && *variable != '\0') return variable;
  for (const char* candidate : {"nvcc", "/usr/local/cuda/bin/nvcc"})
    if (is_program(candidate)) return candidate;
  return std::nullopt;
}

}  // namespace attn_diag::build
