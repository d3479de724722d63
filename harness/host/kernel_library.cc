#include "harness/host/kernel_library.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <memory>

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
    }
  }
  if (!found) return 0;
  library.path = info->dlpi_name;
  library.is_main_program = library.path.empty();
  search.library = library;
  return 1;
}

std::string demangle(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : symbol;
}

}  // namespace

KernelLibrary find_library(const void* kernel) {
  Search search{reinterpret_cast<std::uintptr_t>(kernel), {}};
  dl_iterate_phdr(visit_object, &search);
  return search.library;
}

void* thread_storage(const KernelLibrary& library) {
  TlsIndex index{library.tls_module, 0};
  return __tls_get_addr(&index);
}

std::string kernel_name(const void* kernel) {
  Dl_info info{};
  if (dladdr(kernel, &info) == 0 || info.dli_sname == nullptr || info.dli_saddr != kernel)
    return "(unnamed kernel)";
  return demangle(info.dli_sname);
}

}  // namespace attn_diag::host
