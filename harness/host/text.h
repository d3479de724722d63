// Messages, put together from parts.
#pragma once

#include <sstream>
#include <string>

namespace attn_diag::host {

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace attn_diag::host
