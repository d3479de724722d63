// hash_sources: writes the C++ file that defines attn_diag_build_info(), which says what a kernel
// library was made from.
//
//   hash_sources --output build_info.cc --depfile build_info.cc.d --root DIR --compiler TEXT
//                --flags TEXT --backend host [--architectures TEXT]
//                [--fault NAME] [--lockstep] [--exclude DIR] headers.d...
//
// Each headers.d is a list of included files as the compiler writes it (-MM). Those below DIR, as the
// compiler's own headers, are left out. The files' hashes are
// XXH3 64-bit of their bytes. The depfile makes the build run this again when any of them changes.
#include <xxhash.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

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

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

// The prerequisites of a make rule: words after the first ": " (or " : "), in which "\ " is a space,
// "$$" a dollar and a backslash at the end of a line joins it to the next.
std::vector<std::string> prerequisites(const std::string& rule) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(word);
    word.clear();
  };
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const char c = rule[i];
    const char next = i + 1 < rule.size() ? rule[i + 1] : '\0';
    if (c == '\\' && (next == '\n' || next == ' ' || next == '#')) {
      ++i;
      if (next == '\n')
        finish();
      else
        word += next;
    } else if (c == '$' && next == '$') {
      ++i;
      word += '$';
    } else if (c == ' ' || c == '\n' || c == '\t') {
      finish();
    } else {
      word += c;
    }
  }
  finish();
  const std::size_t colon = words.size() > 1 && words[1] == ":" ? 1 : 0;
  if (words.size() <= colon || words[colon].back() != ':')
    throw std::runtime_error("not a list of included files: " + rule.substr(0, 60));
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(colon) + 1);
  return words;
}

std::string escape_for_make(const std::string& path) {
  std::string escaped;
  for (char c : path) {
    if (c == ' ' || c == '#') escaped += '\\';
    if (c == '$') escaped += '$';
    escaped += c;
  }
  return escaped;
}

std::string quote(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

bool lies_below(const fs::path& path, const fs::path& root) {
  const fs::path relative = path.lexically_relative(root);
  return !relative.empty() && *relative.begin() != "..";
}

// Relative to root if the file lies below it.
std::string shown_path(const fs::path& path, const fs::path& root) {
  return lies_below(path, root) ? path.lexically_relative(root).string() : path.string();
}

void run(const Arguments& arguments) {
  const auto value = [&](const char* name) { return arguments.values.at(name); };
  const fs::path root = fs::weakly_canonical(value("root"));
  std::set<std::string> files;  // absolute, without repetition, in a fixed order
  const std::string excluded = value("exclude");
  const fs::path exclude = excluded.empty() ? fs::path() : fs::weakly_canonical(excluded);
  for (const std::string& list : arguments.header_lists) {
    for (const std::string& file : prerequisites(read(list))) {
      const fs::path path = fs::weakly_canonical(file);
      if (exclude.empty() || !lies_below(path, exclude)) files.insert(path.string());
    }
  }
  if (files.empty()) throw std::runtime_error("no list of included files was given");

  std::ostringstream code, rule;
  code << "// Generated by hash_sources.\n#include \"attn_diag/kernels/adapter.h\"\n\n"
       << "namespace {\nconstexpr attn_diag::SourceFile kSources[] = {\n";
  rule << escape_for_make(value("output")) << ":";
  for (const std::string& file : files) {
    const std::string bytes = read(file);
    char hash[32];
    std::snprintf(hash, sizeof hash, "0x%016llxull",
                  static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
    code << "    {" << quote(file) << ",\n     " << quote(shown_path(file, root)) << ", " << hash
         << "},\n";
    rule << " \\\n  " << escape_for_make(file);
  }
  rule << "\n";
  code << "};\nconstexpr attn_diag::BuildInfo kBuildInfo = {\n    " << files.size()
       << ",\n    kSources,\n    " << quote(value("compiler")) << ",\n    " << quote(value("flags"))
       << ",\n    " << quote(value("backend")) << ",\n    " << quote(value("architectures"))
       << ",\n    " << (arguments.lockstep ? "true" : "false") << ",\n    " << quote(value("fault"))
       << "};\n}  // namespace\n\n"
       << "extern \"C\" const attn_diag::BuildInfo* attn_diag_build_info() { return &kBuildInfo; "
          "}\n";
  write(value("output"), code.str());
  write(value("depfile"), rule.str());
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
