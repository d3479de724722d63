// No false alarms: attn-diag check finds nothing in the kernels, whatever the shape, mask, layout, type,
// number of splits, tile and schedule.
#include <cmath>
#include <string>
#include <vector>

#include "attn_diag/harness/check_kernel.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr int kSeqlens[] = {1, 63, 64, 65, 100};  // around the tiles' ends
constexpr Mask kMasks[] = {{},
                           {MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0},
                           {MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0},
                           {MaskKind::kWindow, CausalAlignment::kTopLeft, 20, 3}};
struct HeadDims {
  int qk, v;
};
constexpr HeadDims kHeadDims[] = {{16, 16}, {33, 31}, {8, 40}};

// The last has two heads to one of k and v.
struct Heads {
  int heads, kv_heads;
};
constexpr Heads kHeads[] = {{1, 1}, {2, 2}, {2, 1}};

struct Case {
  Problem problem;
  int num_splits;
  const char* schedule;
  int tile;  // of the kernel's first two, if it has two
};

// Every pair of lengths under every mask; the rest takes turns such that each meets every mask.
std::vector<Case> cases(DType dtype) {
  std::vector<Case> all;
  int pair = 0;
  for (const int seqlen_q : kSeqlens)
    for (const int seqlen_k : kSeqlens) {
      for (int m = 0; m < 4; ++m) {
        Problem p;
        p.heads = kHeads[(pair + m) % 3].heads;
        p.kv_heads = kHeads[(pair + m) % 3].kv_heads;
        p.seqlen_q = seqlen_q;
        p.seqlen_k = seqlen_k;
        p.head_dim = kHeadDims[(pair + 2 * m) % 3].qk;
        p.head_dim_v = kHeadDims[(pair + 2 * m) % 3].v;
        p.dtype = dtype;
        p.layout = (pair + m) % 2 == 0 ? Layout::kBHSD : Layout::kBSHD;
        p.mask = kMasks[m];
        p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
        all.push_back({p, 1 + (pair + m) % 4, pair % 2 == 0 ? "forward" : "seed:1", pair / 2 % 2});
      }
      ++pair;
    }
  return all;
}

void check_finds_nothing(const std::string& name) {
  const Kernel kernel = Kernel::load(name, "host", true);
  int checked = 0;
  for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
    // Kernels on tensor cores take 16-bit types.
    if (dtype == DType::kFp32 && name.starts_with("fused_wmma")) continue;
    for (const Case& c : cases(dtype)) {
      const Problem& p = c.problem;
      RunOptions options;
      if (kernel.info().takes_num_splits) options.num_splits = c.num_splits;
      options.schedule = c.schedule;
      options.tile = kernel.info().tiles[c.tile % kernel.info().num_tiles];
      const CheckResult result =
          check_kernel({kernel, p, make_inputs(p, "randn", 1, 1.0), options}, {});
      INFO(name << ", type " << static_cast<int>(dtype) << ", " << p.heads << " heads, "
                << p.kv_heads << " KV heads, " << p.seqlen_q << " queries, " << p.seqlen_k
                << " keys, head_dim " << p.head_dim << ", head_dim_v " << p.head_dim_v << ", mask "
                << static_cast<int>(p.mask.kind) << ", layout " << static_cast<int>(p.layout)
                << ", splits " << options.num_splits << ", schedule " << options.schedule
                << ", tile " << options.tile.block_m << 'x' << options.tile.block_n);
      std::string found;
      for (const host::CheckFinding& f : result.report.findings) found += f.message + '\n';
      CHECK(found == "");
      CHECK(result.report.summary.stores > 0);
      ++checked;
    }
  }
  CHECK(checked >= 200);
}

TEST_CASE("check finds nothing in fa1") { check_finds_nothing("fa1"); }
TEST_CASE("check finds nothing in split_k") { check_finds_nothing("split_k"); }
TEST_CASE("check finds nothing in fused_wmma_simple") { check_finds_nothing("fused_wmma_simple"); }
TEST_CASE("check finds nothing in fused_wmma") { check_finds_nothing("fused_wmma"); }

}  // namespace
}  // namespace attn_diag
