// 32-bit addresses of the running block's shared memory, as inline PTX uses them, and what a pointer
// points to. As on a device the window starts with what the system keeps, so that 0 is never valid;
// static shared memory comes first, then dynamic, at a multiple of 1024. Findings: an address or pointer
// that is not the block's shared memory.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// The 32-bit address of a byte of shared memory, or of its end.
std::uint32_t shared_address(const void* generic, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE());
void* shared_pointer(std::uint32_t address, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE());

// Whether a pointer is to the block's shared memory; to the calling thread's own.
bool is_shared(const void* generic);
bool is_local(const void* generic);

}  // namespace attn_diag::host
