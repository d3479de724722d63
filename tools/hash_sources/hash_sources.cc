// hash_sources: writes the C++ file that defines attn_diag_build_info(), which says what a kernel
// library was made from.
//
//   hash_sources --output build_info.cc --depfile build_info.cc.d --root DIR --compiler TEXT
//                --flags TEXT --backend host [--architectures TEXT]
//                [--fault NAME] [--lockstep] [--exclude DIR] headers.d...
//
// Each headers.d is a list of included files as the compiler writes it (-MMD). Those below DIR, as the
// compiler's own headers, are left out. The files' hashes are
// XXH3 64-bit of their bytes. The depfile makes the build run this again when any of them changes.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/toolchain/build/build_info.h"

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::map<std::string, std::string> values;
  bool lockstep = false;
  std::vector<std::string> header_lists;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  arguments.values["architectures"] = "";
  arguments.values["exclude"] = "";
  arguments.values["fault"] = "";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--lockstep") {
      arguments.lockstep = true;
    } else if (argument.rfind("--", 0) == 0) {
      if (++i == argc) throw std::runtime_error(argument + " needs a value");
      arguments.values[argument.substr(2)] = argv[i];
    } else {
      arguments.header_lists.push_back(argument);
    }
  }
  for (const char* needed : {"output", "depfile", "root", "compiler", "flags", "backend"})
    if (arguments.values.count(needed) == 0)
      throw std::runtime_error(std::string("--") + needed + " is missing");
  return arguments;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

void run(const Arguments& arguments) {
  const auto value = [&](const char* name) { return arguments.values.at(name); };
  attn_diag::build::BuildInfoRequest request;
  request.root = value("root");
  request.exclude = value("exclude");
  request.compiler = value("compiler");
  request.flags = value("flags");
  request.backend = value("backend");
  request.architectures = value("architectures");
  request.fault = value("fault");
  request.lockstep = arguments.lockstep;
  request.header_lists.assign(arguments.header_lists.begin(), arguments.header_lists.end());
  const attn_diag::build::BuildInfoText info = attn_diag::build::build_info(request);

  std::string rule = attn_diag::build::escape_for_make(value("output")) + ":";
  for (const std::string& file : info.files)
    rule += " \\\n  " + attn_diag::build::escape_for_make(file);
  write(value("output"), info.code);
  write(value("depfile"), rule + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse_arguments(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "hash_sources: " << error.what() << "\n";
    return 1;
  }
}
