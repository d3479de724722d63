#include "attn_diag/harness/host/symbolizer.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "attn_diag_host/stand_in_headers.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

// `function` may be the inlined copy of one.
std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  for (const unsigned which : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name})
    if (const char* const name =
            dwarf_formstring(dwarf_attr_integrate(function, which, &attribute)))
      return demangled(name);
  return "";
}

class DebugInfo {
 public:
  // No path: the main program.
  explicit DebugInfo(const std::string& path)
      : x_file(open(path.empty() ? "/proc/self/exe" : path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (x_file >= 0) x_dwarf = dwarf_begin(x_file, DWARF_C_READ);
  }
  ~DebugInfo() {
    if (x_rules != nullptr) dwarf_cfi_end(x_rules);
    if (x_dwarf != nullptr) dwarf_end(x_dwarf);
    if (x_file >= 0) close(x_file);
  }
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  struct At {
    std::vector<SourcePlace> places;
    bool is_described = false;  // by a unit, which may give no line
  };
  // The line at an address, then the calls that were inlined around it, innermost first. Units are asked
  // one by one: not every compiler writes an index of addresses.
  At places_at(Dwarf_Addr at) {
    At found;
    if (x_dwarf == nullptr) return found;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    while (dwarf_get_units(x_dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0)
      if (dwarf_haspc(&die, at) > 0) {
        found.is_described = true;
        found.places = places_in(die, at);
        if (!found.places.empty()) break;
      }
    return found;
  }

  // Where a call stores the return address right below the frame that it begins: on x86-64.
  std::optional<std::int64_t> return_address_at(Dwarf_Addr at) {
    constexpr unsigned kStackPointer = 7;
    if (!kReturnsOnStack || x_dwarf == nullptr) return std::nullopt;
    if (x_rules == nullptr) x_rules = dwarf_getcfi_elf(dwarf_getelf(x_dwarf));
    Dwarf_Frame* frame = nullptr;
    if (x_rules == nullptr || dwarf_cfi_addrframe(x_rules, at, &frame) != 0) return std::nullopt;
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> owner(frame, &std::free);
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_frame_cfa(frame, &operations, &count) != 0 || count != 1) return std::nullopt;
    const Dwarf_Op& one = operations[0];
    if (one.atom == DW_OP_bregx && one.number == kStackPointer)
      return static_cast<std::int64_t>(one.number2) - kWord;
    if (one.atom == DW_OP_breg0 + kStackPointer)
      return static_cast<std::int64_t>(one.number) - kWord;
    return std::nullopt;
  }

 private:
  static constexpr std::int64_t kWord = sizeof(void*);
#if defined(__x86_64__)
  static constexpr bool kReturnsOnStack = true;
#else
  static constexpr bool kReturnsOnStack = false;
#endif

  // Functions, inlined ones within, that have the address: outermost first.
  static void find_functions(Dwarf_Die* parent, Dwarf_Addr at, std::vector<Dwarf_Die>& found) {
    Dwarf_Die die;
    if (dwarf_child(parent, &die) != 0) return;
    do {
      const int tag = dwarf_tag(&die);
      const bool is_function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
      const bool is_scope = tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
                            tag == DW_TAG_class_type;  // which have no addresses of their own
      if (is_function || tag == DW_TAG_lexical_block) {
        if (dwarf_haspc(&die, at) <= 0) continue;
        if (is_function) found.push_back(die);
        return find_functions(&die, at, found);
      }
      if (!is_scope) continue;
      const std::size_t before = found.size();
      find_functions(&die, at, found);
      if (found.size() != before) return;
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  static std::vector<SourcePlace> places_in(Dwarf_Die unit, Dwarf_Addr at) {
    std::vector<SourcePlace> places;
    Dwarf_Line* const row = dwarf_getsrc_die(&unit, at);
    SourcePlace place;
    const char* const file = row == nullptr ? nullptr : dwarf_linesrc(row, nullptr, nullptr);
    if (file == nullptr || dwarf_lineno(row, &place.line) != 0 || place.line == 0) return places;
    place.file = file;
    std::vector<Dwarf_Die> functions;
    find_functions(&unit, at, functions);
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0) files = nullptr;
    for (; !functions.empty(); functions.pop_back()) {
      Dwarf_Die* const function = &functions.back();
      place.function = name_of(function);
      places.push_back(place);
      if (dwarf_tag(function) != DW_TAG_inlined_subroutine) return places;
      // The call of it, in the next function.
      Dwarf_Attribute attribute;
      Dwarf_Word number = 0, line = 0;
      if (files == nullptr ||
          dwarf_formudata(dwarf_attr(function, DW_AT_call_file, &attribute), &number) != 0 ||
          dwarf_formudata(dwarf_attr(function, DW_AT_call_line, &attribute), &line) != 0)
        return places;
      const char* const caller = dwarf_filesrc(files, number, nullptr, nullptr);
      if (caller == nullptr) return places;
      place = {caller, static_cast<int>(line), ""};
    }
    places.push_back(place);
    return places;
  }

  int x_file;
  Dwarf_CFI* x_rules = nullptr;  // of call frames
  Dwarf* x_dwarf = nullptr;
};

// The name of the function that holds `offset` in the symbol table of type `type`; empty: no such file,
// table or function.
std::string find_symbol(const std::string& path, std::uint64_t offset, std::uint32_t type) {
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
    if (section.sh_type != type || section.sh_link >= sections.size()) continue;
    std::vector<ElfW(Sym)> symbols(section.sh_size / sizeof(ElfW(Sym)));
    if (!read(symbols.data(), section.sh_offset, symbols.size())) return "";
    for (const ElfW(Sym) & symbol : symbols) {
      if (symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xF) != STT_FUNC) continue;
      if (symbol.st_value != offset && offset - symbol.st_value >= symbol.st_size) continue;
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

std::string symbol_name(const std::string& path, std::uint64_t offset) {
  // The dynamic table lacks the functions that a library does not export.
  std::string name = find_symbol(path, offset, SHT_SYMTAB);
  return name.empty() ? find_symbol(path, offset, SHT_DYNSYM) : name;
}

std::string function_name(const std::string& path, std::uint64_t offset) {
  const std::string name = symbol_name(path, offset);
  return name.empty() ? name : demangled(name.c_str());
}

std::vector<SourcePlace> users_places(std::vector<SourcePlace> places) {
  const auto own = std::find_if_not(places.begin(), places.end(), [](const SourcePlace& place) {
    return is_stand_in_header(place.file);
  });
  if (own != places.end()) places.erase(places.begin(), own);
  return places;
}

std::map<std::uint64_t, std::int64_t> find_frames(const std::string& library,
                                                  const std::vector<std::uint64_t>& offsets) {
  std::map<std::uint64_t, std::int64_t> frames;
  DebugInfo info(library);
  for (const std::uint64_t offset : offsets)
    if (const std::optional<std::int64_t> at = info.return_address_at(offset - 1))
      frames[offset] = *at;
  return frames;
}

SourceLines find_source_lines(const std::string& library,
                              const std::vector<std::uint64_t>& offsets) {
  SourceLines result;
  if (offsets.empty()) return result;
  DebugInfo info(library);
  bool any = false;
  for (const std::uint64_t offset : offsets) {
    // The call is before the address that it returns to.
    DebugInfo::At at = info.places_at(offset > 0 ? offset - 1 : 0);
    any = any || at.is_described;
    if (at.is_described && at.places.empty()) result.without_line.insert(offset);
    result.places[offset] = std::move(at.places);
  }
  if (!any)
    result.problem = concat(library.empty() ? "the main program" : library,
                            " has no debug information (-g1): places are given as offsets into it");
  return result;
}

}  // namespace attn_diag::host
