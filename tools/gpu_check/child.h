// Programs run as children, so that a crash, a hang or a sticky CUDA error ends one check only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/base/process.h"

namespace attn_diag::gpu_check {

// As run_process(), for at most `seconds`.
ProcessResult run_child(const std::vector<std::string>& words, double seconds);

// "" if it exited with one of the codes; else what happened, with the end of its stderr.
std::string trouble_of(const ProcessResult& result, const std::vector<int>& accepted);

// Calls work(i) for every i in [0, n), `jobs` of them at a time, each from a thread of its own.
// `done` is called by one thread at a time, after each, with how many are done.
void parallel(int n, int jobs, const std::function<void(int)>& work,
              const std::function<void(int)>& done);

// How many processes share the GPU and the cores.
int default_jobs();

}  // namespace attn_diag::gpu_check
