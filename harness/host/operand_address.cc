#include "harness/host/operand_address.h"

#include <ucontext.h>

#include <cstring>

namespace attn_diag::host {

#if defined(__x86_64__)
namespace {

constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};

// What the prefixes of an instruction say of its operand.
struct Prefixes {
  bool extend_index = false, extend_base = false;
  std::int64_t displacement_unit = 1;  // of one byte
  bool understood = true;
};

// Reads prefixes and opcode; `at` ends at the ModRM byte. (Intel SDM, volume 2, chapter 2.)
Prefixes read_prefixes(const unsigned char*& at) {
  Prefixes p;
  while (*at == 0x66 || *at == 0xF2 || *at == 0xF3 || *at == 0x2E || *at == 0x36 || *at == 0x3E ||
         *at == 0x26)
    ++at;
  if (*at == 0xC5) {
    at += 3;
  } else if (*at == 0xC4 || *at == 0x62) {
    const bool evex = *at == 0x62;
    p.extend_index = (at[1] & 0x40) == 0;
    p.extend_base = (at[1] & 0x20) == 0;
    // The unit for moves of whole registers; others need no alignment.
    if (evex) p.displacement_unit = 16 << ((at[3] >> 5) & 3);
    at += evex ? 5 : 4;
  } else {
    if ((*at & 0xF0) == 0x40) {
      p.extend_index = (*at & 2) != 0;
      p.extend_base = (*at & 1) != 0;
      ++at;
    }
    if (*at != 0x0F) {
      p.understood = false;
      return p;
    }
    at += at[1] == 0x38 || at[1] == 0x3A ? 3 : 2;
  }
  return p;
}

}  // namespace

std::optional<std::uintptr_t> operand_address(const void* signal_context) {
  const auto& registers = static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs;
  const auto* at = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  const Prefixes prefixes = read_prefixes(at);
  if (!prefixes.understood) return std::nullopt;
  const unsigned mode = *at >> 6, low = *at & 7;
  ++at;
  if (mode == 3) return std::nullopt;
  std::int64_t address = 0;
  bool wide = mode == 2;
  if (low == 4) {
    const unsigned scale = *at >> 6, index = (*at >> 3 & 7) + (prefixes.extend_index ? 8 : 0),
                   base = *at & 7;
    ++at;
    if (index != 4) address += registers[kRegisters[index]] << scale;
    if (base == 5 && mode == 0)
      wide = true;
    else
      address += registers[kRegisters[base + (prefixes.extend_base ? 8 : 0)]];
  } else if (low == 5 && mode == 0) {
    // From the next instruction; moves have nothing behind the displacement.
    wide = true;
    address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at)) + 4;
  } else {
    address = registers[kRegisters[low + (prefixes.extend_base ? 8 : 0)]];
  }
  if (wide) {
    std::int32_t displacement = 0;
    std::memcpy(&displacement, at, sizeof displacement);
    address += displacement;
  } else if (mode == 1) {
    address += static_cast<signed char>(*at) * prefixes.displacement_unit;
  }
  return static_cast<std::uintptr_t>(address);
}
#else
std::optional<std::uintptr_t> operand_address(const void*) { return std::nullopt; }
#endif

}  // namespace attn_diag::host
