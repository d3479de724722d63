// What a benchmark needs of the GPU. As device.h: bench_device.cc calls the CUDA runtime,
// bench_device_absent.cc stands for it where attn-diag is built without the toolkit. All throw Error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/timing/bench.h"

namespace attn_diag::cuda {

// Reads the GPU's properties and measures how fast it copies; takes about 0.1 s.
DevicePeaks measure_peaks();

// A sequence of calls on a stream, timed as a whole.
class TimedSequence {
 public:
  // launch(stream, i) enqueues call i of `launches` on the cudaStream_t. It is captured in a CUDA
  // graph once; where that cannot be done, or in_graph is false, it is called for every sample. `run` names what runs, for
  // errors.
  TimedSequence(int launches, std::function<void(void* stream, int i)> launch, std::string run,
                bool in_graph = true);
  ~TimedSequence();
  TimedSequence(const TimedSequence&) = delete;
  TimedSequence& operator=(const TimedSequence&) = delete;

  bool graph() const;
  double sample();  // seconds of one call

 private:
  struct State;
  std::unique_ptr<State> x_state;
};

}  // namespace attn_diag::cuda
