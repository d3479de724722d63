// The parts of attn-diag sweep.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/report/sweep.h"
#include "harness/sweep/folder.h"
#include "harness/sweep/shard.h"
#include "tools/attn_diag/sweep_axes.h"

namespace attn_diag::cli {

// Runs cases in processes of their own and hands their lines over, in the order in which they end.
struct SweepRun {
  const Session& session;
  const SweepGrid& grid;
  std::vector<sweep::Plan::Kernel> kernels;
  std::vector<std::int64_t> cases;  // in the order in which they are to be run
  std::vector<float> costs;         // of all cases of the sweep
  std::function<void(const std::vector<report::Json>&)> take;
};
void run_cases(const SweepRun& run);

// The kernels of the sweep, on which backend each runs and what was built of it.
std::vector<sweep::Plan::Kernel> kernels_of(const Session& session, const SweepGrid& grid);

// A job file that runs the sweep of this command line in shards. Throws Error where it does not say how many.
std::string job_file(const Session& session);

// What is missing of a sweep, shard by shard.
std::vector<report::MissingShard> missing_shards(const std::vector<float>& costs,
                                                 std::int64_t shards,
                                                 const std::map<std::int64_t, report::Json>& lines);

CommandResult merge_sweep(const Session& session, const std::string& folder);

}  // namespace attn_diag::cli
