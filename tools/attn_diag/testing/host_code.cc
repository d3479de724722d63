// A kernel library for tests of the command: plain C++ attention on fp32, run without any launch, and a
// kernel for each way in which host code goes wrong. Tests compile copies of it.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <stdexcept>
#include <string>
#include <vector>

#include "attn_diag/kernels/adapter.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace attn_diag {
namespace {

constexpr TileShape kTiles[] = {{4, 4}};

void attend(const RunRequest& r, float factor) {
  const Problem& p = r.problem;
  const auto* q = static_cast<const float*>(r.q);
  const auto* k = static_cast<const float*>(r.k);
  const auto* v = static_cast<const float*>(r.v);
  auto* o = static_cast<float*>(r.o);
  for (int row = 0; row < p.batch * p.heads * p.seqlen_q; ++row) {  // BHSD, no mask
    const int kv_head = row / p.seqlen_q / group_size(p);
    std::vector<float> s(static_cast<std::size_t>(p.seqlen_k), 0.0f);
    for (int key = 0; key < p.seqlen_k; ++key)
      for (int d = 0; d < p.head_dim; ++d)
        s[static_cast<std::size_t>(key)] += q[row * p.head_dim + d] *
                                            k[(kv_head * p.seqlen_k + key) * p.head_dim + d] *
                                            p.softmax_scale;
    const float m = *std::max_element(s.begin(), s.end());
    float l = 0;
    for (float& x : s) l += x = std::exp(x - m);
    for (int d = 0; d < p.head_dim_v; ++d) {
      float sum = 0;
      for (int key = 0; key < p.seqlen_k; ++key)
        sum +=
            s[static_cast<std::size_t>(key)] * v[(kv_head * p.seqlen_k + key) * p.head_dim_v + d];
      o[row * p.head_dim_v + d] = factor * sum / l;
    }
    r.lse[row] = m + std::log(l);
  }
}

Status right(const RunRequest& r) {
  attend(r, 1.0f);
  return Status::kOk;
}

Status wrong(const RunRequest& r) {
  attend(r, 1.5f);
  return Status::kOk;
}

Status reads_workspace(const RunRequest& r) {
  attend(r, 1.0f);
  static_cast<float*>(r.o)[0] += static_cast<const float*>(r.workspace)[0];
  return Status::kOk;
}

Status prints(const RunRequest& r) {
  std::printf("printed by the kernel's host code\n");
  attend(r, 1.0f);
  return Status::kOk;
}

Status throws(const RunRequest&) { throw std::runtime_error("no such configuration"); }
Status throws_int(const RunRequest&) { throw 3; }
Status aborts(const RunRequest&) { std::abort(); }
Status exits(const RunRequest&) { std::exit(0); }

Status segfaults(const RunRequest& r) {
  volatile float* nowhere = nullptr;
  nowhere[r.problem.batch] = 1.0f;
  return Status::kOk;
}

Status divides_by_zero(const RunRequest& r) {
  volatile int zero = 0;
  return static_cast<Status>(r.problem.batch / zero);
}

Status writes_far_behind_o(const RunRequest& r) {
  attend(r, 1.0f);
  static_cast<volatile float*>(r.o)[100'000'000] = 1.0f;
  return Status::kOk;
}

Status never_ends(const RunRequest&) {
  volatile bool ever = true;
  while (ever) {
  }
  return Status::kOk;
}

Status changes_folder(const RunRequest& r) {
  if (chdir("/") != 0) std::abort();
  return right(r);
}

// Both return.
Status forks(const RunRequest& r) {
  if (fork() < 0) std::abort();
  return right(r);
}

// One returns; the other outlives everything.
Status leaves_process(const RunRequest& r) {
  if (fork() == 0) {
    setsid();
    for (;;) sleep(1000);
  }
  return right(r);
}

Status closes_descriptors(const RunRequest& r) {
  for (int descriptor = 0; descriptor < 1000; ++descriptor) close(descriptor);
  return right(r);
}

// Whoever writes to a number that it had before writes into this file.
Status reuses_descriptors(const RunRequest& r) {
  closes_descriptors(r);
  for (int i = 0; i < 100; ++i)
    if (open("mine.txt", O_WRONLY | O_CREAT | O_APPEND, 0600) < 0) std::abort();
  return Status::kOk;
}

Status rounds_upward(const RunRequest& r) {
  attend(r, 1.0f);
  std::fesetround(FE_UPWARD);
  return Status::kOk;
}

Status flushes_subnormals(const RunRequest& r) {
  attend(r, 1.0f);
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // as what -ffast-math links does
#endif
  return Status::kOk;
}

Status traps_floats(const RunRequest& r) {
  attend(r, 1.0f);
  std::feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
  return Status::kOk;
}

struct Grouped : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\1"; }
};

Status changes_locale(const RunRequest& r) {
  attend(r, 1.0f);
  std::locale::global(std::locale(std::locale(), new Grouped));
  return Status::kOk;
}

// As a library does that reports crashes itself.
void reports_crashes(int) { _exit(0); }

Status handles_signals(const RunRequest&) {
  for (int number = 1; number < NSIG; ++number) std::signal(number, reports_crashes);
  std::raise(SIGSEGV);
  return Status::kOk;
}

Status ignores_signals(const RunRequest& r) {
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_IGN);
  return right(r);
}

Status ignores_signals_and_never_ends(const RunRequest& r) {
  ignores_signals(r);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  return never_ends(r);
}

Status leaves_thread(const RunRequest& r) {
  pthread_t thread;
  const auto sleeps = [](void*) -> void* {
    for (;;) sleep(1000);
  };
  return pthread_create(&thread, nullptr, sleeps, nullptr) == 0 ? right(r) : Status::kLaunchFailed;
}

Status exits_at_once(const RunRequest&) { _exit(0); }

Status says_controls(const RunRequest&) {
  throw std::runtime_error("\x1b]0;title\a and \x1b[2J \xff");
}

Status plan(const Problem& p, TileShape tile, std::int32_t, Geometry* geometry, char* error,
            std::size_t error_capacity) {
  if (p.dtype != DType::kFp32) {
    std::snprintf(error, error_capacity, "only fp32.");
    return Status::kUnsupported;
  }
  *geometry = Geometry{};
  geometry->tile = tile;
  geometry->tiles_per_split = ceil_div(p.seqlen_k, tile.block_n);
  return Status::kOk;
}

KernelInfo describe(const char* name, Status (*run)(const RunRequest&)) {
  KernelInfo info;
  info.name = name;
  info.summary = "host code for tests";
  info.tiles = kTiles;
  info.num_tiles = 1;
  info.gates = 1u << static_cast<int>(Gate::kFull);
  for (TensorExposure& exposure : info.exposure) exposure = {false, "a black box"};
  info.plan = plan;
  info.arithmetic = [](const Problem&, const Geometry&) {
    Arithmetic a;
    a.output = DType::kFp32;
    return a;
  };
  info.workspace_bytes = [](const Problem&, const Geometry&) { return sizeof(float); };
  info.run = run;
  return info;
}

}  // namespace
}  // namespace attn_diag

#if defined(MISSING_SYMBOL)
extern "C" void attn_diag_from_nowhere();
void calls_it() { attn_diag_from_nowhere(); }
#endif
#if defined(EXITS_WHEN_LOADED)
[[maybe_unused]] static const int g_exits = (std::exit(0), 0);
#endif
#if defined(ABORTS_WHEN_LOADED)
[[maybe_unused]] static const int g_aborts = (std::abort(), 0);
#endif

const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  using namespace attn_diag;
#if defined(OTHER_VERSION)
  constexpr std::uint32_t kVersion = 999;
#else
  constexpr std::uint32_t kVersion = kKernelAbiVersion;
#endif
  static const KernelInfo kernels[] = {
      describe("right", right),
      describe("wrong", wrong),
      describe("reads-workspace", reads_workspace),
      describe("prints", prints),
      describe("throws", throws),
      describe("throws-int", throws_int),
      describe("aborts", aborts),
      describe("exits", exits),
      describe("segfaults", segfaults),
      describe("divides-by-zero", divides_by_zero),
      describe("writes-far-behind-o", writes_far_behind_o),
      describe("never-ends", never_ends),
      describe("changes-folder", changes_folder),
      describe("forks", forks),
      describe("leaves-process", leaves_process),
      describe("closes-descriptors", closes_descriptors),
      describe("reuses-descriptors", reuses_descriptors),
      describe("rounds-upward", rounds_upward),
      describe("flushes-subnormals", flushes_subnormals),
      describe("traps-floats", traps_floats),
      describe("changes-locale", changes_locale),
      describe("handles-signals", handles_signals),
      describe("ignores-signals", ignores_signals),
      describe("ignores-signals-and-never-ends", ignores_signals_and_never_ends),
      describe("leaves-thread", leaves_thread),
      describe("exits-at-once", exits_at_once),
      describe("says-controls", says_controls),
  };
  static const KernelLibrary library = {
      kVersion, static_cast<std::int32_t>(sizeof kernels / sizeof *kernels), kernels};
  return &library;
}
