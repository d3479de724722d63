// Which array is q, which is k: by what the user says, or by their names.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/files.h"
#include "harness/files/array.h"

namespace attn_diag::files {

// The names that mean a role, in lower case: "q", "query", ...
const std::vector<std::string_view>& names_of(ForeignRole role);

// The array of each role; null where there is none. Throws Error where several could be meant, or where
// what the user named is not there.
std::array<const Array*, kNumForeignRoles> find_roles(const std::vector<Array>& arrays,
                                                      const ForeignHints& hints);

// The file that a source names ("x.h5" of "x.h5:attn/query", "q.npy"), if it names one that exists.
std::optional<std::string> file_of_source(const std::string& source);

}  // namespace attn_diag::files
