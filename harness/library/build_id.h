// The GNU build id of a loaded library.
#pragma once

#include <string>

namespace attn_diag {

// The build id of the loaded object that contains `address`, in hex; empty if it was linked without one.
std::string build_id_at(const void* address);

}  // namespace attn_diag
