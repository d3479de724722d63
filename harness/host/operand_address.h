// The memory that an instruction reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace attn_diag::host {

// Of the instruction at which a signal was raised, from the registers of the signal's context. None: the
// instruction is not understood, or has no operand in memory. A processor does not say which address it was
// where a vector instruction finds it misaligned. Safe in signal handlers.
std::optional<std::uintptr_t> operand_address(const void* signal_context);

}  // namespace attn_diag::host
