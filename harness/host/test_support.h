// For the executor's tests: launch under a schedule and look at the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/test_kernels/test_kernels.h"

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace attn_diag::host {

struct Launched {
  cudaError_t error = cudaSuccess;
  LaunchReport report;

  bool completed() const { return error == cudaSuccess && report.findings.empty(); }
  // The one finding; fails the test if there is none or more.
  const LaunchFinding& finding() const {
    REQUIRE(report.findings.size() == 1);
    return report.findings[0];
  }
};

inline Launched launched(const LaunchOptions& options, const std::function<cudaError_t()>& launch) {
  const LaunchScope scope(options);
  Launched result;
  result.error = launch();
  result.report = scope.report();
  cudaGetLastError();
  return result;
}

inline Launched launched(const std::string& schedule, const std::function<cudaError_t()>& launch) {
  LaunchOptions options;
  options.schedule = parse_schedule(schedule);
  return launched(options, launch);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The schedules under which a library without call-outs runs.
inline std::vector<std::string> plain_schedules() {
  return {
      "forward", "reverse", "seed:1", "seed:2", "seed:3", "seed:4", "seed:18446744073709551615"};
}

}  // namespace attn_diag::host
