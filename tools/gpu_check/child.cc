#include "tools/gpu_check/child.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "harness/base/parallel_for.h"

namespace attn_diag::gpu_check {

ProcessResult run_child(const std::vector<std::string>& words, double seconds) {
  return run_process(words, {{}, seconds});
}

std::string trouble_of(const ProcessResult& result, const std::vector<int>& accepted) {
  constexpr std::size_t kShownOfStderr = 600;
  std::string s;
  if (result.timed_out) {
    s = "took too long and was stopped";
  } else if (result.signal != 0) {
    s = fmt::format("was ended by signal {} ({})", result.signal, strsignal(result.signal));
  } else if (std::find(accepted.begin(), accepted.end(), result.exit_code) == accepted.end()) {
    s = fmt::format("ended with exit code {}", result.exit_code);
  } else {
    return "";
  }
  const std::string& err = result.err;
  std::string tail = err.size() > kShownOfStderr ? err.substr(err.size() - kShownOfStderr) : err;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail.empty() ? s : s + ": " + tail;
}

void parallel(int n, int jobs, const std::function<void(int)>& work,
              const std::function<void(int)>& done) {
  std::mutex mutex;
  int finished = 0;
  parallel_for(n, jobs, [&](std::int64_t i) {
    work(static_cast<int>(i));
    const std::lock_guard lock(mutex);
    done(++finished);
  });
}

int default_jobs() { return std::clamp(resolve_threads(0) / 2, 1, 4); }

}  // namespace attn_diag::gpu_check
