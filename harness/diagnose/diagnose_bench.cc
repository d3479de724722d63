// What a diagnosis costs: diagnose() of q, k, v, o and lse with B = 1, H = 8, S = 512, D = 64, fp16, causal,
// and the reference of the same problem (every tensor, with bounds), in turn in one process and on as many
// threads. Best of some: seconds of the clock, and of processor time, whose ratio is given; and the memory of
// the whole process.
//
//   diagnose_bench [THREADS]    2 unless told
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "attn_diag/reference/reference.h"
#include "harness/diagnose/testing/buggy_capture.h"
#include "harness/testing/captures.h"

namespace attn_diag {
namespace {

constexpr int kTurns = 3;

struct Seconds {
  double wall = std::numeric_limits<double>::infinity(), processor = wall;

  void take_best(const Seconds& other) {
    wall = std::min(wall, other.wall);
    processor = std::min(processor, other.processor);
  }
};

Seconds now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {std::chrono::duration<double>(time).count(),
          static_cast<double>(usage.ru_utime.tv_sec) +
              1e-6 * static_cast<double>(usage.ru_utime.tv_usec)};
}

template <class Work>
Seconds seconds_of(const Work& work) {
  const Seconds begin = now();
  work();
  const Seconds end = now();
  return {end.wall - begin.wall, end.processor - begin.processor};
}

testing::BuggyCase large_case() {
  testing::BuggyCase c;
  Problem& p = c.problem;
  p.heads = p.kv_heads = 8;
  p.seqlen_q = p.seqlen_k = 512;
  p.head_dim = p.head_dim_v = 64;
  p.softmax_scale = 0.125f;
  p.mask.kind = MaskKind::kCausal;
  c.geometry.tile = {64, 64};
  c.geometry.tiles_per_split = 8;
  c.inputs = "randn";
  return c;
}

// Outputs of a kernel that does not divide by l.
Capture known_bug(const testing::BuggyCase& c) {
  const auto variants = reference::find_hypothesis("l-missing")->variants(testing::data_of(c));
  return testing::buggy_capture(c, variants.front().deviation);
}

// Right outputs with an error that is no known bug: smooth in query and column.
Capture no_known_bug(const testing::BuggyCase& c) {
  Capture capture = testing::buggy_capture(c, {});
  const TensorData& o = capture[Tensor::kO];
  const std::int64_t columns = c.problem.head_dim_v;
  std::vector<double> values(static_cast<std::size_t>(o.size()));
  for (std::int64_t i = 0; i < o.size(); ++i) {
    const auto query = static_cast<double>(i / columns % c.problem.seqlen_q);
    const auto column = static_cast<double>(i % columns);
    values[static_cast<std::size_t>(i)] =
        o.at(i) + 0.05 * std::sin(0.01 * query) * std::cos(0.1 * column);
  }
  testing::put(capture, Tensor::kO, c.problem.dtype, values);
  return capture;
}

void run_reference(const Capture& capture, int threads) {
  reference::Options options;
  options.threads = threads;
  options.bounds = true;
  reference::for_each_row_block(capture.problem, capture.geometry, capture.arithmetic,
                                {capture.q.data(), capture.k.data(), capture.v.data()}, options,
                                [](const reference::RowBlock& block) {
                                  asm volatile("" : : "r"(&block) : "memory");  // it is used
                                });
}

void compare(const char* what, const Capture& capture, const DiagnoseOptions& options) {
  Seconds reference, diagnosis;
  for (int i = 0; i < kTurns; ++i) {
    reference.take_best(seconds_of([&] { run_reference(capture, options.threads); }));
    diagnosis.take_best(seconds_of([&] { diagnose(capture, options); }));
  }
  std::printf("%-46s %5.2f s, processor %5.2f s: %4.0f references of %.3f s\n", what,
              diagnosis.wall, diagnosis.processor, diagnosis.processor / reference.processor,
              reference.processor);
  std::fflush(stdout);
}

void run(int threads) {
  const testing::BuggyCase c = large_case();
  const Capture known = known_bug(c), unknown = no_known_bug(c);
  DiagnoseOptions options;
  options.threads = threads;
  options.pairs = false;
  compare("one bug, tiles known", known, options);
  options.geometries = usual_cuts(c.problem, 1);
  compare("one bug, tiles not known", known, options);
  compare("no known bug, tiles not known, without pairs", unknown, options);
  options.pairs = true;
  compare("no known bug, tiles not known, pairs", unknown, options);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%.2f GiB at most\n", static_cast<double>(usage.ru_maxrss) / (1 << 20));
}

}  // namespace
}  // namespace attn_diag

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  if (argc > 2 || threads < 1) {
    std::fprintf(stderr, "usage: diagnose_bench [THREADS]\n");
    return 2;
  }
  attn_diag::run(threads);
}
