#include "harness/host/check/static_arrays.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "attn_diag_host/callouts.h"

namespace attn_diag::host {
namespace {

// "fa1_kernel(int)::sK" as "fa1_kernel(int)" and "sK".
StaticArray declaration_of(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  const std::string name = status == 0 ? text.get() : symbol;
  const std::size_t colons = name.rfind("::");
  StaticArray array;
  array.name = colons == std::string::npos ? name : name.substr(colons + 2);
  if (colons != std::string::npos) array.function = name.substr(0, colons);
  return array;
}

// The extents that a symbol beside a variable says; else not known.
ArrayShape shape_in(std::string_view symbol) {
  if (!symbol.starts_with(callouts::kShapePrefix)) return {};
  symbol.remove_prefix(std::string_view(callouts::kShapePrefix).size());
  return parse_shape(symbol.substr(0, symbol.find('.')));
}

// By where the variables begin.
using Shapes = std::map<std::uintptr_t, ArrayShape>;

std::vector<StaticArray> with_shapes(std::vector<StaticArray> arrays, const Shapes& shapes) {
  for (StaticArray& array : arrays)
    if (const auto shape = shapes.find(array.begin); shape != shapes.end())
      array.shape = shape->second;
  return arrays;
}

using Sections = std::vector<ElfW(Shdr)>;

// Calls act(symbol, its name, sections) for every symbol of the library's own table.
template <class Act>
void for_each_symbol(const KernelLibrary& library, const Act& act) {
  std::ifstream file(library.is_main_program ? "/proc/self/exe" : library.path, std::ios::binary);
  const auto read = [&](auto* to, std::uint64_t at, std::size_t count) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof *to));
    return static_cast<bool>(file);
  };
  ElfW(Ehdr) header;
  if (!read(&header, 0, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  Sections sections(header.e_shnum);
  if (!read(sections.data(), header.e_shoff, sections.size())) return;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    std::vector<ElfW(Sym)> symbols(section.sh_size / sizeof(ElfW(Sym)));
    std::vector<char> names(sections[section.sh_link].sh_size + 1);
    if (!read(symbols.data(), section.sh_offset, symbols.size()) ||
        !read(names.data(), sections[section.sh_link].sh_offset, names.size() - 1))
      return;
    for (const ElfW(Sym) & symbol : symbols)
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0 && symbol.st_name < names.size())
        act(symbol, &names[symbol.st_name], sections);
  }
}

std::vector<StaticArray> sorted(std::vector<StaticArray> arrays) {
  std::sort(arrays.begin(), arrays.end(),
            [](const StaticArray& a, const StaticArray& b) { return a.begin < b.begin; });
  return arrays;
}

}  // namespace

std::string declared_name(const char* symbol) { return declaration_of(symbol).name; }

std::vector<StaticArray> static_arrays(const KernelLibrary& library) {
  std::vector<StaticArray> arrays;
  Shapes shapes;
  for_each_symbol(library, [&](const ElfW(Sym) & symbol, const char* name, const Sections&) {
    if ((symbol.st_info & 0xF) != STT_TLS) return;
    // What lies around variables (attn_diag_host/static_shared.h).
    const std::string_view text = name;
    if (text.find("attn_diag_guard_") != text.npos || text.find("static_shared_be") != text.npos)
      return;
    if (const ArrayShape shape = shape_in(text); shape.is_known())
      return void(shapes[symbol.st_value] = shape);
    StaticArray array = declaration_of(name);
    array.begin = symbol.st_value;
    array.bytes = symbol.st_size;
    array.is_guard = std::strncmp(name, "_ZGV", 4) == 0;
    arrays.push_back(std::move(array));
  });
  return sorted(with_shapes(std::move(arrays), shapes));
}

std::vector<StaticArray> device_variables(const KernelLibrary& library) {
  std::vector<StaticArray> variables;
  std::set<std::uintptr_t> guards;
  Shapes shapes;
  if (library.is_main_program) return variables;  // its variables are not kernels' alone
  for_each_symbol(library, [&](const ElfW(Sym) & symbol, const char* name, const Sections& all) {
    if ((symbol.st_info & 0xF) != STT_OBJECT || symbol.st_shndx >= all.size()) return;
    const ElfW(Shdr)& section = all[symbol.st_shndx];
    const bool is_data = section.sh_type == SHT_NOBITS || section.sh_type == SHT_PROGBITS;
    if (!is_data || (section.sh_flags & SHF_ALLOC) == 0 || std::strncmp(name, "_ZT", 3) == 0)
      return;
    if (std::string_view(name).starts_with(callouts::kGuardPrefix))
      return void(guards.insert(symbol.st_value));
    if (const ArrayShape shape = shape_in(name); shape.is_known())
      return void(shapes[symbol.st_value] = shape);
    StaticArray variable = declaration_of(name);
    variable.begin = symbol.st_value;
    variable.bytes = symbol.st_size;
    variable.is_constant = (section.sh_flags & SHF_WRITE) == 0;
    variables.push_back(std::move(variable));
  });
  for (StaticArray& variable : variables) {
    const auto guard = guards.upper_bound(variable.begin);
    if (guard == guards.end() || *guard >= variable.begin + variable.bytes) continue;
    variable.bytes = *guard - variable.begin;
    variable.guard_bytes = callouts::kGuardBytes;
  }
  return sorted(with_shapes(std::move(variables), shapes));
}

}  // namespace attn_diag::host
