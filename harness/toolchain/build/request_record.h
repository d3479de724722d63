// What a library was built by, kept in it, so that the same can be built again.
//
// The library exports it as bytes, the array attn_diag_build_request, which are read from the file: no code of
// the library runs for it.
#pragma once

#include <string>

#include "harness/toolchain/build/build.h"

namespace attn_diag::build {

// C++ that defines the array. Paths are kept absolute; the output's is not kept.
std::string request_code(const BuildRequest& request);

}  // namespace attn_diag::build
