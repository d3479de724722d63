// One kernel on one problem: compared first, then timed, then compared again.
#include "harness/timing/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "harness/backends/cuda/device.h"
#include "harness/library/support.h"
#include "harness/run/input_writes.h"
#include "harness/run/run_memory.h"
#include "harness/timing/bench_device.h"

namespace attn_diag {
namespace {

constexpr double kCacheFactor = 2;  // input sets, in sizes of the L2 cache
constexpr int kWarmUpSamples = 3;
constexpr int kFewestSamples = 5;  // of a slow kernel

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// q, k, v, o and lse at one address after the other, in one allocation.
class InputSet {
 public:
  InputSet(const Problem& p, const InputData& inputs)
      : x_offsets{0, aligned(inputs.q.size()), aligned(inputs.k.size()), aligned(inputs.v.size()),
                  aligned(output_bytes(p))},
        x_memory(bytes_of(p, inputs)) {
    for (std::size_t i = 1; i < x_offsets.size(); ++i) x_offsets[i] += x_offsets[i - 1];
    x_memory.upload(inputs.q.data(), x_offsets[0], inputs.q.size());
    x_memory.upload(inputs.k.data(), x_offsets[1], inputs.k.size());
    x_memory.upload(inputs.v.data(), x_offsets[2], inputs.v.size());
  }

  static std::size_t output_bytes(const Problem& p) {
    return static_cast<std::size_t>(rows_of(p) * p.head_dim_v) * size_of(p.dtype);
  }
  static std::size_t bytes_of(const Problem& p, const InputData& inputs) {
    return aligned(inputs.q.size()) + aligned(inputs.k.size()) + aligned(inputs.v.size()) +
           aligned(output_bytes(p)) + static_cast<std::size_t>(rows_of(p)) * sizeof(float);
  }

  void fill_in(RunRequest& request) const {
    request.q = x_memory.data() + x_offsets[0];
    request.k = x_memory.data() + x_offsets[1];
    request.v = x_memory.data() + x_offsets[2];
    request.o = x_memory.data() + x_offsets[3];
    request.lse = reinterpret_cast<float*>(x_memory.data() + x_offsets[4]);
  }
  std::vector<std::byte> output(const Problem& p) const {
    std::vector<std::byte> o(output_bytes(p));
    x_memory.download(o.data(), x_offsets[3], o.size());
    return o;
  }

 private:
  std::array<std::size_t, 5> x_offsets;  // of q, k, v, o, lse
  cuda::DeviceMemory x_memory;
};

int number_of_sets(const Problem& p, const InputData& inputs, std::int64_t l2_bytes) {
  const auto read = static_cast<double>(inputs.q.size() + inputs.k.size() + inputs.v.size());
  const double wanted =
      std::max(2.0, std::ceil(kCacheFactor * static_cast<double>(l2_bytes) / read));
  const double room = static_cast<double>(cuda::free_memory()) / 2 /
                      static_cast<double>(InputSet::bytes_of(p, inputs));
  if (room < wanted)
    throw Error(
        fmt::format("{:.0f} sets of inputs are needed so that they do not sit in the cache, "
                    "but half of the GPU's free memory holds {:.0f}.",
                    wanted, std::floor(room)));
  return static_cast<int>(wanted);
}

// True if the rows of a capture's o have the bits of o as the kernel wrote it.
bool same_output(const Capture& capture, const std::vector<std::byte>& o) {
  const Problem& p = capture.problem;
  const Region& r = capture.region;
  const Strides strides = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  const std::size_t size = size_of(p.dtype);
  const std::size_t row_bytes = static_cast<std::size_t>(p.head_dim_v) * size;
  const std::byte* captured = capture[Tensor::kO].bytes.data();
  for (std::int64_t b = r.origin[0]; b < r.origin[0] + r.extent[0]; ++b)
    for (std::int64_t h = r.origin[1]; h < r.origin[1] + r.extent[1]; ++h)
      for (std::int64_t q = r.origin[2]; q < r.origin[2] + r.extent[2];
           ++q, captured += row_bytes) {
        const auto at =
            static_cast<std::size_t>(b * strides.batch + h * strides.head + q * strides.seq) * size;
        if (std::memcmp(captured, o.data() + at, row_bytes) != 0) return false;
      }
  return true;
}

// Runs and compares the production kernel; what it gave, range by range. Sets the row's figures, and
// `why` if the output is wrong.
std::vector<Capture> compare_first(const Kernel& kernel, const InputData& inputs,
                                   const BenchOptions& options, BenchRow& row) {
  const Problem& p = row.problem;
  std::vector<Capture> captures;
  for (const QueryRange& range : compared_queries(p, options.compare_limit)) {
    RunOptions run = options.run;
    run.taps = false;
    run.region.origin = {0, 0, range.begin};
    run.region.extent = {p.batch, p.heads, range.end - range.begin};
    captures.push_back(run_kernel({kernel, p, inputs, run}));
    const Capture& capture = captures.back();
    const Comparison comparison = compare_with_reference(capture, options.tolerance, run.threads);
    for (const TensorComparison& t : comparison.tensors)
      row.max_err_over_bound = std::max(row.max_err_over_bound, t.max_err_over_bound);
    row.rows_compared += run.region.extent[0] * run.region.extent[1] * run.region.extent[2];
    const bool holes =
        std::any_of(capture.coverage.begin(), capture.coverage.end(),
                    [](const Coverage& c) { return c.never > 0 || c.repeatedly > 0; });
    if (!capture.input_writes.empty()) {
      row.why = input_writes_text(capture.input_writes) + ": not timed.";
    } else if (comparison.answer() == Answer::kNotJudged) {
      row.why = why_not_judged(comparison) + ": not timed.";
    } else if (!comparison.agrees()) {
      row.why = fmt::format(
          "The output diverges from the reference ({:.3g} times what rounding can "
          "explain): not timed. attn-diag trace finds where.",
          row.max_err_over_bound);
    } else if (holes) {
      row.why = "Cells of the output were not written: not timed. attn-diag trace finds which.";
    } else if (capture.repetition.moved()) {
      row.why =
          "Two runs on the same inputs differ: a race, or sums in the order in which threads or "
          "blocks "
          "arrive. Not timed. attn-diag trace says whether every run is within its bounds.";
    }
    if (!row.why.empty()) break;
  }
  return captures;
}

Timing measure(const Kernel& kernel, const BenchOptions& options, const BenchRow& row,
               const std::vector<InputSet>& sets) {
  std::array<char, 1024> message{};
  const cuda::DeviceMemory workspace(kernel.info().workspace_bytes(row.problem, row.geometry));
  RunRequest request;
  request.problem = row.problem;
  request.geometry = row.geometry;
  request.workspace = workspace.data();
  request.error = message.data();
  request.error_capacity = message.size();
  const auto launch = [&](void* stream, int i) {
    sets[static_cast<std::size_t>(i)].fill_in(request);
    request.stream = stream;
    if (kernel.info().run(request) != Status::kOk)
      throw Error(fmt::format("{} failed to launch: {}", kernel.spec(), message.data()));
  };
  cuda::TimedSequence sequence(static_cast<int>(sets.size()), launch, kernel.spec());
  for (int i = 0; i < kWarmUpSamples; ++i) sequence.sample();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<double> seconds;
  for (double elapsed = 0;;) {
    seconds.push_back(sequence.sample());
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto n = static_cast<int>(seconds.size());
    if (n >= options.max_samples) break;
    if (n >= options.min_samples && elapsed >= options.seconds) break;
    if (n >= kFewestSamples && elapsed >= 8 * options.seconds) break;
  }
  Timing timing = summarise_samples(std::move(seconds));
  timing.launches = timing.input_sets = static_cast<int>(sets.size());
  timing.graph = sequence.graph();
  return timing;
}

}  // namespace

BenchRow bench_kernel(const Kernel& kernel, const Problem& problem, const BenchOptions& options,
                      const DevicePeaks& peaks) {
  BenchRow row;
  row.kernel = kernel.spec();
  row.problem = problem;
  row.rows = rows_of(problem);
  row.verdict = BenchVerdict::kUnsupported;
  try {
    if (const std::vector<std::string> words = part_words(kernel.info()); !words.empty())
      throw Error(fmt::format("{} {}: such kernels are not timed.", kernel.spec(), words.front()));
    row.geometry = plan_geometry(kernel, problem, options.run);
    row.verdict = BenchVerdict::kFailed;
    const InputData inputs =
        make_inputs(problem, options.inputs, options.seed, options.input_scale);
    const std::vector<Capture> compared = compare_first(kernel, inputs, options, row);
    if (!row.why.empty()) {
      row.verdict = BenchVerdict::kDiverges;
      return row;
    }
    std::vector<InputSet> sets;
    const int count = number_of_sets(problem, inputs, peaks.l2_bytes);
    sets.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) sets.emplace_back(problem, inputs);
    row.timing = measure(kernel, options, row, sets);
    for (const InputSet* set : {&sets.front(), &sets.back()}) {
      const std::vector<std::byte> o = set->output(problem);
      for (const Capture& capture : compared) {
        if (same_output(capture, o)) continue;
        row.verdict = BenchVerdict::kDiverges;
        row.why =
            "The timed runs gave other bits than the run that was compared: a race, or sums in the "
            "order in "
            "which threads or blocks arrive.";
        return row;
      }
    }
    row.verdict = BenchVerdict::kTimed;
  } catch (const Error& e) {
    row.why = e.what();
  }
  return row;
}

}  // namespace attn_diag
