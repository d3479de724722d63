#include "harness/host/launch_limits.h"

#include <map>
#include <utility>

#include "harness/host/check/static_arrays.h"
#include "harness/host/device_model.h"
#include "harness/host/grid_barrier.h"
#include "harness/host/kernel_library.h"
#include "harness/host/static_layout.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

std::string shape_text(const dim3& d) { return concat('(', d.x, ',', d.y, ',', d.z, ')'); }

std::string impossible_shape(const dim3& g, const dim3& b) {
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7FFFFFFFu || g.y > 65535 || g.z > 65535)
    return concat("grid ", shape_text(g),
                  " is impossible: 1..2147483647 x 1..65535 x 1..65535 blocks");
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 || b.y > 1024 || b.z > 64 ||
      b.x * b.y * b.z > static_cast<unsigned>(kThreadsOfBlock))
    return concat("block ", shape_text(b),
                  " is impossible: at least 1 thread along each axis, at most 1024 x 1024 x 64 and "
                  "1024 in all");
  return "";
}

std::string target(const KernelCall& call) { return concat("sm_", call.architecture / 10); }

// The static shared arrays of one kernel.
struct StaticShared {
  std::size_t bytes = 0;
  std::string list;  // "sK 16384, sV 16384"
};

// Those that the kernel itself declares; none if its symbols or its address are not known.
const StaticShared& static_shared(const KernelCall& call, const KernelLibrary& library) {
  static std::map<std::pair<std::string, const void*>, StaticShared> known;
  const auto [place, is_new] = known.try_emplace({library.path, call.kernel});
  StaticShared& shared = place->second;
  if (!is_new || call.name != nullptr) return shared;
  const std::string kernel = kernel_name(call.kernel);
  for (const StaticArray& array : static_arrays(library)) {
    if (array.is_guard || without_signature(array.function) != kernel) continue;
    shared.bytes += array.bytes;
    shared.list =
        concat(shared.list, shared.list.empty() ? "" : ", ", array.name, ' ', array.bytes);
  }
  return shared;
}

std::string impossible_shared(std::size_t dynamic, const KernelCall& call, std::size_t limit) {
  const std::size_t most = most_shared_of_block(call.architecture);
  if (dynamic > most)
    return concat(dynamic, " bytes of dynamic shared memory are impossible: at most ", most, " on ",
                  target(call));
  if (dynamic > limit)
    return concat(dynamic, " bytes of dynamic shared memory, but the kernel may use ", limit,
                  ": raise that with cudaFuncSetAttribute(kernel, "
                  "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)");
  // The library has the static memory of all its kernels: seldom is there a need to ask whose it is.
  const KernelLibrary library = find_library(call.kernel);
  const std::size_t bytes = static_layout(library).bytes();
  if (bytes <= call.most_static_shared && bytes + dynamic <= most) return "";
  const StaticShared& shared = static_shared(call, library);
  if (shared.bytes > call.most_static_shared)
    return concat(shared.bytes, " bytes of static shared memory (", shared.list, "), but ",
                  call.most_static_shared, " are allowed on ", target(call),
                  ": make the arrays dynamic (extern __shared__) and ask for them with "
                  "cudaFuncSetAttribute, or build for sm_90a, for which nvcc allows more");
  if (shared.bytes + dynamic > most)
    return concat(shared.bytes, " bytes of static (", shared.list, ") and ", dynamic,
                  " of dynamic shared memory are ", shared.bytes + dynamic, ", but a block has ",
                  most, " at most on ", target(call));
  return "";
}

}  // namespace

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
std::size_t most_shared_of_block(int architecture) {
  constexpr std::size_t kKilo = 1024;
  if (architecture >= 1200) return 99 * kKilo;
  if (architecture >= 900) return kOptInSharedOfBlock;
  if (architecture == 860 || architecture == 890) return 99 * kKilo;
  if (architecture >= 800) return 163 * kKilo;
  if (architecture >= 750) return 64 * kKilo;
  return architecture >= 700 ? 96 * kKilo : 48 * kKilo;
}

std::string impossible(const cudaLaunchConfig_t& config, const KernelCall& call,
                       std::size_t dynamic_limit) {
  std::string problem = impossible_shape(config.gridDim, config.blockDim);
  if (problem.empty()) problem = impossible_shared(config.dynamicSmemBytes, call, dynamic_limit);
  return problem.empty() ? attribute_problem(config) : problem;
}

}  // namespace attn_diag::host
