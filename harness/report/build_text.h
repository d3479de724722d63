// What `attn-diag build` says, as text and as JSON.
#pragma once

#include <string>

#include "harness/report/json.h"
#include "harness/report/text.h"
#include "harness/toolchain/build/build.h"

namespace attn_diag::report {

// Errors and what compilers said, for stderr.
std::string build_messages(const build::BuildRecord& record);
// What was written; with `explain`, what was translated.
std::string build_text(const build::BuildRecord& record, bool explain, const Style& style);
Json build_json(const build::BuildRecord& record, const CommandContext& context);

}  // namespace attn_diag::report
