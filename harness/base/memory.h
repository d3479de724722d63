// How much memory there is to allocate, and sizes for people to read.
#pragma once

#include <string>

namespace attn_diag {

// Bytes that can be allocated without swapping, by the machine and by the control group this
// process runs in. 0 if that cannot be found out.
double available_memory();

// "512 bytes", "1.5 MiB", "37.3 GiB".
std::string readable_bytes(double bytes);

}  // namespace attn_diag
