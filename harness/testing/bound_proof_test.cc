// The proof of the rounding bounds on real kernels: over random cases of every kind the correct
// kernels stay within them, and the bounds are not so loose that nothing could break them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/mismatch.h"
#include "attn_diag/harness/run.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

class RandomCases {
 public:
  explicit RandomCases(std::uint64_t seed) : x_random(seed) {}

  std::int32_t uniform(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(x_random() % static_cast<std::uint64_t>(high - low + 1));
  }
  template <class T, std::size_t kN>
  T one_of(const std::array<T, kN>& choices) {
    return choices[x_random() % kN];
  }

  TileShape tile(const Kernel& kernel) {
    return kernel.info().tiles[uniform(0, kernel.info().num_tiles - 1)];
  }

  // tensor_cores: 16-bit types, head dimensions up to 128.
  Problem problem(TileShape tile, bool tensor_cores) {
    Problem p;
    p.batch = uniform(1, 2);
    p.kv_heads = uniform(1, 2);
    p.heads = p.kv_heads * uniform(1, 3);
    // Up to three and a bit tiles, at least a few keys.
    p.seqlen_q = uniform(1, std::min(3 * tile.block_m + 5, 100));
    p.seqlen_k = uniform(1, std::min(3 * tile.block_n + 9, 150));
    p.head_dim = tensor_cores
                     ? one_of(std::array<std::int32_t, 10>{1, 3, 16, 32, 40, 48, 64, 80, 96, 128})
                     : one_of(std::array<std::int32_t, 9>{1, 2, 3, 16, 40, 64, 80, 128, 256});
    p.head_dim_v = uniform(0, 3) == 0 ? uniform(1, 80) : p.head_dim;
    p.dtype = tensor_cores ? one_of(std::array{DType::kFp16, DType::kBf16})
                           : one_of(std::array{DType::kFp16, DType::kBf16, DType::kFp32});
    p.layout = one_of(std::array{Layout::kBHSD, Layout::kBSHD});
    p.mask.kind = one_of(std::array{MaskKind::kNone, MaskKind::kCausal, MaskKind::kWindow});
    p.mask.alignment = one_of(std::array{CausalAlignment::kTopLeft, CausalAlignment::kBottomRight});
    if (p.mask.kind == MaskKind::kWindow) {
      p.mask.window_left = uniform(0, p.seqlen_k);
      p.mask.window_right = uniform(0, 5);
    }
    p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
    return p;
  }

  // 1e-3 to 30, evenly in its logarithm.
  double scale() {
    const double place = static_cast<double>(x_random() >> 11) * 0x1p-53;
    return 1e-3 * std::pow(3e4, place);
  }

 private:
  std::mt19937_64 x_random;
};

// The largest err/bound of a tensor in every case that had it.
using Ratios = std::array<std::vector<double>, kNumTensors>;

double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

void print(const char* title, const Ratios& ratios) {
  std::printf("%s\n  tensor      cases    median   largest  (of max err/bound per case)\n", title);
  for (const TensorInfo& tensor : kTensors) {
    const std::vector<double>& r = ratios[static_cast<std::size_t>(tensor.id)];
    if (r.empty()) continue;
    std::printf("  %-10.*s %6zu  %8.4f  %8.4f\n", static_cast<int>(tensor.name.size()),
                tensor.name.data(), r.size(), median(r), *std::max_element(r.begin(), r.end()));
  }
}

// Runs `cases` random cases, prefix and isolated, on the kernels in turn, and prints how much of the
// bounds they take up.
Ratios check_random_cases(int cases, const std::vector<Kernel>& kernels, bool tensor_cores) {
  RandomCases random(20261120);
  Ratios prefix, isolated;
  for (int i = 0; i < cases; ++i) {
    const Kernel& kernel = kernels[static_cast<std::size_t>(i) % kernels.size()];
    RunOptions options;
    options.tile = random.tile(kernel);
    options.num_splits = kernel.info().takes_num_splits ? random.uniform(0, 5) : 0;
    // Every second case sums as an H200's tensor cores do, the others in orders of their own.
    if (tensor_cores) options.mma_order = static_cast<std::uint64_t>(i / 2 % 2 * i);
    const Problem p = random.problem(options.tile, tensor_cores);
    const InputData inputs = make_inputs(p, "randn", static_cast<std::uint64_t>(i), random.scale());
    for (const bool isolate : {false, true}) {
      options.isolate = isolate;
      const Capture capture = run_kernel({kernel, p, inputs, options});
      const Comparison comparison = compare_with_reference(capture, {});
      bool covered = true;
      for (const Coverage& c : capture.coverage) covered &= c.never == 0 && c.repeatedly == 0;
      if (!comparison.agrees() || !covered) {
        INFO("case " << i << ", inputs times " << inputs.scale);
        FAIL_CHECK(describe_capture(capture) << '\n' << match_reference(capture, {}).text);
      }
      for (const TensorComparison& t : comparison.tensors) {
        (isolate ? isolated : prefix)[static_cast<std::size_t>(t.tensor)].push_back(
            t.max_err_over_bound);
      }
    }
  }
  print("Prefix", prefix);
  print("Isolated", isolated);
  return prefix;
}

}  // namespace

TEST_CASE("over 1,200 random cases the correct kernels never exceed the rounding bounds") {
  const Ratios prefix = check_random_cases(
      1200, {Kernel::load("fa1", "host"), Kernel::load("split_k", "host")}, false);
  for (const TensorInfo& tensor : kTensors) {
    const auto at = static_cast<std::size_t>(tensor.id);
    INFO(tensor.name);
    REQUIRE(prefix[at].size() >= 600);
    CHECK(median(prefix[at]) > 0.02);
  }
}

TEST_CASE("over 600 random cases the kernels on tensor cores never exceed the rounding bounds") {
  const Ratios prefix = check_random_cases(
      600, {Kernel::load("fused_wmma_simple", "host"), Kernel::load("fused_wmma", "host")}, true);
  for (const TensorInfo& tensor : kTensors) {
    if (tensor.id == Tensor::kMergedL || tensor.id == Tensor::kMergedO)
      continue;  // nothing to merge
    const auto at = static_cast<std::size_t>(tensor.id);
    INFO(tensor.name);
    REQUIRE(prefix[at].size() == 600);
    CHECK(median(prefix[at]) > 0.005);
  }
}

}  // namespace attn_diag
