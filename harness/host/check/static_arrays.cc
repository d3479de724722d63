#include "harness/host/check/static_arrays.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

namespace attn_diag::host {
namespace {

// "fa1_kernel(int)::sK" as "fa1_kernel(int)" and "sK".
StaticArray declaration_of(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  const std::string name = status == 0 ? text.get() : symbol;
  const std::size_t colons = name.rfind("::");
  if (colons == std::string::npos) return {0, 0, name, "", false};
  return {0, 0, name.substr(colons + 2), name.substr(0, colons), false};
}

}  // namespace

std::vector<StaticArray> static_arrays(const KernelLibrary& library) {
  std::ifstream file(library.is_main_program ? "/proc/self/exe" : library.path, std::ios::binary);
  const auto read = [&](auto* to, std::uint64_t at, std::size_t count) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof *to));
    return static_cast<bool>(file);
  };
  std::vector<StaticArray> arrays;
  ElfW(Ehdr) header;
  if (!read(&header, 0, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return arrays;
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (!read(sections.data(), header.e_shoff, sections.size())) return arrays;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    std::vector<ElfW(Sym)> symbols(section.sh_size / sizeof(ElfW(Sym)));
    std::vector<char> names(sections[section.sh_link].sh_size + 1);
    if (!read(symbols.data(), section.sh_offset, symbols.size()) ||
        !read(names.data(), sections[section.sh_link].sh_offset, names.size() - 1))
      return {};
    for (const ElfW(Sym) & symbol : symbols) {
      if ((symbol.st_info & 0xF) != STT_TLS || symbol.st_shndx == SHN_UNDEF) continue;
      if (symbol.st_size == 0 || symbol.st_name >= names.size()) continue;
      const char* const name = &names[symbol.st_name];
      StaticArray array = declaration_of(name);
      array.begin = symbol.st_value;
      array.bytes = symbol.st_size;
      array.is_guard = std::strncmp(name, "_ZGV", 4) == 0;
      arrays.push_back(std::move(array));
    }
  }
  std::sort(arrays.begin(), arrays.end(),
            [](const StaticArray& a, const StaticArray& b) { return a.begin < b.begin; });
  return arrays;
}

}  // namespace attn_diag::host
