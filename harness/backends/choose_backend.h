// Which backend a kernel is run on when the user leaves that open.
#pragma once

#include <string>

namespace attn_diag {

struct BackendChoice {
  std::string backend;  // "host" or "cuda"
  std::string why;      // "NVIDIA H200 (sm_90) can run it", without a full stop
};

// cuda if a GPU here can run the kernel's build for it, else host. A library named by path is run on
// the backend it was built for, and a kernel that has a build for one backend alone on that. Throws
// Error for a path that cannot be loaded.
BackendChoice choose_backend(const std::string& spec);

}  // namespace attn_diag
