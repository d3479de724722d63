#include "harness/toolchain/build/symbols.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "harness/toolchain/build/build.h"

namespace attn_diag::build {
namespace {

// A file that may be anything: each read says whether it was within the file.
struct ElfBytes {
  std::string bytes;
  ElfW(Ehdr) header{};

  template <class T>
  bool read(T* to, std::size_t at) const {
    if (at > bytes.size() || bytes.size() - at < sizeof *to) return false;
    std::memcpy(to, bytes.data() + at, sizeof *to);
    return true;
  }
};

std::optional<ElfBytes> read_elf(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  ElfBytes elf;
  elf.bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!elf.read(&elf.header, 0) || std::memcmp(elf.header.e_ident, ELFMAG, SELFMAG) != 0)
    return std::nullopt;
  return elf;
}

std::optional<ElfW(Sym)> find_symbol(const ElfBytes& elf, const std::string& symbol) {
  for (std::size_t i = 0; i < elf.header.e_shnum; ++i) {
    ElfW(Shdr) section, names;
    if (!elf.read(&section, elf.header.e_shoff + i * sizeof section)) return std::nullopt;
    if (section.sh_type != SHT_DYNSYM) continue;
    if (!elf.read(&names, elf.header.e_shoff + section.sh_link * sizeof names)) return std::nullopt;
    for (std::size_t at = 0; at + sizeof(ElfW(Sym)) <= section.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) entry;
      if (!elf.read(&entry, section.sh_offset + at)) return std::nullopt;
      if (entry.st_shndx == SHN_UNDEF) continue;
      const std::size_t name = names.sh_offset + entry.st_name;
      if (name < elf.bytes.size() && symbol == elf.bytes.c_str() + name) return entry;
    }
  }
  return std::nullopt;
}

// Where in the file an address of the loaded library comes from.
std::optional<std::size_t> file_offset(const ElfBytes& elf, std::size_t address, std::size_t size) {
  for (std::size_t i = 0; i < elf.header.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (!elf.read(&part, elf.header.e_phoff + i * sizeof part)) return std::nullopt;
    if (part.p_type != PT_LOAD || address < part.p_vaddr) continue;
    const std::size_t within = address - part.p_vaddr;
    if (within <= part.p_filesz && part.p_filesz - within >= size) return part.p_offset + within;
  }
  return std::nullopt;
}

}  // namespace

bool exports_symbol(const std::filesystem::path& library, const std::string& symbol) {
  const std::optional<ElfBytes> elf = read_elf(library);
  return elf && find_symbol(*elf, symbol);
}

std::optional<std::string> symbol_bytes(const std::filesystem::path& library,
                                        const std::string& symbol) {
  const std::optional<ElfBytes> elf = read_elf(library);
  const std::optional<ElfW(Sym)> found = elf ? find_symbol(*elf, symbol) : std::nullopt;
  if (!found) return std::nullopt;
  const std::optional<std::size_t> at = file_offset(*elf, found->st_value, found->st_size);
  if (!at || *at > elf->bytes.size() || elf->bytes.size() - *at < found->st_size)
    return std::nullopt;
  return elf->bytes.substr(*at, found->st_size);
}

}  // namespace attn_diag::build
