#include "harness/base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace attn_diag {

int resolve_threads(int threads) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(std::int64_t pieces, int threads, const std::function<void(std::int64_t)>& work) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  std::int64_t failed = pieces;
  const auto take = [&] {
    for (std::int64_t i = next++; i < pieces; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) error = std::current_exception();
        failed = std::min(failed, i);
        next = pieces;  // those before it have been begun
      }
    }
  };
  const std::int64_t wanted = std::min<std::int64_t>(resolve_threads(threads), pieces);
  std::vector<std::jthread> helpers;
  for (std::int64_t t = 1; t < wanted; ++t) helpers.emplace_back(take);
  take();
  helpers.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace attn_diag
