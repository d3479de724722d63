// Stands for bench_device.cc where attn-diag is built without the CUDA toolkit.
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "harness/timing/bench_device.h"

namespace attn_diag::cuda {

struct TimedSequence::State {};

DevicePeaks measure_peaks() { throw Error(gpu_state().why_not); }

TimedSequence::TimedSequence(int, std::function<void(void*, int)>, std::string, bool) {
  throw Error(gpu_state().why_not);
}
TimedSequence::~TimedSequence() = default;
bool TimedSequence::graph() const { return false; }
double TimedSequence::sample() { throw Error(gpu_state().why_not); }

}  // namespace attn_diag::cuda
