// Reports of `attn-diag bench`: text and JSON of the same records, and the times of PyTorch that
// tools/compare_with_pytorch.py wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/report/json.h"
#include "harness/report/text.h"
#include "harness/timing/bench.h"

namespace attn_diag::report {

// Times of PyTorch's scaled_dot_product_attention on one problem.
struct PytorchTime {
  std::string backend;  // "default", "flash", "efficient", "cudnn"
  Json problem;         // as to_json(Problem) writes it, as far as the file says it
  double median = 0;    // seconds
};
struct PytorchTimes {
  std::string path, device, version;  // of the file; of PyTorch
  std::vector<PytorchTime> times;
};
// Throws Error for a file that is not one of compare_with_pytorch.py.
PytorchTimes read_pytorch_times(const std::string& path);

struct BenchReport {
  DevicePeaks peaks;
  std::vector<BenchRow> rows;  // kernels of one problem follow each other
  std::optional<PytorchTimes> pytorch;
};

// What a row is measured against; nullopt where the other time is not known.
struct BenchRatios {
  double tflops = 0, gigabytes = 0;       // per second
  double to_floor = 0;                    // time over the larger of the two floors
  double to_fastest = 0;                  // time over that of the fastest kernel on the problem
  std::optional<double> faster_than_fa1;  // time of fa1 over this one
  std::optional<double> to_pytorch;       // time over PyTorch's default
  std::optional<double> to_fastest_pytorch;
  std::string fastest_pytorch;  // its backend
};
BenchRatios bench_ratios(const BenchReport& report, const BenchRow& row);

std::string bench_text(const BenchReport& report, const Style& style, bool verdict_only);
Json bench_json(const BenchReport& report, int exit_code, const CommandContext& context);

}  // namespace attn_diag::report
