// Which shard this process is: as it is told, or as the engine that started it says in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/sweep/deal.h"

namespace attn_diag::sweep {

// A variable of the environment; null: it is not set.
using Environment = std::function<const char*(const char* name)>;

struct ShardChoice {
  Shard shard;
  std::string from;  // "SLURM_ARRAY_TASK_ID"; empty: nothing says that there are others
};

// Slurm job arrays and Kubernetes indexed jobs; within one of their tasks MPI ranks, or else tasks of srun. `told`: the
// number of shards, for engines that do not say it themselves (Kubernetes, GNU parallel). Throws Error for what
// cannot be told apart: an array with gaps, an index without a count.
ShardChoice shard_of_environment(const Environment& environment, std::optional<std::int64_t> told);

// "3/8", from 1. Throws Error for anything else.
Shard parse_shard(const std::string& text);
std::string text(const Shard& shard);

}  // namespace attn_diag::sweep
