#include <cmath>
#include <cstring>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

LaunchOptions one_worker() {
  LaunchOptions options;
  options.workers = 1;  // every block finds what the one before it left
  return options;
}

}  // namespace

TEST_CASE("static shared memory is poisoned anew for every block") {
  for (const auto launch : {plain::static_shared_poison, plain::templated_shared_poison}) {
    std::vector<std::uint32_t> out(5 * 32);
    REQUIRE(launched(one_worker(), [&] { return launch(5, out.data()); }).completed());
    for (const std::uint32_t value : out) REQUIRE(value == 0xFFFFFFFFu);
  }
}

TEST_CASE("dynamic shared memory is poisoned anew for every block, to its last byte") {
  for (const std::size_t bytes : {4u, 132u, 48u * 1024}) {
    CAPTURE(bytes);
    std::vector<std::uint32_t> seen(5 * 32);
    REQUIRE(launched(one_worker(), [&] {
              return plain::dynamic_shared_poison(5, bytes, seen.data());
            }).completed());
    for (const std::uint32_t all : seen) REQUIRE(all == 0xFFFFFFFFu);
  }
}

TEST_CASE("shared memory can be filled with another byte for every block") {
  LaunchOptions options = one_worker();
  options.shared_fill = 0x77;
  std::vector<std::uint32_t> out(5 * 32);
  REQUIRE(
      launched(options, [&] { return plain::static_shared_poison(5, out.data()); }).completed());
  for (const std::uint32_t value : out) REQUIRE(value == 0x77777777u);
  REQUIRE(launched(options, [&] {
            return plain::dynamic_shared_poison(5, 132, out.data());
          }).completed());
  for (const std::uint32_t all : out) REQUIRE(all == 0x77777777u);
}

TEST_CASE("poison is NaN in every floating-point type") {
  const std::uint64_t bits = ~0ull;
  float f;
  double d;
  half h;
  std::memcpy(&f, &bits, sizeof f);
  std::memcpy(&d, &bits, sizeof d);
  std::memcpy(&h, &bits, sizeof h);
  CHECK(std::isnan(f));
  CHECK(std::isnan(d));
  CHECK(__hisnan(h));
}

TEST_CASE("dynamic shared memory is one array for the block, aligned for the widest loads") {
  std::uint64_t seen[2];
  REQUIRE(launched("forward", [&] { return plain::dynamic_shared_alignment(seen); }).completed());
  CHECK(seen[0] == seen[1]);
  CHECK(seen[0] % 128 == 0);
}

TEST_CASE("more than 48 KiB of dynamic shared memory must be asked for, up to 227 KiB") {
  const auto run = [](std::size_t bytes, int attribute) {
    return launched("forward",
                    [=] { return plain::dynamic_shared_with_attribute(bytes, attribute); });
  };
  CHECK(run(227 * 1024, 227 * 1024).completed());
  const Launched unasked = run(100 * 1024, 48 * 1024);
  CHECK(unasked.error == cudaErrorInvalidConfiguration);
  CHECK(unasked.finding().kind == LaunchFindingKind::kLaunchConfig);
  CHECK(contains(unasked.finding().message, "cudaFuncSetAttribute"));
  CHECK(run(16, 228 * 1024).error == cudaErrorInvalidValue);
}

TEST_CASE("locals that were never written hold the compiler's pattern, not an earlier value") {
  std::vector<std::uint32_t> out(3 * 32);
  REQUIRE(launched(one_worker(), [&] { return plain::local_poison(3, out.data()); }).completed());
  for (const std::uint32_t value : out) {
    REQUIRE(value != 0);
    REQUIRE(value == out[0]);
  }
}

TEST_CASE("every thread may have 32 KiB of locals") {
  std::vector<int> out(256, -1);
  REQUIRE(launched("forward", [&] { return plain::large_locals(256, out.data()); }).completed());
  for (const int wrong : out) REQUIRE(wrong == 0);
}

TEST_CASE("constant memory is written through cudaMemcpyToSymbol") {
  const float values[4] = {1.5f, -2.0f, 3.25f, 4.0f};
  float out[4] = {};
  REQUIRE(launched("forward", [&] { return plain::constant_memory(values, out); }).completed());
  for (int i = 0; i < 4; ++i) CHECK(out[i] == values[i]);
}

TEST_CASE("128-bit loads and stores keep the order of their parts") {
  void *in = nullptr, *out = nullptr;
  REQUIRE(cudaMalloc(&in, 256 * sizeof(float)) == cudaSuccess);
  REQUIRE(cudaMalloc(&out, 256 * sizeof(float)) == cudaSuccess);
  auto *x = static_cast<float*>(in), *y = static_cast<float*>(out);
  for (int i = 0; i < 256; ++i) x[i] = static_cast<float>(i);
  REQUIRE(launched("forward", [&] { return plain::wide_loads(x, y, 256); }).completed());
  for (int i = 0; i < 256; ++i) REQUIRE(y[i] == static_cast<float>(i / 4 * 4 + 3 - i % 4));
  cudaFree(in);
  cudaFree(out);
}

}  // namespace attn_diag::host
