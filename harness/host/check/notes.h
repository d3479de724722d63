// What functions of the executor that kernels call tell the checker, if there is one.
#pragma once

#include <cstddef>

namespace attn_diag::host {

// The calling thread is about to change memory atomically. `pc`: where the kernel asked for it.
void note_atomic(const void* memory, std::size_t bytes, bool reads, const void* pc);
void note_fence(bool device = true);  // or of the block

// Memory of the device is allocated and freed; the host writes to it.
void note_allocated(const void* memory, std::size_t bytes, const char* what, bool initialised);
void note_freed(const void* memory);
void note_host_wrote(const void* memory, std::size_t bytes);

}  // namespace attn_diag::host
