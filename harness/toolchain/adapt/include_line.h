// How an adapter gets the code that it calls.
#pragma once

#include <string>

#include "harness/toolchain/adapt/adapt.h"

namespace attn_diag::adapt {

// The #include of the source. Where #include cannot spell its name, which has a line end in it, the text itself.
std::string include_line(const AdaptRequest& request, bool& holds_source);

}  // namespace attn_diag::adapt
