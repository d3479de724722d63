#include "harness/host/kernel_library.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "harness/host/text.h"

// The ELF ABI's accessor of thread-local storage. dl_iterate_phdr shows a module's block only once
// a thread has touched it; this allocates it.
struct TlsIndex {
  unsigned long module, offset;
};
extern "C" void* __tls_get_addr(TlsIndex*);

namespace attn_diag::host {
namespace {

struct Search {
  std::uintptr_t kernel;
  KernelLibrary library;
};

int visit_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  KernelLibrary library;
  bool found = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search.kernel - begin < segment.p_memsz) {
      found = true;
      library.code_begin = begin;
      library.code_end = begin + segment.p_memsz;
    }
    if (segment.p_type == PT_TLS && segment.p_memsz > 0) {
      library.tls_module = info->dlpi_tls_modid;
      library.tls_bytes = segment.p_memsz;
      library.tls_alignment = segment.p_align;
    }
  }
  if (!found) return 0;
  library.path = info->dlpi_name;
  library.is_main_program = library.path.empty();
  library.base = info->dlpi_addr;
  search.library = library;
  return 1;
}

// Known before any signal handler asks.
const std::size_t g_tls_accessor_bytes = []() -> std::size_t {
  Dl_info info;
  void* symbol = nullptr;
  const int found =
      dladdr1(reinterpret_cast<const void*>(&__tls_get_addr), &info, &symbol, RTLD_DL_SYMENT);
  return found == 0 || symbol == nullptr ? 0 : static_cast<const ElfW(Sym)*>(symbol)->st_size;
}();

std::string demangle(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : symbol;
}

// The name of the function at `offset` in the ELF file's symbol table, which unlike the dynamic one
// has the functions that the library does not export. Empty: no such file, stripped, or not found.
std::string find_symbol(const std::string& path, std::uintptr_t offset) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](auto* to, std::uint64_t at, std::size_t count) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof *to));
    return static_cast<bool>(file);
  };
  ElfW(Ehdr) header;
  if (!read(&header, 0, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (!read(sections.data(), header.e_shoff, sections.size())) return "";
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    std::vector<ElfW(Sym)> symbols(section.sh_size / sizeof(ElfW(Sym)));
    if (!read(symbols.data(), section.sh_offset, symbols.size())) return "";
    for (const ElfW(Sym) & symbol : symbols) {
      if (symbol.st_value != offset || (symbol.st_info & 0xF) != STT_FUNC) continue;
      const ElfW(Shdr)& names = sections[section.sh_link];
      file.seekg(static_cast<std::streamoff>(names.sh_offset + symbol.st_name));
      std::string name;
      std::getline(file, name, '\0');
      return name;
    }
  }
  return "";
}

}  // namespace

bool is_in_tls_accessor(std::uintptr_t pc) {
  return pc - reinterpret_cast<std::uintptr_t>(&__tls_get_addr) < g_tls_accessor_bytes;
}

KernelLibrary find_library(const void* kernel) {
  Search search{reinterpret_cast<std::uintptr_t>(kernel), {}};
  dl_iterate_phdr(visit_object, &search);
  return search.library;
}

void* thread_storage(const KernelLibrary& library) {
  TlsIndex index{library.tls_module, 0};
  return __tls_get_addr(&index);
}

std::string without_signature(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  if (!name.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string kernel_name(const void* kernel) {
  const KernelLibrary library = find_library(kernel);
  const std::string path = library.is_main_program ? "/proc/self/exe" : library.path;
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(kernel) - library.base;
  const std::string symbol = find_symbol(path, offset);
  if (symbol.empty()) return concat("(nameless, ", path, "+0x", std::hex, offset, ")");
  return without_signature(demangle(symbol.c_str()));
}

std::string kernel_name(const KernelCall& call) {
  return call.name != nullptr ? call.name : kernel_name(call.kernel);
}

}  // namespace attn_diag::host
