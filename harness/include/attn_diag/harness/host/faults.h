// Accesses of kernels that end a process: null, unmapped or misaligned addresses.
#pragma once

namespace attn_diag::host {

// From now on they are findings of the launch (LaunchFindingKind::kIllegalAddress), which ends, and not crashes
// of the process. Misaligned ones always are, and all in launches that are checked, where the launch goes on
// with the next block.
// Nothing under AddressSanitizer, which reports them itself.
void make_faults_findings();

}  // namespace attn_diag::host
