// The flags of what is written, for dump and for trace -o.
#pragma once

#include <string>

#include "attn_diag/harness/dump.h"
#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

DumpOptions parse_dump_options(const Flags& flags);

// Throws before long work what write_dump would throw after it.
void require_writable(const std::string& path, bool force);

// The flags given, as words behind a space, for a command line that does the same again.
std::string dump_words(const Flags& flags);

}  // namespace attn_diag::cli
