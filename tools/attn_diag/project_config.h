// attn-diag.toml: a project's defaults of flags, found in the working directory or in a folder above it.
//
//   [defaults]            # of every command that has the flag
//   dtype = "bf16"
//   seqlen = [300, 301]   # as --seqlen 300,301
//   [trace]               # of one command; these win over [defaults]
//   mask = "causal"
//   no-sanity = true
#pragma once

#include <string>
#include <vector>

#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

// Adds to `args` the flags that the file sets and that were not given, and --no-config, so that the line means the same
// everywhere; `line` becomes what it then says. Throws Error for a file that is not right, whichever command runs.
ProjectDefaults take_project_defaults(std::vector<std::string>& args, CommandLine& line);

}  // namespace attn_diag::cli
