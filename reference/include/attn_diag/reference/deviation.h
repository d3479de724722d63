// One way in which a kernel's formula differs from attention's: every field at its default is the
// right formula. Bugs of different steps can be set together.
#pragma once

namespace attn_diag::reference {

struct Deviation {
  bool operator==(const Deviation&) const = default;
};

}  // namespace attn_diag::reference
