#include "harness/library/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace attn_diag {
namespace {

struct Search {
  std::uintptr_t address;
  std::string build_id;
};

// The description of the NT_GNU_BUILD_ID note in [note, end), in hex; empty if there is none.
std::string find_build_id(const unsigned char* note, const unsigned char* end) {
  const auto padded = [](std::uint32_t size) { return (std::size_t{size} + 3) / 4 * 4; };
  while (static_cast<std::size_t>(end - note) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const unsigned char* const name = note + sizeof header;
    const unsigned char* const description = name + padded(header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0) {
      std::string hex;
      for (std::uint32_t i = 0; i < header.n_descsz; ++i) {
        hex += "0123456789abcdef"[description[i] >> 4];
        hex += "0123456789abcdef"[description[i] & 15];
      }
      return hex;
    }
    note = description + padded(header.n_descsz);
  }
  return {};
}

int visit_object(dl_phdr_info* object, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  bool contains = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    contains = contains || (segment.p_type == PT_LOAD && search.address >= begin &&
                            search.address < begin + segment.p_memsz);
  }
  if (!contains) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const notes =
        reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    search.build_id = find_build_id(notes, notes + segment.p_memsz);
  }
  return 1;  // found the object: stop
}

}  // namespace

std::string build_id_at(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(visit_object, &search);
  return search.build_id;
}

}  // namespace attn_diag
