// Dump against write(2), and comparing dumps against h5diff: ratios taken in one run, measured in
// turns. Files go to $TMPDIR (or /tmp) and stay in the page cache; about 4 GiB of disk and 2 GiB of
// memory are needed.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/dump.h"
#include "harness/base/process.h"
#include "harness/testing/captures.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
// Processor time of this process's threads, or of the children it has waited for.
double processor_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// A capture whose only tensor is 1 GiB of S in float32.
Capture one_gibibyte() {
  constexpr std::int32_t kSide = 16384;
  Problem p;
  p.seqlen_q = p.seqlen_k = kSide;
  Capture c = testing::empty_capture(p, {});
  TensorData s;
  s.id = Tensor::kS;
  s.shape = {1, 1, kSide, kSide};
  s.origin = {0, 0, 0, 0};
  s.bytes.resize(static_cast<std::size_t>(kSide) * kSide * sizeof(float));
  auto* values = reinterpret_cast<float*>(s.bytes.data());
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < s.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(state >> 8) * 0x1p-22f + 1.0f;
  }
  c.tensors[0] = std::move(s);
  return c;
}

// Changes every n-th element, so that it differs by more than any tolerance used here.
void change_every(Capture& c, std::int64_t n) {
  auto* values = reinterpret_cast<float*>(c.tensors[0]->bytes.data());
  for (std::int64_t i = 0; i < c.tensors[0]->size(); i += n)
    values[i] += 0.25f + static_cast<float>(i % 1024) * 0x1p-12f;
}

// Runs h5diff without output; its exit code, or -1 if there is no h5diff.
int run_h5diff(const std::string& a, const std::string& b, const char* delta) {
  if (!is_program("h5diff")) return -1;
  return run_process({"h5diff", "-q", "-d", delta, a, b, "/stages/qk/S", "/stages/qk/S"}).exit_code;
}

// Two 1 GiB datasets of which every n-th element differs.
void compare_with_h5diff(benchmark::State& state) {
  const testing::TemporaryDirectory directory;
  const std::string a = directory / "a.h5", b = directory / "b.h5";
  {
    Capture c = one_gibibyte();
    write_dump(a, c, {});
    change_every(c, state.range(0));
    write_dump(b, c, {});
  }
  sync();  // so that writing back does not run beside the measurement
  std::vector<double> ours, theirs, our_cpu, their_cpu;
  for (auto _ : state) {
    auto start = Clock::now();
    double cpu = processor_seconds(RUSAGE_CHILDREN);
    const int code = run_h5diff(a, b, "1e-5");
    theirs.push_back(seconds_since(start));
    their_cpu.push_back(processor_seconds(RUSAGE_CHILDREN) - cpu);
    if (code != 1) {
      state.SkipWithError(code < 0 ? "h5diff was not found" : "h5diff found no difference");
      return;
    }
    start = Clock::now();
    cpu = processor_seconds(RUSAGE_SELF);
    const Comparison comparison = compare_dumps(a, b, {false, 1e-5, 0});
    ours.push_back(seconds_since(start));
    our_cpu.push_back(processor_seconds(RUSAGE_SELF) - cpu);
    const std::int64_t cells = std::int64_t{1} << 28;
    if (comparison.tensors.at(0).mismatched != (cells + state.range(0) - 1) / state.range(0)) {
      state.SkipWithError("wrong number of mismatches");
      return;
    }
    state.SetIterationTime(ours.back());
  }
  state.counters["h5diff_s"] = median(theirs);
  state.counters["compare_s"] = median(ours);
  state.counters["times_faster"] = median(theirs) / median(ours);
  state.counters["GB/s"] = 2 * 1.073741824 / median(ours);
  // On a busy machine, where the times above say little.
  state.counters["h5diff_cpu_s"] = median(their_cpu);
  state.counters["compare_cpu_s"] = median(our_cpu);
}
BENCHMARK(compare_with_h5diff)
    ->ArgName("every")
    ->Arg(1)
    ->Arg(1000)
    ->UseManualTime()
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);

void write_plainly(const std::string& path, const std::vector<std::byte>& bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) throw std::runtime_error("cannot create " + path);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) throw std::runtime_error("cannot write " + path);
    done += static_cast<std::size_t>(n);
  }
  close(fd);
}

// A dump of 1 GiB against write(2) of as many bytes; neither forces them to disk. Each writes a new
// file, and what the one before left to write back is waited for.
void dump_with_write(benchmark::State& state) {
  const testing::TemporaryDirectory directory;
  const Capture c = one_gibibyte();
  std::vector<double> ours, plain;
  for (auto _ : state) {
    for (const bool dump : {false, true}) {
      const std::string path = directory / "x";
      sync();
      const auto start = Clock::now();
      if (dump)
        write_dump(path, c, {});
      else
        write_plainly(path, c.tensors[0]->bytes);
      (dump ? ours : plain).push_back(seconds_since(start));
      unlink(path.c_str());
    }
    state.SetIterationTime(ours.back());
  }
  state.counters["write_s"] = median(plain);
  state.counters["dump_s"] = median(ours);
  state.counters["of_write"] = median(plain) / median(ours);
  state.counters["GB/s"] = 1.073741824 / median(ours);
}
BENCHMARK(dump_with_write)->UseManualTime()->Iterations(9)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attn_diag

BENCHMARK_MAIN();
