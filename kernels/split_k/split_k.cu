// split_k's adapter: what the harness sees of the kernel.
#include "split_k/split_k.h"

#include "common/kernel_traits.h"
#include "common/launch.h"

namespace attn_diag {
namespace {

// Splits unless the user says otherwise: one per KV tile up to four, so that long sequences have
// several tiles in a split and the recurrence within it is exercised too.
constexpr int kDefaultSplits = 4;
// The reduce kernel keeps a weight per split in shared memory.
constexpr int kMaxSplits = 2048;
constexpr int kMaxHeadDim = KernelTraits<64, 64>::kMaxHeadDim;

// num_splits may exceed the number of KV tiles: the splits past the end are empty.
Status plan(const Problem& problem, TileShape tile, std::int32_t num_splits, Geometry* geometry,
            char* error, std::size_t capacity) {
  if (const Status status = check_supported(problem, tile, kMaxHeadDim, error, capacity);
      status != Status::kOk)
    return status;
  if (num_splits < 0 || num_splits > kMaxSplits)
    return fail(Status::kUnsupported, error, capacity, "num_splits %d: split_k takes 1 to %d",
                num_splits, kMaxSplits);
  if (std::int64_t{problem.batch} * problem.heads > 65535)
    return fail(Status::kUnsupported, error, capacity,
                "batch %d times heads %d: split_k takes up to 65535 heads in all", problem.batch,
                problem.heads);
  const int num_tiles = ceil_div(problem.seqlen_k, tile.block_n);
  *geometry = Geometry{};
  geometry->tile = tile;
  geometry->num_splits =
      num_splits > 0 ? num_splits : (num_tiles < kDefaultSplits ? num_tiles : kDefaultSplits);
  geometry->tiles_per_split = ceil_div(num_tiles, geometry->num_splits);
  geometry->has_split_merge = true;
  geometry->skips_masked_tiles = true;
  return Status::kOk;
}

Arithmetic arithmetic(const Problem& problem, const Geometry&) { return fp32_arithmetic(problem); }

std::size_t workspace_bytes(const Problem& problem, const Geometry& geometry) {
  return partials_bytes(problem, geometry);
}

Status run(const RunRequest& request) {
  return with_element(request, [&]<class Element>(std::type_identity<Element>) {
    return run_split_k<Element>(request);
  });
}

constexpr KernelInfo describe() {
  KernelInfo info;
  info.name = "split_k";
  info.summary = "KV tiles in splits that run side by side, merged by a reduce kernel";
  info.tiles = kCompiledTiles;
  info.num_tiles = kNumCompiledTiles;
  info.takes_num_splits = true;
  info.gates = kCompiledGates;
  for (TensorExposure& exposure : info.exposure) exposure.exposed = true;
  info.plan = plan;
  info.arithmetic = arithmetic;
  info.workspace_bytes = workspace_bytes;
  info.run = run;
  return info;
}

constexpr KernelInfo kKernel = describe();
constexpr KernelLibrary kLibrary = {kKernelAbiVersion, 1, &kKernel};

}  // namespace
}  // namespace attn_diag

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  return &attn_diag::kLibrary;
}
