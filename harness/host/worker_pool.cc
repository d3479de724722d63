#include "harness/host/worker_pool.h"

namespace attn_diag::host {

WorkerPool& WorkerPool::instance() {
  static WorkerPool pool;
  return pool;
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(x_mutex);
    x_stop = true;
  }
  x_start.notify_all();
  for (std::thread& thread : x_threads) thread.join();
}

void WorkerPool::run(int helpers, const std::function<void()>& work) {
  if (helpers > 0) {
    const std::lock_guard lock(x_mutex);
    while (static_cast<int>(x_threads.size()) < helpers) {
      const int number = static_cast<int>(x_threads.size());
      x_threads.emplace_back([this, number] { helper_loop(number); });
    }
    x_work = &work;
    x_wanted = x_running = helpers;
    ++x_generation;
    x_start.notify_all();
  }
  work();
  if (helpers > 0) {
    std::unique_lock lock(x_mutex);
    x_done.wait(lock, [this] { return x_running == 0; });
  }
}

void WorkerPool::helper_loop(int number) {
  unsigned long long seen = 0;
  std::unique_lock lock(x_mutex);
  for (;;) {
    x_start.wait(lock, [&] { return x_stop || (x_generation != seen && number < x_wanted); });
    if (x_stop) return;
    seen = x_generation;
    const std::function<void()>* work = x_work;
    lock.unlock();
    (*work)();
    lock.lock();
    if (--x_running == 0) x_done.notify_one();
  }
}

}  // namespace attn_diag::host
