#include "harness/host/grid_barrier.h"

#include "attn_diag_host/atomics.h"
#include "attn_diag_host/give_way.h"
#include "attn_diag_host/grid_group.h"
#include "attn_diag_host/launch_by_pointer.h"
#include "attn_diag_host/synchronize.h"
#include "harness/host/block_runner_switch.h"
#include "harness/host/last_error.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

// Of the running launch.
struct GridBarrier {
  bool cooperative = false;
  std::uint64_t blocks = 0;
  unsigned long long arrived = 0;  // blocks, since the launch began
};
GridBarrier g_grid;

}  // namespace

bool is_cooperative(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == cudaLaunchAttributeCooperative)
      return config.attrs[i].val.cooperative != 0;
  return false;
}

std::string attribute_problem(const cudaLaunchConfig_t& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    const auto& cluster = attribute.val.clusterDim;
    switch (attribute.id) {
      case cudaLaunchAttributeClusterDimension:
        if (cluster.x == 1 && cluster.y == 1 && cluster.z == 1) break;
        return concat("clusters of ", cluster.x, " x ", cluster.y, " x ", cluster.z,
                      " blocks are not supported by the host executor; only 1 x 1 x 1 is");
      case cudaLaunchAttributeProgrammaticEvent:
        return "programmatic events (cudaLaunchAttributeProgrammaticEvent) are not supported by "
               "the host executor";
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributeCooperative:
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      case cudaLaunchAttributeProgrammaticStreamSerialization:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeMemSyncDomainMap:
      case cudaLaunchAttributeMemSyncDomain:
        break;
      default:
        return concat("launch attribute ", static_cast<int>(attribute.id),
                      " is not supported by the host executor");
    }
  }
  return "";
}

void prepare_grid_barrier(const cudaLaunchConfig_t& config) {
  g_grid.cooperative = is_cooperative(config);
  g_grid.blocks = std::uint64_t{config.gridDim.x} * config.gridDim.y * config.gridDim.z;
  g_grid.arrived = 0;
}

bool grid_is_cooperative() { return g_grid.cooperative; }

// Written as a user would, so that the checker sees what orders the blocks. A block arrives when all its
// threads have. The last to arrive completes a round; the others poll until
// the count has reached the end of theirs.
void grid_barrier(const char* file, int line) {
  if (!g_grid.cooperative)
    BlockRunner::current()->report_trap(
        "calls grid.sync() in a launch that is not cooperative",
        "Launch the kernel with cudaLaunchCooperativeKernel, or set cudaLaunchAttributeCooperative",
        file, line);
  block_barrier(file, line);
  if (threadIdx.linear == 0) {
    memory_fence();
    const std::uint64_t before = atomicAdd(&g_grid.arrived, 1ull);
    const std::uint64_t end = (before / g_grid.blocks + 1) * g_grid.blocks;
    while (atomicAdd(&g_grid.arrived, 0ull) < end) give_way(file, line);
    memory_fence();
  }
  block_barrier(file, line);
}

cudaError_t refuse_untyped_launch(const char* call) {
  return refuse(cudaErrorInvalidDeviceFunction, call,
                "the host executor cannot call a kernel through void*: pass the kernel itself, or "
                "keep it in a pointer of its own type");
}

}  // namespace attn_diag::host
