// Which source files are ours or the C++ library's: what a report names is the line of the user that calls them.
#pragma once

#include <string_view>

namespace attn_diag {

inline bool is_stand_in_header(std::string_view path) {
  for (const std::string_view part :
       {"/attn_diag_host/", "/attn_diag_host_cuda/", "/harness/host/include/", "/include/c++/",
        "/harness/host/torch_include/", "/attn_diag_torch/"})
    if (path.find(part) != path.npos) return true;
  return false;
}

}  // namespace attn_diag
