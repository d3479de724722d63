// Flags of attn-diag sweep, besides those of a case.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct SweepFlags {
  std::string random, shard, shards, jobs, devices, print;
};

inline constexpr const char* kSweepSummary =
    "Many cases, on one machine or on many, resumed where it was stopped";
inline constexpr const char* kSweepFooter = R"(
Flags take lists (1,8), ranges (1:8: 1 to 8; 1:9:2: every second; 64:4096:*2: doubled), both ends included, and
lists of these; the cases are all combinations, or N of them with --random N, drawn by --seed. Each case runs in a
process of its own, judged as attn-diag run judges it; one that crashes or does not end is a case that failed.

With -o DIR each result is a line of JSON, on the disk within a quarter of a second or as soon as it is there. The
same command, or attn-diag sweep -o DIR, goes on where it was stopped. --shard I/N runs one of N parts; tasks of Slurm arrays and of
srun, MPI ranks and pods of Kubernetes indexed jobs know theirs by themselves. A shard exits with 0 when its cases
have been run, whatever they say: the verdict is that of attn-diag sweep merge DIR, which counts no case twice and
names what is missing.

Examples:
  attn-diag sweep --kernel fa1 --heads 1,8 --seqlen 64:4096:*2 --mask none,causal -o results
  attn-diag sweep --kernel ./mine.so --batch 1:4 --heads 1:8 --seqlen 1:300 --random 500 --seed 7
  mpirun -n 4 attn-diag sweep --kernel fa1,split_k --seqlen 1:128 -o results
  attn-diag sweep --kernel fa1 --seqlen 1:128 -o results --print slurm --shards 8 > job.sh
  attn-diag sweep merge results --junit results.xml

Exit codes: 0 all agree; 1 some diverge or are latent; 2 some could not be judged, are missing, or nothing was run; 3
internal error.)";

void add_sweep_flags(CLI::App& app, SweepFlags& flags);

}  // namespace attn_diag::cli
