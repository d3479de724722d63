// What a fault's finding.toml states: the case to run, and what a trace of it finds first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/kernels/problem.h"
#include "tools/gpu_check/record.h"

namespace attn_diag::gpu_check {

struct StatedFinding {
  std::vector<std::string> flags;  // of attn-diag trace: the problem, the tile, the inputs
  bool race = false;               // shows or not as threads and copies happen to run
  // Keys of a trace's first_divergence ("stage", "query", ...) that are stated, with their values.
  Json expected;
  // Instead of "query": the first query of head 0 whose running max rises in this KV tile.
  std::optional<int> max_rises_in_kv_tile;
  Problem problem;
  std::uint64_t seed = 0;
};

// What the file states for `kernel` ("fa1"). Throws Error for a file that cannot be read or lacks a key.
StatedFinding read_finding(const std::string& path, const std::string& kernel);

// Why the JSON report of a trace is not what the finding states; "" if it is.
std::string difference(const StatedFinding& finding, const Json& trace);

}  // namespace attn_diag::gpu_check
