#include "harness/timing/bench_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "harness/backends/cuda/device.h"

namespace attn_diag::cuda {
namespace {

void check(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  synchronize(what);  // throws with more to say if the context is lost
  throw Error(fmt::format("CUDA failed, {}: {} ({}).", what, cudaGetErrorString(result),
                          cudaGetErrorName(result)));
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0), "asking for the properties of the GPU");
  return value;
}

// Bytes read and written per second by a copy within the device: the median of several.
double copy_bandwidth() {
  const std::size_t bytes = std::min<std::size_t>(std::size_t{1} << 30, free_memory() / 4);
  DeviceMemory from(bytes), to(bytes);
  from.fill(1, 0, bytes);
  // Not in a graph: there another engine than that of an ordinary copy may do it.
  TimedSequence copies(
      4,
      [&](void* stream, int) {
        check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice,
                              static_cast<cudaStream_t>(stream)),
              "copying on the GPU");
      },
      "measuring the copy bandwidth", false);
  std::vector<double> seconds;
  copies.sample();
  for (int i = 0; i < 15; ++i) seconds.push_back(copies.sample());
  return 2.0 * static_cast<double>(bytes) / summarise_samples(std::move(seconds)).median;
}

}  // namespace

DevicePeaks measure_peaks() {
  const GpuState& state = gpu_state();
  if (!state.usable()) throw Error(state.why_not);
  DevicePeaks peaks;
  peaks.device = state.gpus.front().name;
  peaks.driver = state.driver();
  peaks.compute_major = state.gpus.front().major;
  peaks.compute_minor = state.gpus.front().minor;
  peaks.sm_count = state.gpus.front().multiprocessors;
  peaks.clock_hz = 1e3 * attribute(cudaDevAttrClockRate);
  peaks.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  peaks.copy_bytes_per_second = copy_bandwidth();
  return peaks;
}

struct TimedSequence::State {
  int launches;
  std::function<void(void*, int)> launch;
  std::string run;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaGraphExec_t graph = nullptr;

  ~State() {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
    if (begin != nullptr) cudaEventDestroy(begin);
    if (end != nullptr) cudaEventDestroy(end);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }

  void launch_all() {
    for (int i = 0; i < launches; ++i) launch(stream, i);
  }

  // False if the calls cannot be captured: one of them failed under capture (it waits for the device,
  // say, or uses another stream), or nothing was enqueued.
  bool capture() {
    cudaGraph_t captured = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), run);
    bool complete = true;
    try {
      launch_all();
    } catch (const Error&) {
      complete = false;
    }
    complete &= cudaStreamEndCapture(stream, &captured) == cudaSuccess && captured != nullptr;
    std::size_t nodes = 0;
    complete &=
        complete && cudaGraphGetNodes(captured, nullptr, &nodes) == cudaSuccess && nodes > 0;
    complete &= complete && cudaGraphInstantiate(&graph, captured, 0) == cudaSuccess;
    if (captured != nullptr) cudaGraphDestroy(captured);
    cudaGetLastError();  // of a capture that failed
    return complete;
  }
};

TimedSequence::TimedSequence(int launches, std::function<void(void*, int)> launch, std::string run,
                             bool in_graph)
    : x_state(std::make_unique<State>()) {
  x_state->launches = launches;
  x_state->launch = std::move(launch);
  x_state->run = std::move(run);
  // A stream that waits for the default stream and is waited for by it, so that a kernel which
  // ignores the stream it is given is timed all the same.
  check(cudaStreamCreate(&x_state->stream), "creating a stream");
  check(cudaEventCreate(&x_state->begin), "creating an event");
  check(cudaEventCreate(&x_state->end), "creating an event");
  // Once without capture: kernels are loaded when they are first launched, and errors are seen here.
  x_state->launch(x_state->stream, 0);
  synchronize(x_state->run);
  if (in_graph) x_state->capture();
}

TimedSequence::~TimedSequence() = default;

bool TimedSequence::graph() const { return x_state->graph != nullptr; }

double TimedSequence::sample() {
  State& s = *x_state;
  check(cudaEventRecord(s.begin, s.stream), s.run);
  if (s.graph != nullptr) {
    check(cudaGraphLaunch(s.graph, s.stream), s.run);
  } else {
    s.launch_all();
  }
  check(cudaEventRecord(s.end, s.stream), s.run);
  synchronize(s.run);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, s.begin, s.end), s.run);
  return 1e-3 * static_cast<double>(milliseconds) / s.launches;
}

}  // namespace attn_diag::cuda
