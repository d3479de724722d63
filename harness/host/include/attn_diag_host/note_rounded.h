// For code of ours on the host that rounds what a kernel stored.
#pragma once

namespace attn_diag::host {

// A number of so many bytes at `to` is now the one at `from`, rounded: in a watch build it keeps its line.
void note_rounded(void* to, unsigned to_bytes, const void* from, unsigned from_bytes);

}  // namespace attn_diag::host
