#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/toolchain/build/build.h"

namespace attn_diag::build {

bool exports_symbol(const std::filesystem::path& library, const std::string& symbol) {
  std::ifstream file(library, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto read = [&](auto* to, std::size_t at) {
    if (at > bytes.size() || bytes.size() - at < sizeof *to) return false;
    std::memcpy(to, bytes.data() + at, sizeof *to);
    return true;
  };
  ElfW(Ehdr) header;
  if (!read(&header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section, names;
    if (!read(&section, header.e_shoff + i * sizeof section)) return false;
    if (section.sh_type != SHT_DYNSYM) continue;
    if (!read(&names, header.e_shoff + section.sh_link * sizeof names)) return false;
    for (std::size_t at = 0; at + sizeof(ElfW(Sym)) <= section.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) entry;
      if (!read(&entry, section.sh_offset + at)) return false;
      if (entry.st_shndx == SHN_UNDEF) continue;
      const std::size_t name = names.sh_offset + entry.st_name;
      if (name < bytes.size() && symbol == bytes.c_str() + name) return true;
    }
  }
  return false;
}

}  // namespace attn_diag::build
