#include "harness/host/kernel_library.h"

#include <dlfcn.h>
#include <link.h>

#include "attn_diag/harness/host/symbolizer.h"
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

std::string_view without_last(std::string_view name, char open, char close) {
  if (!name.ends_with(close)) return name;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    depth += name[i] == close ? 1 : name[i] == open ? -1 : 0;
    if (depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string without_signature(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  return std::string(without_last(name, '(', ')'));
}

std::string kernel_name(const void* kernel) {
  const KernelLibrary library = find_library(kernel);
  const std::string path = library.is_main_program ? "/proc/self/exe" : library.path;
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(kernel) - library.base;
  const std::string name = function_name(path, offset);
  if (name.empty()) return concat("(nameless, ", path, "+0x", std::hex, offset, ")");
  return without_signature(name);
}

std::string kernel_name(const KernelCall& call) {
  return call.name != nullptr ? call.name : kernel_name(call.kernel);
}

}  // namespace attn_diag::host
