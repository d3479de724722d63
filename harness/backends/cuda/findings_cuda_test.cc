// What backend cuda finds in kernels that misbehave (testing/misbehaving.cu), and how it says it.
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "attn_diag/harness/catch2.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/harness/trace.h"
#include "harness/backends/cuda/testing/on_gpu.h"
#include "harness/base/memory.h"
#include "harness/base/process.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using testing::gpu_is_here;
using testing::misbehaving;

// Many blocks, so that the order in which they run moves.
Problem problem() {
  Problem p;
  p.heads = p.kv_heads = 8;
  p.seqlen_q = 300;
  p.seqlen_k = 20;
  p.head_dim = p.head_dim_v = 8;
  p.dtype = DType::kFp32;
  p.softmax_scale = 0.35355339f;
  return p;
}

Capture run(const std::string& kernel, const RunOptions& more = {}) {
  RunOptions options = more;
  options.taps = false;
  return run_kernel({Kernel::load(misbehaving(kernel), "cuda"), problem(),
                     make_inputs(problem(), "randn", 0, 1.0), options});
}

std::string error_of(const std::string& kernel, const RunOptions& options = {}) {
  try {
    run(kernel, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// Runs a hidden test of this program in a process of its own, whose CUDA context may be lost.
std::string in_own_process(const std::string& test) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const ProcessResult child = run_process({program, test});
  return child.out + child.err;
}

void print_errors_of(const std::string& kernel) {
  std::printf("FIRST %s\n", error_of(kernel).c_str());
  std::printf("SECOND %s\n", error_of("right").c_str());
}

void check_lost(const std::string& output) {
  CHECK_THAT(output, contains("gate full"));
  CHECK_THAT(output, contains("compute-sanitizer"));
  CHECK_THAT(output, contains("SECOND Nothing more can run on the GPU in this process"));
  CHECK_THAT(output, contains("was lost in an earlier run: "));
}

}  // namespace

TEST_CASE("a right kernel agrees on backend cuda, in two runs", "[cuda]") {
  if (!gpu_is_here()) return;
  const Capture c = run("right");
  CHECK_THAT(c, matches_reference());
  CHECK(c.repetition.runs == 2);
}

TEST_CASE("a cell that no thread of the GPU wrote is found", "[cuda]") {
  if (!gpu_is_here()) return;
  const Capture c = run("skips-cell");
  const Coverage& o = c.coverage[static_cast<std::size_t>(Tensor::kO)];
  CHECK(o.never == 1);
  REQUIRE(o.first_never.has_value());
  CHECK(o.first_never->index == std::array<std::int64_t, 5>{0, 0, 2, 1, 0});
}

TEST_CASE("two threads that write one cell at the same time are both counted", "[cuda]") {
  if (!gpu_is_here()) return;
  const Capture c = run_kernel({Kernel::load(misbehaving("visits-twice"), "cuda"), problem(),
                                make_inputs(problem(), "randn", 0, 1.0), RunOptions{}});
  const Coverage& lse = c.coverage[static_cast<std::size_t>(Tensor::kLse)];
  CHECK(lse.repeatedly == 8 * 300);
  REQUIRE(lse.first_repeated.has_value());
  CHECK(lse.first_repeated->writes == 2);
}

TEST_CASE("a store outside a buffer on the GPU is an error that says where", "[cuda]") {
  if (!gpu_is_here()) return;
  CHECK_THAT(error_of("writes-behind"), contains("wrote outside o: first at byte 76800"));
  CHECK_THAT(error_of("writes-before"), contains("wrote outside lse: first at byte -4"));
}

TEST_CASE(
    "a result that moves by less than rounding between runs on the GPU agrees, and is said to move",
    "[cuda]") {
  if (!gpu_is_here()) return;
  const Capture c = run("moves");
  CHECK(compare_with_reference(c, {}).agrees());  // each run alone is within its bounds
  REQUIRE(c.repetition.moved());
  CHECK(c.repetition.first->tensor == Tensor::kO);
  CHECK_THAT(c.notes.back(), contains("Two runs of the same case differ in "));
  CHECK(c.repetition.within_rounding);
  CHECK_THAT(c, matches_reference());

  RunOptions run;
  run.gate = Gate::kFull;
  const TraceResult result = trace({Kernel::load(misbehaving("moves"), "cuda"), problem(),
                                    make_inputs(problem(), "randn", 0, 1.0), run},
                                   {});
  CHECK(result.agrees());
  CHECK(result.schedules == ScheduleFinding::kOrderDependent);
  CHECK(result.sanity.within_bounds);
}

TEST_CASE("more shared memory than the GPU gives is refused, and nothing is lost", "[cuda]") {
  if (!gpu_is_here()) return;
  const std::string error = error_of("too-much-shared");
  CHECK_THAT(error, contains("gate full"));
  CHECK_THAT(error, contains("1048576 bytes of dynamic shared memory"));
  CHECK_THAT(error, contains("This GPU gives a block up to "));
  CHECK_THAT(run("right"), matches_reference());
}

TEST_CASE("schedules of the host executor are refused on backend cuda", "[cuda]") {
  if (!gpu_is_here()) return;
  RunOptions options;
  options.schedule = "reverse";
  CHECK_THAT(error_of("right", options), contains("Schedule reverse is one of the host executor"));
}

TEST_CASE("a run that is too large for the GPU is refused with the sizes", "[cuda]") {
  if (!gpu_is_here()) return;
  // q, k, v and o take two thirds of its memory each.
  const double memory = static_cast<double>(gpu_state().gpus.front().memory);
  if (available_memory() < 0.7 * memory) {
    WARN("SKIP: this machine has too little memory of its own to try");
    return;
  }
  Problem p = problem();
  p.seqlen_q = p.seqlen_k = static_cast<std::int32_t>(memory * 2 / 3 / (8 * 8 * 4 * 64));
  p.batch = 64;
  const Kernel kernel = Kernel::load(misbehaving("right"), "cuda");
  RunOptions options;
  options.taps = false;
  options.memory_limit = std::int64_t{1} << 60;
  options.region = {{0, 0, 0}, {1, 1, 1}};
  InputData none;
  CHECK_THROWS_WITH(run_kernel({kernel, p, none, options}), contains("of GPU memory, but only "));
}

// In a process of their own: the context does not survive them.
TEST_CASE("in its own process: an illegal address", "[.][child]") {
  print_errors_of("illegal-address");
}
TEST_CASE("in its own process: an illegal address of a launch that is not waited for",
          "[.][child]") {
  print_errors_of("late-address");
}
TEST_CASE("in its own process: a trap", "[.][child]") { print_errors_of("traps"); }

TEST_CASE("an illegal address ends the run with the launch it came from", "[cuda]") {
  if (!gpu_is_here()) return;
  const std::string output = in_own_process("in its own process: an illegal address");
  CHECK_THAT(output, contains("illegal memory access"));
  CHECK_THAT(output, contains("grid 300x8x1"));
  check_lost(output);
}

TEST_CASE("an illegal address of a launch that is not waited for is found at the end", "[cuda]") {
  if (!gpu_is_here()) return;
  const std::string output =
      in_own_process("in its own process: an illegal address of a launch that is not waited for");
  CHECK_THAT(output, contains("illegal memory access"));
  check_lost(output);
}

TEST_CASE("a trap ends the run with the launch it came from", "[cuda]") {
  if (!gpu_is_here()) return;
  check_lost(in_own_process("in its own process: a trap"));
}

}  // namespace attn_diag
