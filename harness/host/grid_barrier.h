// The barrier of a cooperative launch's grid.
#pragma once

#include <cstdint>
#include <string>

#include "attn_diag_host/launch.h"

namespace attn_diag::host {

// Why the attributes of a launch are impossible; empty if they are not.
std::string attribute_problem(const cudaLaunchConfig_t& config);
bool is_cooperative(const cudaLaunchConfig_t& config);
// Called before the blocks of a launch run; there is one launch at a time.
void prepare_grid_barrier(const cudaLaunchConfig_t& config);
// All threads of a block have returned.
void note_block_ended(std::uint64_t block);

}  // namespace attn_diag::host
