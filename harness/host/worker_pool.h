// Threads that persist across launches and run blocks of one launch at a time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attn_diag::host {

class WorkerPool {
 public:
  // The process's pool. A forked process gets another, as the threads are not in it. None is ever destroyed: code under
  // test may call exit() in a forked process, and whoever waits for them there waits for ever.
  static WorkerPool& instance();

  // Runs `work` on the calling thread and on `helpers` others; returns when all have returned. One
  // call at a time.
  void run(int helpers, const std::function<void()>& work);
  // One more thread runs the work of the call in progress; to be called from it. False: no thread could be
  // made.
  bool add();

 private:
  WorkerPool() = default;
  void helper_loop(int number);
  void make_threads();  // with the mutex held

  std::mutex x_mutex;
  std::condition_variable x_start, x_done;
  std::vector<std::thread> x_threads;
  const std::function<void()>* x_work = nullptr;
  unsigned long long x_generation = 0;
  int x_wanted = 0;
  int x_running = 0;
};

}  // namespace attn_diag::host
