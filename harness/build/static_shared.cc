// How much static shared memory kernels have: the thread-local variables of their functions, by the
// symbol table of the finished library.
#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "harness/build/build_steps.h"

namespace attn_diag::build {
namespace {

struct SharedArray {
  std::string function, name;
  std::size_t bytes;
};

// "kernel(int)::sK" as {"kernel(int)", "sK"}; an empty name for what is no variable of a function.
SharedArray array_of(const char* symbol, std::size_t bytes) {
  const bool is_local = std::strncmp(symbol, "_ZZ", 3) == 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      is_local ? abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr) : nullptr, std::free);
  const std::string whole = text ? text.get() : "";
  const std::size_t colons = whole.rfind("::");
  if (colons == std::string::npos) return {};
  return {whole.substr(0, colons), whole.substr(colons + 2), bytes};
}

std::vector<SharedArray> shared_arrays(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto read = [&](auto* to, std::size_t at) {
    if (at > bytes.size() || bytes.size() - at < sizeof *to) return false;
    std::memcpy(to, bytes.data() + at, sizeof *to);
    return true;
  };
  std::vector<SharedArray> found;
  ElfW(Ehdr) header;
  if (!read(&header, 0)) return found;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section, names;
    if (!read(&section, header.e_shoff + i * sizeof section)) break;
    if (section.sh_type != SHT_SYMTAB) continue;
    if (!read(&names, header.e_shoff + section.sh_link * sizeof names)) break;
    for (std::size_t at = 0; at + sizeof(ElfW(Sym)) <= section.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) entry;
      if (!read(&entry, section.sh_offset + at)) break;
      const std::size_t name = names.sh_offset + entry.st_name;
      if (ELF64_ST_TYPE(entry.st_info) != STT_TLS || name >= bytes.size()) continue;
      SharedArray array = array_of(bytes.c_str() + name, entry.st_size);
      if (!array.name.empty()) found.push_back(std::move(array));
    }
  }
  return found;
}

}  // namespace

std::size_t static_shared_limit(const std::string& arch) {
  // What ptxas says of each: 48 KB, but all that a block can have where code is for one architecture
  // alone (sm_90a, sm_100f, ...).
  if (arch.empty() || (arch.back() != 'a' && arch.back() != 'f')) return 48 * 1024;
  return (arch_number(arch)[0] == '1' && arch_number(arch)[1] == '2' ? 99 : 227) * 1024;
}

std::string static_shared_excess(const std::filesystem::path& library, const std::string& arch) {
  std::map<std::string, std::vector<SharedArray>> by_function;
  for (SharedArray& array : shared_arrays(library)) {
    std::vector<SharedArray>& arrays = by_function[array.function];
    arrays.push_back(std::move(array));
  }
  const std::size_t limit = static_shared_limit(arch);
  std::string messages;
  for (const auto& [function, arrays] : by_function) {
    std::size_t total = 0;
    std::string list;
    for (const SharedArray& array : arrays) {
      total += array.bytes;
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", array.name, array.bytes);
    }
    if (total > limit)
      messages += fmt::format(
          "error: {} has {} bytes of static shared memory ({}), but {} allows {}. Make the arrays "
          "smaller, or dynamic (extern __shared__, with cudaFuncSetAttribute).\n",
          function, total, list, arch, limit);
  }
  return messages;
}

}  // namespace attn_diag::build
