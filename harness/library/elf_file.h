// What kind of file a library is, where the loader does not say it well.
#pragma once

#include <string>

namespace attn_diag {

// Why the file cannot be a library of this machine, as a sentence: "It is no ELF file.", "It was built for
// AArch64, and this program for x86-64."; empty where its header gives no reason.
std::string why_foreign(const std::string& path);

}  // namespace attn_diag
