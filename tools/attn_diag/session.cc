#include "tools/attn_diag/session.h"

#include <cstdlib>

namespace attn_diag::cli {

std::string Session::shell(const std::vector<std::string>& words) const {
  std::string line;
  const char* const path = std::getenv("ATTN_DIAG_KERNEL_PATH");
  if (path != nullptr && path[0] != '\0') line = "ATTN_DIAG_KERNEL_PATH=" + shell_quote(path) + " ";
  line += shell_quote(program);
  return words.empty() ? line : line + " " + shell_line(words);
}

}  // namespace attn_diag::cli
