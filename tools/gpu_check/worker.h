// What one child process does for the agreement sections: one kernel, every case, on host and GPU.
#pragma once

#include <string>

namespace attn_diag::gpu_check {

// Prints one JSON object a line for each check: section, name, verdict ("passed", "failed", "skipped")
// and why. Each line is written before the next check begins, so that what was found before a crash
// is known. Throws Error if the kernel cannot be loaded.
void agreement_worker(const std::string& kernel, bool quick);

}  // namespace attn_diag::gpu_check
