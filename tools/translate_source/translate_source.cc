// translate_source: preprocesses a CUDA C++ file and puts it through the source pass. A build-time
// tool of attn_diag_add_kernel().
//
//   translate_source --output x.ii --file x.cu -- compiler and options, without -E
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/toolchain/build/translate_unit.h"

namespace {

int run(int argc, char** argv) {
  std::string output, file;
  int i = 1;
  for (; i < argc && std::string(argv[i]) != "--"; ++i) {
    const std::string flag = argv[i];
    if ((flag != "--output" && flag != "--file") || i + 1 == argc)
      throw std::runtime_error("not understood: " + flag);
    (flag == "--output" ? output : file) = argv[++i];
  }
  if (output.empty() || file.empty() || i + 1 >= argc)
    throw std::runtime_error("--output, --file and a compiler behind -- are needed");
  const std::vector<std::string> compiler(argv + i + 1, argv + argc);

  const attn_diag::build::Unit unit = attn_diag::build::translate_unit(compiler, file);
  std::cerr << unit.preprocessor_messages;
  for (const auto& error : unit.translation.errors)
    std::cerr << attn_diag::build::diagnostic_text(error);
  if (!unit.preprocessed || !unit.translation.errors.empty()) return 1;
  std::ofstream to(output, std::ios::binary);
  to << unit.translation.text;
  if (!to.flush()) throw std::runtime_error("cannot write " + output);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "translate_source: " << error.what() << "\n";
    return 1;
  }
}
