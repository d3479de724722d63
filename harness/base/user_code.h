// Around code of a user that runs in this process.
#pragma once

#include <sys/types.h>

#include <cfenv>
#include <locale>
#include <string>

namespace attn_diag {

// Afterwards the process is as it was: in the same folder, with its standard streams open; it computes and writes
// numbers as before, whatever the code did to rounding, subnormals, floating-point traps or the locale. A copy that
// the code made with fork() and let return ends here.
class UserCode {
 public:
  UserCode();
  ~UserCode();
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  pid_t x_process;
  std::string x_folder;  // empty: not known
  std::fenv_t x_floats;
  std::locale x_locale;
  std::string x_c_locale;
};

}  // namespace attn_diag
