#include "harness/base/child_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace attn_diag {

void forget_parent() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= 2 && nowhere >= 0; ++standard) ::dup2(nowhere, standard);
}

}  // namespace attn_diag
