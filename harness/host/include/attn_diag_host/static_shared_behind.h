// A zone behind all static shared memory of a library, for the last object of a link: thread-local storage is laid out in
// their order. What runs over the end of an array hits it, and no memory of the process.
#pragma once
#pragma GCC system_header

#include "attn_diag_host/static_shared.h"

namespace attn_diag::host {

[[gnu::used]] alignas(1024) static thread_local unsigned char static_shared_behind[65536];

static const StaticSharedEntry static_shared_end = [] {
  StaticSharedDeclaration end{};
  end.is_end = true;
  end.at = []() -> void* { return static_shared_behind; };
  return StaticSharedEntry(end);
}();

}  // namespace attn_diag::host
