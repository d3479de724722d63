// The manual page, from the table of commands and flags.
#pragma once

#include <string>
#include <vector>

#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

// attn-diag.1, for man(7). It holds no date: what it says depends on the table alone.
std::string man_page(const std::vector<CommandText>& commands);

}  // namespace attn_diag::cli
