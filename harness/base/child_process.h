// What a forked process does first.
#pragma once

namespace attn_diag {

// Nothing is left of what the parent has set up for itself: handlers, what is blocked, where it writes.
void forget_parent();

}  // namespace attn_diag
