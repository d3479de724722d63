// attn-diag trace --variable: the values of one variable.
#pragma once

#include "attn_diag/harness/kernel.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

CommandResult variable_command(const Session& session, RequestedCase& one, const Kernel& kernel);

}  // namespace attn_diag::cli
