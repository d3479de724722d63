// Runs every kernel of ours through its adapter, on the host executor, against a naive double loop
// that shares no code with it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/kernel.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/shipped_kernels.h"

namespace attn_diag {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Where element (b, h, s, d) of a tensor is.
std::int64_t element_at(const Problem& p, int heads, int seqlen, int dim, int b, int h, int s,
                        int d) {
  return p.layout == Layout::kBHSD ? ((std::int64_t{b} * heads + h) * seqlen + s) * dim + d
                                   : ((std::int64_t{b} * seqlen + s) * heads + h) * dim + d;
}

bool sees(const Problem& p, std::int64_t query, std::int64_t key) {
  const std::int64_t bottom_right = p.seqlen_k - p.seqlen_q;
  switch (p.mask.kind) {
    case MaskKind::kNone:
      return true;
    case MaskKind::kCausal:
      return key <= query + (p.mask.alignment == CausalAlignment::kBottomRight ? bottom_right : 0);
    case MaskKind::kWindow:
      return key >= query + bottom_right - p.mask.window_left &&
             key <= query + bottom_right + p.mask.window_right;
  }
  return false;
}

struct Tensors {
  std::vector<std::byte> q, k, v;
};

// Numbers in about [-2, 2], the same for the same seed.
std::vector<std::byte> numbers(std::int64_t count, DType type, std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(type));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    store_element(bytes.data(), type, i, static_cast<double>(state >> 40) / (1 << 22) - 2.0);
  }
  return bytes;
}

Tensors make_tensors(const Problem& p) {
  const std::int64_t rows_q = std::int64_t{p.batch} * p.heads * p.seqlen_q;
  const std::int64_t rows_k = std::int64_t{p.batch} * p.kv_heads * p.seqlen_k;
  return {numbers(rows_q * p.head_dim, p.dtype, 1), numbers(rows_k * p.head_dim, p.dtype, 2),
          numbers(rows_k * p.head_dim_v, p.dtype, 3)};
}

struct Output {
  std::vector<std::byte> o;
  std::vector<float> lse;
};

Output run(const Kernel& kernel, const Problem& problem, TileShape tile, int num_splits,
           const Tensors& in) {
  char error[512] = "";
  Geometry geometry;
  const Status planned =
      kernel.info().plan(problem, tile, num_splits, &geometry, error, sizeof error);
  INFO(error);
  REQUIRE(planned == Status::kOk);
  const std::int64_t rows = std::int64_t{problem.batch} * problem.heads * problem.seqlen_q;
  // Bytes 0xff are NaN in every type: what is not written is seen.
  Output out{std::vector<std::byte>(
                 static_cast<std::size_t>(rows * problem.head_dim_v) * size_of(problem.dtype),
                 std::byte{0xff}),
             std::vector<float>(static_cast<std::size_t>(rows), std::nanf(""))};
  std::vector<float> workspace(kernel.info().workspace_bytes(problem, geometry) / sizeof(float) + 1,
                               std::nanf(""));
  RunRequest request;
  request.problem = problem;
  request.geometry = geometry;
  request.q = in.q.data();
  request.k = in.k.data();
  request.v = in.v.data();
  request.o = out.o.data();
  request.lse = out.lse.data();
  request.workspace = workspace.data();
  request.error = error;
  request.error_capacity = sizeof error;
  const Status status = kernel.info().run(request);
  INFO(error);
  REQUIRE(status == Status::kOk);
  return out;
}

// True if |actual - expected| <= tolerance, or both are the same infinity.
bool close(double actual, double expected, double tolerance) {
  return actual == expected || std::abs(actual - expected) <= tolerance;
}

// Elements of o and lse that differ from the naive result by more than rounding can explain. p_unit:
// the unit roundoff of P before l is summed.
int count_wrong(const Problem& p, const Tensors& in, const Output& out, double p_unit) {
  const double unit = p.dtype == DType::kFp32 ? 1e-6 : p.dtype == DType::kFp16 ? 1e-3 : 8e-3;
  int wrong = 0;
  std::vector<double> score(static_cast<std::size_t>(p.seqlen_k));
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h)
      for (int query = 0; query < p.seqlen_q; ++query) {
        const int kv_head = h / (p.heads / p.kv_heads);
        double m = -kInfinity, l = 0;
        for (int key = 0; key < p.seqlen_k; ++key) {
          double dot = 0;
          for (int d = 0; d < p.head_dim; ++d)
            dot +=
                load_element(in.q.data(), p.dtype,
                             element_at(p, p.heads, p.seqlen_q, p.head_dim, b, h, query, d)) *
                load_element(in.k.data(), p.dtype,
                             element_at(p, p.kv_heads, p.seqlen_k, p.head_dim, b, kv_head, key, d));
          score[key] = sees(p, query, key) ? dot * p.softmax_scale : -kInfinity;
          m = std::max(m, score[key]);
        }
        for (int key = 0; key < p.seqlen_k; ++key)
          l += score[key] == -kInfinity ? 0 : std::exp(score[key] - m);
        const double lse = l == 0 ? -kInfinity : m + std::log(l);
        const std::int64_t row = (std::int64_t{b} * p.heads + h) * p.seqlen_q + query;
        wrong +=
            !close(out.lse[static_cast<std::size_t>(row)], lse, 1e-5 * (1 + std::abs(m)) + p_unit);
        for (int d = 0; d < p.head_dim_v; ++d) {
          double o = 0;
          for (int key = 0; key < p.seqlen_k; ++key)
            if (score[key] != -kInfinity)
              o += std::exp(score[key] - m) / l *
                   load_element(
                       in.v.data(), p.dtype,
                       element_at(p, p.kv_heads, p.seqlen_k, p.head_dim_v, b, kv_head, key, d));
          const double actual =
              load_element(out.o.data(), p.dtype,
                           element_at(p, p.heads, p.seqlen_q, p.head_dim_v, b, h, query, d));
          wrong += !close(actual, o, 2 * unit + unit * std::abs(o));
        }
      }
  return wrong;
}

struct Case {
  const char* what;
  int batch, heads, kv_heads, seqlen_q, seqlen_k, head_dim, head_dim_v;
  Layout layout;
  Mask mask;
  int num_splits;  // split_k only; 0: its choice
};

constexpr Mask kCausalTopLeft{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};
constexpr Mask kCausalBottomRight{MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0};
constexpr Mask window(int left, int right) {
  return {MaskKind::kWindow, CausalAlignment::kTopLeft, left, right};
}

const Case kCases[] = {
    {"one query, one key, one dimension", 1, 1, 1, 1, 1, 1, 1, Layout::kBHSD, {}, 0},
    {"fewer keys than a tile", 1, 1, 1, 3, 2, 5, 5, Layout::kBHSD, {}, 0},
    {"tails everywhere", 2, 2, 2, 33, 71, 20, 20, Layout::kBHSD, {}, 0},
    {"head_dim 256", 1, 1, 1, 17, 66, 256, 256, Layout::kBHSD, {}, 0},
    {"head_dim 128", 1, 1, 1, 130, 66, 128, 128, Layout::kBSHD, {}, 0},
    {"head_dim 96, padded from 80", 1, 2, 2, 67, 70, 80, 80, Layout::kBSHD, kCausalTopLeft, 0},
    {"odd head_dim, so that no row is aligned", 1, 2, 1, 70, 67, 33, 31, Layout::kBSHD, {}, 0},
    {"head_dim_v larger than head_dim", 1, 2, 1, 5, 70, 8, 130, Layout::kBHSD, {}, 0},
    {"grouped heads, BSHD", 2, 4, 2, 9, 35, 16, 24, Layout::kBSHD, {}, 0},
    {"causal", 1, 2, 2, 67, 67, 16, 16, Layout::kBHSD, kCausalTopLeft, 0},
    {"causal top_left, more keys", 1, 1, 1, 20, 70, 16, 16, Layout::kBSHD, kCausalTopLeft, 0},
    {"causal top_left, more queries", 1, 1, 1, 70, 20, 16, 16, Layout::kBHSD, kCausalTopLeft, 0},
    {"causal bottom_right, more keys", 1, 1, 1, 20, 70, 16, 16, Layout::kBHSD, kCausalBottomRight,
     0},
    {"causal bottom_right, empty rows", 1, 2, 1, 70, 20, 16, 16, Layout::kBSHD, kCausalBottomRight,
     0},
    {"window", 1, 1, 1, 90, 90, 16, 16, Layout::kBHSD, window(7, 3), 0},
    {"window wider than everything", 1, 1, 1, 9, 9, 4, 4, Layout::kBHSD,
     window(2147483647, 2147483647), 0},
    {"window with empty rows", 1, 1, 1, 70, 20, 16, 16, Layout::kBHSD, window(2, 0), 0},
    {"one split", 1, 1, 1, 9, 130, 8, 8, Layout::kBHSD, {}, 1},
    {"more splits than tiles, some empty", 1, 1, 1, 9, 130, 8, 8, Layout::kBHSD, {}, 40},
    {"splits that the mask empties", 1, 1, 1, 70, 70, 8, 8, Layout::kBHSD, kCausalTopLeft, 3},
};

// Kernels on tensor cores take 16-bit types and head dimensions up to 128.
bool on_tensor_cores(const std::string& kernel) { return kernel.rfind("fused_wmma", 0) == 0; }

TEST_CASE("every kernel, tile and type computes attention") {
  const std::string name = GENERATE(from_range(testing::shipped_kernels()));
  const Kernel kernel = Kernel::load(name, "host");
  const DType dtype = GENERATE(DType::kFp16, DType::kBf16, DType::kFp32);
  if (on_tensor_cores(name) && dtype == DType::kFp32) return;
  const double p_unit = !on_tensor_cores(name) ? 0 : dtype == DType::kFp16 ? 0x1p-11 : 0x1p-8;
  for (int t = 0; t < kernel.info().num_tiles; ++t)
    for (const Case& c : kCases) {
      if (c.num_splits > 0 && !kernel.info().takes_num_splits) continue;
      if (on_tensor_cores(name) && std::max(c.head_dim, c.head_dim_v) > 128) continue;
      const TileShape tile = kernel.info().tiles[t];
      Problem p;
      p.batch = c.batch;
      p.heads = c.heads;
      p.kv_heads = c.kv_heads;
      p.seqlen_q = c.seqlen_q;
      p.seqlen_k = c.seqlen_k;
      p.head_dim = c.head_dim;
      p.head_dim_v = c.head_dim_v;
      p.dtype = dtype;
      p.layout = c.layout;
      p.mask = c.mask;
      p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
      const Tensors in = make_tensors(p);
      INFO(name << ", tile " << tile.block_m << "x" << tile.block_n << ", " << c.what);
      CHECK(count_wrong(p, in, run(kernel, p, tile, c.num_splits, in), p_unit) == 0);
    }
}

TEST_CASE("a NaN in v reaches every output that may see its key, and no other row") {
  const Kernel kernel = Kernel::load(GENERATE(as<std::string>(), "fa1", "split_k"), "host");
  Problem p;
  p.seqlen_q = p.seqlen_k = 6;
  p.head_dim = p.head_dim_v = 2;
  p.dtype = DType::kFp32;
  p.mask = kCausalTopLeft;
  Tensors in = make_tensors(p);
  store_element(in.v.data(), p.dtype, 2 * 2 + 1, std::nan(""));  // key 2, dim 1
  // A tile of 2x1: no row is visited together with a key that it may not see.
  const Output out = run(kernel, p, {2, 1}, 0, in);
  for (int query = 0; query < 6; ++query) {
    INFO("query " << query);
    // Key 2 shares a query tile with queries 2 and 3.
    CHECK(std::isnan(load_element(out.o.data(), p.dtype, query * 2 + 1)) == (query >= 2));
    CHECK_FALSE(std::isnan(load_element(out.o.data(), p.dtype, query * 2)));
  }
}

TEST_CASE("a NaN score makes its row NaN") {
  const Kernel kernel = Kernel::load(GENERATE(as<std::string>(), "fa1", "split_k"), "host");
  Problem p;
  p.seqlen_q = 3;
  p.seqlen_k = 5;
  p.head_dim = p.head_dim_v = 2;
  p.dtype = DType::kFp32;
  Tensors in = make_tensors(p);
  store_element(in.q.data(), p.dtype, 1 * 2, std::nan(""));  // query 1
  const Output out = run(kernel, p, {2, 2}, 0, in);
  for (int query = 0; query < 3; ++query) {
    CHECK(std::isnan(load_element(out.o.data(), p.dtype, query * 2)) == (query == 1));
    CHECK(std::isnan(out.lse[static_cast<std::size_t>(query)]) == (query == 1));
  }
}

TEST_CASE("what a kernel cannot do it refuses with a reason") {
  char error[512] = "";
  Geometry geometry;
  const auto refusal = [&](const char* kernel, const Problem& p, TileShape tile, int num_splits) {
    const Status status = Kernel::load(kernel, "host")
                              .info()
                              .plan(p, tile, num_splits, &geometry, error, sizeof error);
    CHECK(status == Status::kUnsupported);
    return std::string(error);
  };
  Problem p;
  CHECK_THAT(refusal("fa1", p, {64, 64}, 2), contains("use split_k"));
  CHECK_THAT(refusal("fa1", p, {3, 5}, 0), contains("tile 3x5 is not compiled"));
  CHECK_THAT(refusal("split_k", p, {64, 64}, 5000), contains("takes 1 to"));
  Problem long_q = p;
  long_q.dtype = DType::kFp16;
  long_q.head_dim = long_q.head_dim_v = 64;
  long_q.seqlen_q = 65535 * 64 + 1;
  CHECK_THAT(refusal("fused_wmma", long_q, {64, 64}, 0), contains("take at most 4194240"));
  CHECK_THAT(refusal("fused_wmma", p, {64, 64}, 2), contains("use split_k"));
  CHECK_THAT(refusal("fused_wmma", p, {2, 2}, 0), contains("compiled: 64x64, 128x64, 16x16"));
  p.head_dim_v = 129;
  CHECK_THAT(refusal("fused_wmma", p, {64, 64}, 0), contains("1 to 128"));
  CHECK_THAT(refusal("fused_wmma_simple", p, {64, 64}, 0), contains("1 to 128"));
  p.head_dim_v = 1;
  p.dtype = DType::kFp32;
  CHECK_THAT(refusal("fused_wmma", p, {64, 64}, 0), contains("compiled: fp16, bf16"));
  p.dtype = DType::kFp16;
  p.head_dim = 257;
  CHECK_THAT(refusal("fa1", p, {64, 64}, 0), contains("1 to 256"));
  p.head_dim = 64;
  p.dtype = DType::kFp64;
  CHECK_THAT(refusal("split_k", p, {64, 64}, 0), contains("dtype fp64 is not compiled"));
}

TEST_CASE("a NaN score makes its row NaN on tensor cores") {
  const std::string name = GENERATE("fused_wmma_simple", "fused_wmma");
  const Kernel kernel = Kernel::load(name, "host");
  Problem p;
  p.seqlen_q = 40;
  p.seqlen_k = 70;
  p.head_dim = p.head_dim_v = 16;
  Tensors in = make_tensors(p);
  store_element(in.q.data(), p.dtype, 17 * 16, std::nan(""));  // query 17
  const Output out = run(kernel, p, {64, 64}, 0, in);
  for (int query = 0; query < 40; ++query) {
    INFO(name << ", query " << query);
    CHECK(std::isnan(load_element(out.o.data(), p.dtype, query * 16)) == (query == 17));
    CHECK(std::isnan(out.lse[static_cast<std::size_t>(query)]) == (query == 17));
  }
}

TEST_CASE("fused_wmma takes large query tiles where they make enough blocks") {
  const Kernel kernel = Kernel::load("fused_wmma", "host");
  const auto tile_of = [&](int batch, int heads, int seqlen_q) {
    Problem p;
    p.batch = batch;
    p.heads = heads;
    p.seqlen_q = seqlen_q;
    return kernel.info().default_tile(p).block_m;
  };
  CHECK(tile_of(1, 8, 512) == 64);
  CHECK(tile_of(1, 8, 3968) == 64);
  CHECK(tile_of(1, 8, 3969) == 128);
  CHECK(tile_of(16, 8, 256) == 128);
}

TEST_CASE("the launch of an impossible grid is reported, not ignored") {
  const Kernel kernel = Kernel::load("fa1", "host");
  Problem p;
  const Tensors in = make_tensors(p);
  char error[512] = "";
  Geometry geometry;
  REQUIRE(kernel.info().plan(p, {64, 64}, 0, &geometry, error, sizeof error) == Status::kOk);
  RunRequest request;
  request.problem = p;
  request.problem.heads = 70000;  // past what plan() lets through
  request.geometry = geometry;
  request.error = error;
  request.error_capacity = sizeof error;
  CHECK(kernel.info().run(request) == Status::kLaunchFailed);
  CHECK_THAT(std::string(error), contains("fa1, gate full (grid 1x70000x1, block 128x1x1, "));
  CHECK_THAT(std::string(error), contains("launch failed"));
}

}  // namespace
}  // namespace attn_diag
