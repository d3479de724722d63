#include "tools/attn_diag/sweep_flags.h"

#include <CLI/CLI.hpp>

namespace attn_diag::cli {

void add_sweep_flags(CLI::App& app, SweepFlags& flags) {
  const auto add = [&](const char* flag, std::string& to, const char* help) {
    app.add_option(flag, to, help)->group("The sweep")->type_name("");
  };
  add("--random", flags.random, "Draw so many of the cases, by --seed (all)");
  add("--shard", flags.shard, "Run part I of N, as I/N (as the environment says, else all)");
  add("--shards", flags.shards,
      "How many parts there are, where the environment says only which one this is, or for "
      "--print");
  add("--jobs", flags.jobs, "Of backend host: cases at a time, each on its share of the cores (1)");
  add("--devices", flags.devices,
      "Of backend cuda: all, or a list as CUDA_VISIBLE_DEVICES takes it: a process a GPU (the "
      "first)");
  add("--print", flags.print, "Run nothing, print the file of a job instead: slurm, mpi or k8s");
}

}  // namespace attn_diag::cli
