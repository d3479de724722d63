// The memory that an instruction reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace attn_diag::host {

// The address that the instruction at which a signal was raised accesses, from the registers in the signal's
// context. None: the instruction is not understood, or has no operand in memory. Needed where a vector
// instruction finds its operand misaligned: the processor does not say the address. Safe in signal handlers.
std::optional<std::uintptr_t> operand_address(const void* signal_context);

}  // namespace attn_diag::host
