#include "harness/base/user_code.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <filesystem>

namespace attn_diag {
namespace {

namespace fs = std::filesystem;

std::string folder() {
  std::error_code ignored;
  return fs::current_path(ignored).string();
}

}  // namespace

UserCode::UserCode()
    : x_process(::getpid()), x_folder(folder()), x_c_locale(std::setlocale(LC_ALL, nullptr)) {
  std::fegetenv(&x_floats);
}

UserCode::~UserCode() {
  if (::getpid() != x_process) ::_exit(0);
  std::fesetenv(&x_floats);
  if (std::locale() != x_locale) std::locale::global(x_locale);
  if (std::setlocale(LC_ALL, nullptr) != x_c_locale) std::setlocale(LC_ALL, x_c_locale.c_str());
  std::error_code ignored;  // a folder that is gone: there is nowhere to go back to
  if (!x_folder.empty() && folder() != x_folder) fs::current_path(x_folder, ignored);
  // Otherwise the next file to be opened would get the number, and with it what is printed.
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened < 0 || opened == descriptor) continue;
    ::dup2(opened, descriptor);
    ::close(opened);
  }
}

}  // namespace attn_diag
