// How long a kernel takes on a GPU: what is measured, and the records of it. Needs no CUDA headers;
// rendering is harness/report/bench.h.
//
// One sample is the time of a CUDA graph that holds `launches` calls of the production kernel, one
// after the other, between two events, divided by `launches`: launching costs the host nothing in
// between. The calls go through sets of q, k, v, o and lse at different addresses, together larger
// than twice the L2 cache, so that every call finds its inputs in device memory. The workspace is
// allocated before and shared by all calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// The two rates of a GPU that no kernel can beat, and where they come from.
struct DevicePeaks {
  std::string device, driver;
  int compute_major = 0, compute_minor = 0;
  int sm_count = 0;
  double clock_hz = 0;  // highest clock of the SMs
  std::int64_t l2_bytes = 0;
  // Measured here: device to device copy, bytes read and bytes written.
  double copy_bytes_per_second = 0;
};

// Multiplications and additions that one SM does in a clock cycle, as floating-point operations: on
// the tensor cores (fp16, bf16, dense, summed in fp32) or, for fp32, outside them. Nullopt for an
// architecture this program does not know. Sources: the vendor's architecture white papers.
std::optional<double> flops_per_sm_per_clock(const DevicePeaks& peaks, DType dtype);

// What attention on a problem needs at least.
struct Work {
  double flops = 0;  // 2 (D + Dv) for each (query, key) that the mask lets through
  double bytes = 0;  // q, k and v read once, o and lse written once
};
Work work_of(const Problem& problem);

// The least time that the work can take, in seconds.
struct Floors {
  double bytes_seconds = 0;             // bytes over the measured copy bandwidth
  std::optional<double> flops_seconds;  // flops over the nominal peak; nullopt: peak unknown
  double larger() const;
};
Floors floors_of(const Problem& problem, const DevicePeaks& peaks);

struct Timing {
  int samples = 0;
  int launches = 0;    // per sample
  int input_sets = 0;  // at different addresses
  bool graph = false;  // false: launched one by one, since the kernel cannot be captured in a graph
  double median = 0, min = 0, lower_quartile = 0, upper_quartile = 0;  // seconds of one launch
};
// The order statistics of samples (seconds of one launch each; at least one). A median between two
// samples is their mean.
Timing summarise_samples(std::vector<double> seconds);

enum class BenchVerdict : std::uint8_t { kTimed, kDiverges, kUnsupported, kFailed };

struct BenchRow {
  std::string kernel;
  Problem problem;
  Geometry geometry;
  BenchVerdict verdict = BenchVerdict::kFailed;
  std::string why;                           // unless timed
  std::int64_t rows_compared = 0, rows = 0;  // (batch, head, query) rows of o and lse
  double max_err_over_bound = 0;
  Timing timing;  // if timed
};

struct BenchOptions {
  RunOptions run;  // tile, num_splits
  std::string inputs = "randn";
  std::uint64_t seed = 0;
  double input_scale = 1;
  Tolerance tolerance;
  // Samples are taken for this long, but at least min_samples and at most max_samples; a kernel so
  // slow that min_samples would take eight times as long ends with fewer.
  double seconds = 0.3;
  int min_samples = 20, max_samples = 200;
  // Rows of o and lse are compared with the reference up to this many products of the reference
  // (rows * Sk * (D + Dv)); of larger problems the first, middle and last rows of every head.
  double compare_limit = 5e9;
};

// The queries that are compared: all, or those of the sample, as half-open ranges.
struct QueryRange {
  std::int64_t begin = 0, end = 0;
};
std::vector<QueryRange> compared_queries(const Problem& problem, double compare_limit);

// Compares the production kernel with the reference, and times it if it agrees. What the kernel does
// not support, a run that fails or an output that diverges is a verdict of the row.
BenchRow bench_kernel(const Kernel& kernel, const Problem& problem, const BenchOptions& options,
                      const DevicePeaks& peaks);

}  // namespace attn_diag
