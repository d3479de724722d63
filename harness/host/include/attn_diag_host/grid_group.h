// The grid of cooperative_groups.h.
#pragma once

#include "attn_diag_host/indices.h"

namespace attn_diag::host {

// Whether the launch was by cudaLaunchCooperativeKernel or has the cooperative attribute.
bool grid_is_cooperative();
// Waits until all threads of the grid have arrived. A finding if the launch is not cooperative.
void grid_barrier(const char* file, int line);

}  // namespace attn_diag::host

namespace cooperative_groups {

class grid_group {
 public:
  void sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    attn_diag::host::grid_barrier(file, line);
  }
  bool is_valid() const { return attn_diag::host::grid_is_cooperative(); }
  unsigned long long size() const { return num_threads(); }
  unsigned long long num_threads() const {
    return num_blocks() * (blockDim.x * blockDim.y * blockDim.z);
  }
  unsigned long long thread_rank() const {
    return block_rank() * (blockDim.x * blockDim.y * blockDim.z) + threadIdx.linear;
  }
  unsigned long long num_blocks() const {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  unsigned long long block_rank() const {
    return blockIdx.x +
           gridDim.x * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  dim3 group_dim() const { return gridDim; }
  dim3 dim_blocks() const { return gridDim; }
  dim3 block_index() const { return blockIdx; }

 private:
  friend grid_group this_grid();
  grid_group() = default;
};
inline grid_group this_grid() { return {}; }

// A cluster of blocks has no stand-in: naming one is an error of compilation.
template <class Unsupported = void>
int this_cluster() {
  static_assert(!std::is_same_v<Unsupported, Unsupported>,
                "thread block clusters are unsupported on the host executor");
  return 0;
}
template <class Unsupported = void>
int this_multi_grid() {
  static_assert(!std::is_same_v<Unsupported, Unsupported>,
                "multi-device grids are unsupported on the host executor");
  return 0;
}

}  // namespace cooperative_groups
