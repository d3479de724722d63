// Commands run a user's code in a child process, so that whatever it does is reported and not suffered.
#pragma once

#include <functional>

#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

// Whether the command runs code of a user and was not asked to stay in this process.
bool wants_child(const Flags& flags);

// Runs `command` in a child and returns its exit code. Where the child does not come to its end, reports
// that (on stderr; as JSON and JUnit where the session asks for them), removes the temporary files it
// left, and returns 2. Signals that ask this process to end go to the child, and end both. To be called
// before there are threads, and before HDF5 and CUDA are used. Throws Error for a bad --timeout.
int run_in_child(const Session& session, const std::function<int()>& command);

}  // namespace attn_diag::cli
