#include "harness/host/grid_barrier.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "attn_diag_host/atomics.h"
#include "attn_diag_host/give_way.h"
#include "attn_diag_host/grid_group.h"
#include "attn_diag_host/launch_by_pointer.h"
#include "attn_diag_host/synchronize.h"
#include "harness/host/block_runner.h"
#include "harness/host/last_error.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

// The barrier of the running launch's grid.
struct GridBarrier {
  bool cooperative = false;
  std::uint64_t blocks = 0;
  unsigned long long arrived = 0;  // blocks, since the launch began

  std::mutex mutex;                   // of what follows
  std::vector<std::uint64_t> rounds;  // by block: how often it has arrived
  std::vector<bool> ended;
  std::uint64_t num_ended = 0;
};
GridBarrier g_grid;

std::uint64_t this_block() {
  return (std::uint64_t{::blockIdx.z} * gridDim.y + ::blockIdx.y) * gridDim.x + ::blockIdx.x;
}

std::uint64_t arrive() {
  const std::lock_guard lock(g_grid.mutex);
  return ++g_grid.rounds[this_block()];
}

// If every block waits in this round or has ended, nobody can go on: the blocks that ended before the round.
std::vector<std::uint64_t> blocks_that_never_come(std::uint64_t round) {
  const std::lock_guard lock(g_grid.mutex);
  if (g_grid.num_ended == 0) return {};
  std::vector<std::uint64_t> missing;
  for (std::uint64_t block = 0; block < g_grid.blocks; ++block) {
    if (g_grid.rounds[block] >= round) continue;
    if (!g_grid.ended[block]) return {};
    missing.push_back(block);
  }
  return missing;
}

}  // namespace

void note_block_ended(std::uint64_t block) {
  if (!g_grid.cooperative) return;
  const std::lock_guard lock(g_grid.mutex);
  g_grid.ended[block] = true;
  ++g_grid.num_ended;
}

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
  g_grid.rounds.assign(g_grid.cooperative ? g_grid.blocks : 0, 0);
  g_grid.ended.assign(g_grid.cooperative ? g_grid.blocks : 0, false);
  g_grid.num_ended = 0;
}

bool BlockRunner::record_missing_blocks(std::uint64_t round, const char* file, int line) {
  constexpr std::size_t kMostNamed = 8;
  const std::vector<std::uint64_t> missing = blocks_that_never_come(round);
  if (missing.empty()) return false;
  std::string names;
  for (std::size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i) {
    const std::uint64_t b = missing[i];
    names = concat(names, i == 0 ? "" : ", ", '(', b % gridDim.x, ',', b / gridDim.x % gridDim.y,
                   ',', b / gridDim.x / gridDim.y, ')');
  }
  if (missing.size() > kMostNamed)
    names = concat(names, " and ", missing.size() - kMostNamed, " more");
  record(LaunchFindingKind::kBarrierDivergence,
         concat("waits at grid.sync() at ", file, ':', line, " with ",
                g_grid.blocks - missing.size() - 1, " other blocks for ", missing.size(), " of ",
                g_grid.blocks, " blocks that have returned: block",
                missing.size() == 1 ? " " : "s ", names),
         "All blocks of a cooperative launch must call grid.sync() equally often", file, line);
  return true;
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
    const std::uint64_t round = arrive();
    const std::uint64_t before = atomicAdd(&g_grid.arrived, 1ull);
    const std::uint64_t end = (before / g_grid.blocks + 1) * g_grid.blocks;
    while (atomicAdd(&g_grid.arrived, 0ull) < end) {
      BlockRunner::current()->poll(Wait::kGrid, file, line, address(__builtin_return_address(0)),
                                   address(__builtin_frame_address(0)));
      if (BlockRunner::current()->record_missing_blocks(round, file, line))
        BlockRunner::current()->leave_for_good();
    }
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
