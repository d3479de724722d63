// The least that can run the benchmarks' kernels: the threads of a block as a ring of fibers, each
// switching to the next at every barrier and shuffle. No checks, no schedules, no poison, no findings;
// right only for kernels whose threads all pass the same synchronisation points in the same order. It
// is the yardstick for the executor's overhead and is linked, with symbols bound within the module, to
// the very object files that the executor's module is made of.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#include "harness/host/bench/bench_kernels.h"
#include "harness/host/context_switch.h"
#include "harness/host/fiber.h"

constinit thread_local attn_diag::host::ThreadIndex threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace attn_diag::host {
namespace {

struct alignas(64) LeanFiber {
  Context context;
  ThreadIndex index;
  LeanFiber* next;
  int turn;                // of the shuffles: which of the two values counts
  std::uint64_t value[2];  // what the thread gave to the last shuffle and to the one before
};

struct Ring {
  std::unique_ptr<LeanFiber[]> fibers = std::make_unique<LeanFiber[]>(1024);
  int made = 0;
  FiberStacks stacks;
  LeanFiber* current = nullptr;
  Context worker;
  const KernelCall* call = nullptr;
  std::vector<char> shared;
};

thread_local constinit Ring* t_ring __attribute__((tls_model("initial-exec"))) = nullptr;

__attribute__((always_inline)) inline void pass_on(Ring& ring) {
  LeanFiber& from = *ring.current;
  LeanFiber& to = *from.next;
  ring.current = &to;
  threadIdx = to.index;
  switch_context(from.context, to.context);
}

void lean_main() {
  for (;;) {
    t_ring->call->call(t_ring->call->kernel, t_ring->call->arguments);
    Ring& ring = *t_ring;
    LeanFiber& from = *ring.current;
    if (from.next == &ring.fibers[0]) {  // the last of the ring: the block has ended
      switch_context(from.context, ring.worker);
    } else {
      pass_on(ring);
    }
  }
}

void run_blocks(const cudaLaunchConfig_t& config, const KernelCall& call,
                std::atomic<unsigned>& next, unsigned blocks) {
  static thread_local const auto owner = std::make_unique<Ring>();
  Ring& ring = *owner;
  t_ring = &ring;
  ring.call = &call;
  const int threads = static_cast<int>(config.blockDim.x);
  for (; ring.made < threads; ++ring.made) {
    const FiberStack stack = ring.stacks.allocate();
    ring.fibers[ring.made].context = make_context(stack.top, stack.top - stack.bottom, &lean_main);
  }
  for (int t = 0; t < threads; ++t) {
    LeanFiber& fiber = ring.fibers[t];
    fiber.index = {{static_cast<unsigned>(t), 0, 0}, static_cast<unsigned>(t)};
    fiber.next = &ring.fibers[(t + 1) % threads];
    fiber.turn = 0;
  }
  if (ring.shared.size() < config.dynamicSmemBytes + 128)
    ring.shared.resize(config.dynamicSmemBytes + 128);
  blockDim = config.blockDim;
  gridDim = config.gridDim;
  for (unsigned i = next++; i < blocks; i = next++) {
    blockIdx = {i % gridDim.x, i / gridDim.x % gridDim.y, i / gridDim.x / gridDim.y};
    ring.current = &ring.fibers[0];
    threadIdx = ring.fibers[0].index;
    switch_context(ring.worker, ring.fibers[0].context);
  }
}

// One helper thread that persists, for two workers.
class Helper {
 public:
  ~Helper() {
    {
      const std::lock_guard lock(x_mutex);
      x_stop = true;
    }
    x_changed.notify_all();
    if (x_thread.joinable()) x_thread.join();
  }
  void start(const std::function<void()>& work) {
    const std::lock_guard lock(x_mutex);
    if (!x_thread.joinable()) x_thread = std::thread([this] { loop(); });
    x_work = &work;
    x_changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(x_mutex);
    x_changed.wait(lock, [this] { return x_work == nullptr; });
  }

 private:
  void loop() {
    std::unique_lock lock(x_mutex);
    for (;;) {
      x_changed.wait(lock, [this] { return x_stop || x_work != nullptr; });
      if (x_stop) return;
      lock.unlock();
      (*x_work)();
      lock.lock();
      x_work = nullptr;
      x_changed.notify_all();
    }
  }
  std::mutex x_mutex;
  std::condition_variable x_changed;
  std::thread x_thread;
  const std::function<void()>* x_work = nullptr;
  bool x_stop = false;
};

int g_workers = 1;

}  // namespace

void* dynamic_shared_memory() {
  void* memory = t_ring->shared.data();
  std::size_t space = t_ring->shared.size();
  return std::align(128, 1, memory, space);
}

void block_barrier(const char*, int) { pass_on(*t_ring); }

std::uint64_t warp_collective(WarpCall call, unsigned, std::uint64_t value, const char*, int) {
  Ring& ring = *t_ring;
  LeanFiber& self = *ring.current;
  const int turn = self.turn;
  self.turn = 1 - turn;
  self.value[turn] = value;
  const unsigned source = self.index.linear / 32 * 32 + (call >> 16);
  pass_on(ring);
  return t_ring->fibers[source].value[turn];
}

cudaError_t set_function_attribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

cudaError_t launch(const cudaLaunchConfig_t& config, const KernelCall& call) {
  static Helper helper;
  std::atomic<unsigned> next{0};
  const unsigned blocks = config.gridDim.x * config.gridDim.y * config.gridDim.z;
  const std::function<void()> work = [&] { run_blocks(config, call, next, blocks); };
  if (g_workers > 1) helper.start(work);
  work();
  if (g_workers > 1) helper.wait();
  return cudaSuccess;
}

}  // namespace attn_diag::host

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return ""; }

void lean_set_workers(int workers) { attn_diag::host::g_workers = workers; }
