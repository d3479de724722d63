#include "harness/library/elf_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <fstream>

namespace attn_diag {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;  // not known: any will do
#endif

std::string machine_name(int machine) {
  switch (machine) {
    case EM_386:
      return "32-bit x86";
    case EM_X86_64:
      return "x86-64";
    case EM_ARM:
      return "32-bit ARM";
    case EM_AARCH64:
      return "AArch64";
    case EM_PPC64:
      return "POWER";
    case EM_RISCV:
      return "RISC-V";
    case EM_CUDA:
      return "GPUs (a cubin, not a library)";
    default:
      return fmt::format("another machine (number {})", machine);
  }
}

}  // namespace

std::string why_foreign(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto size = static_cast<std::size_t>(file.gcount());
  if (size == 0) return "It is empty.";
  if (size < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return "It is no ELF file, as shared libraries are.";
  if (size < sizeof header) return "It is cut short.";
  if (kMachine != EM_NONE && header.e_machine != kMachine)
    return fmt::format("It was built for {}, and this program for {}.",
                       machine_name(header.e_machine), machine_name(kMachine));
  if (header.e_type != ET_DYN) return "It is no shared library: link it with -shared.";
  return "";
}

}  // namespace attn_diag
