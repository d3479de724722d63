// Flags about files of other programs: which array is which, and what the files do not say.
#pragma once

#include <string>

#include "attn_diag/harness/files.h"

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct Flags;

struct ForeignFlags {
  std::string q, k, v, o, lse, bias, softcap, kv_lens;

  // An array by a name of its own: --q q.npy.
  bool name_arrays() const { return !(q + k + v + o + lse + bias).empty(); }
};

void add_foreign_flags(CLI::App& app, ForeignFlags& flags);

// The hints of these flags and of --layout, --dtype, --mask and --softmax-scale. Throws Error.
ForeignHints foreign_hints(const Flags& flags);

}  // namespace attn_diag::cli
