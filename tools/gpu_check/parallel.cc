#include "tools/gpu_check/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace attn_diag::gpu_check {

void parallel(int n, int jobs, const std::function<void(int)>& work,
              const std::function<void(int)>& done) {
  std::atomic<int> next{0};
  std::mutex mutex;
  int finished = 0;
  const auto run = [&] {
    for (int i = next++; i < n; i = next++) {
      work(i);
      const std::lock_guard lock(mutex);
      done(++finished);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < std::min(jobs, n); ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
}

int default_jobs() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u));
}

}  // namespace attn_diag::gpu_check
