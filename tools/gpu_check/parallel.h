// A few child processes at a time.
#pragma once

#include <functional>

namespace attn_diag::gpu_check {

// Calls work(i) for every i in [0, n), `jobs` of them at a time, each from a thread of its own.
// `done` is called by one thread at a time, after each, with how many are done.
void parallel(int n, int jobs, const std::function<void(int)>& work,
              const std::function<void(int)>& done);

// How many processes share the GPU and the cores.
int default_jobs();

}  // namespace attn_diag::gpu_check
