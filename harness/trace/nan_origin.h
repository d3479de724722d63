// Where the first NaN was made, as far as what was recorded says.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"

namespace attn_diag {

// Sentences without a full stop; none where nothing recorded is NaN: which inputs hold NaN or infinity; the
// first tensor of the pipeline with NaN, its first cell, and what was recorded before it without; which rows of o are
// NaN, and, if they are the rows that see some key, which key.
std::vector<std::string> where_nan_begins(const Capture& capture);

}  // namespace attn_diag
