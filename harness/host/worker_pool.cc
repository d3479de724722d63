#include "harness/host/worker_pool.h"

#include <exception>

#include "harness/host/once_per_process.h"

namespace attn_diag::host {

WorkerPool& WorkerPool::instance() {
  static OncePerProcess s_once;
  static WorkerPool* s_pool = nullptr;
  s_once.call([] { s_pool = new WorkerPool; });
  return *s_pool;
}

void WorkerPool::make_threads() {
  while (static_cast<int>(x_threads.size()) < x_wanted) {
    const int number = static_cast<int>(x_threads.size());
    x_threads.emplace_back([this, number] { helper_loop(number); });
  }
}

void WorkerPool::run(int helpers, const std::function<void()>& work) {
  {
    const std::lock_guard lock(x_mutex);
    x_wanted = helpers;
    make_threads();
    x_work = &work;
    x_running = helpers;
    ++x_generation;
    if (helpers > 0) x_start.notify_all();
  }
  work();
  std::unique_lock lock(x_mutex);
  x_done.wait(lock, [this] { return x_running == 0; });
}

bool WorkerPool::add() {
  const std::lock_guard lock(x_mutex);
  ++x_wanted;
  try {
    make_threads();
  } catch (const std::exception&) {
    --x_wanted;
    return false;
  }
  ++x_running;
  x_start.notify_all();
  return true;
}

void WorkerPool::helper_loop(int number) {
  unsigned long long seen = 0;
  std::unique_lock lock(x_mutex);
  for (;;) {
    x_start.wait(lock, [&] { return x_generation != seen && number < x_wanted; });
    seen = x_generation;
    const std::function<void()>* work = x_work;
    lock.unlock();
    (*work)();
    lock.lock();
    if (--x_running == 0) x_done.notify_one();
  }
}

}  // namespace attn_diag::host
