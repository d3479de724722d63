// Launches: configuration checks, blocks onto workers, findings back to the caller.
#include "attn_diag_host/launch.h"

#include <atomic>
#include <cfenv>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "attn_diag/harness/host/symbolizer.h"
#include "harness/host/block_runner.h"
#include "harness/host/device_model.h"
#include "harness/host/flight_names.h"
#include "harness/host/function_limits.h"
#include "harness/host/grid_barrier.h"
#include "harness/host/last_error.h"
#include "harness/host/launch_limits.h"
#include "harness/host/launch_scope.h"
#include "harness/host/random.h"
#include "harness/host/text.h"
#include "harness/host/values/recorder.h"
#include "harness/host/worker_pool.h"

namespace attn_diag::host {
namespace {

constexpr std::uint64_t kDefaultStepLimit = 1ull << 29;
constexpr double kDefaultSilentSeconds = 10;

std::mutex g_launch_mutex;  // one launch at a time, as in one stream
std::map<const void*, std::size_t> g_dynamic_shared_limit;
std::set<const void*> g_launched;

std::size_t dynamic_limit(const void* kernel) {
  const auto limit = g_dynamic_shared_limit.find(kernel);
  return limit == g_dynamic_shared_limit.end() ? kSharedOfBlock : limit->second;
}

// "tiled::attend<128, float>" as "attend".
std::string_view template_name(std::string_view name) {
  name = without_last(name, '<', '>');
  const std::size_t scope = name.rfind("::");
  return scope == name.npos ? name : name.substr(scope + 2);
}

// Of a launch whose template arguments are deduced, the most that was asked for any instantiation of that
// template: which one it is, the launch's text does not tell.
std::size_t dynamic_limit(const KernelCall& call, std::size_t wanted) {
  std::size_t limit = dynamic_limit(call.kernel);
  if (call.name == nullptr || wanted <= limit) return limit;
  const std::uintptr_t base = find_library(call.kernel).base;
  for (const auto& [kernel, bytes] : g_dynamic_shared_limit)
    if (bytes > limit && find_library(kernel).base == base &&
        template_name(kernel_name(kernel)) == template_name(call.name))
      limit = bytes;
  return limit;
}

// The i-th block to start.
class BlockOrder {
 public:
  explicit BlockOrder(const LaunchPlan& plan)
      : x_kind(plan.schedule.kind),
        x_from_last(x_kind == ScheduleKind::kReverse || plan.schedule.warps == WarpOrder::kReverse),
        x_blocks(plan.blocks) {
    if (x_kind != ScheduleKind::kSeeded) return;
    // An affine permutation.
    x_stride = mix(plan.schedule.seed ^ 0x626C6F636B73u) % x_blocks;
    while (std::gcd(x_stride, x_blocks) != 1) x_stride = (x_stride + 1) % x_blocks;
    x_offset = mix(x_stride ^ plan.schedule.seed) % x_blocks;
  }
  std::uint64_t operator[](std::uint64_t i) const {
    if (x_from_last) return x_blocks - 1 - i;
    if (x_kind != ScheduleKind::kSeeded) return i;
    return static_cast<std::uint64_t>((Wide{i} * x_stride + x_offset) % x_blocks);
  }

 private:
  __extension__ typedef unsigned __int128 Wide;

  ScheduleKind x_kind;
  bool x_from_last;
  std::uint64_t x_blocks, x_stride = 1, x_offset = 0;
};

// What the workers of a launch write. The finding and the note kept are those of the first block in
// order that has one: as blocks are started in order and none is stopped from outside, they do not
// depend on which worker was quicker.
struct Progress {
  std::mutex mutex;
  std::uint64_t finding_at = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t note_at = std::numeric_limits<std::uint64_t>::max();
  BlockOutcome first_finding, first_note;
  std::map<std::string, std::uint64_t> latent;  // notes, and the first block that has each
  bool silent = false;  // the finding is that of a block that waited; any other is a better one
  std::uint64_t blocks = 0, steps = 0;
  std::exception_ptr error;
};

// A worker's part in the turns of a launch.
class Worker {
 public:
  explicit Worker(BlockTurns& turns) : x_turns(turns) { x_turns.enter(); }
  ~Worker() { x_turns.leave(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  BlockTurns& x_turns;
};

// Device code rounds to nearest, keeps subnormals and does not trap, whatever host code has set for itself in the
// launching thread or those that it made.
class DeviceFloats {
 public:
  DeviceFloats() {
    std::fegetenv(&x_before);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DeviceFloats() { std::fesetenv(&x_before); }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

 private:
  std::fenv_t x_before;
};

void keep(const BlockOutcome& outcome, std::uint64_t i, Progress& progress) {
  const std::lock_guard lock(progress.mutex);
  if (!outcome.note.empty() && i < progress.note_at) {
    progress.note_at = i;
    progress.first_note.note = outcome.note;
  }
  for (const std::string& note : outcome.latent) {
    const auto [known, is_new] = progress.latent.try_emplace(note, i);
    if (!is_new) known->second = std::min(known->second, i);
  }
  if (!outcome.finding) return;
  const bool first = !progress.first_finding.finding;
  if (!first && progress.silent == outcome.silent && i > progress.finding_at) return;
  if (!first && outcome.silent && !progress.silent) return;
  progress.finding_at = i;
  progress.silent = outcome.silent;
  progress.first_finding.finding = outcome.finding;
}

void run_blocks(const LaunchPlan& plan, const BlockOrder& order, Progress& progress) {
  static thread_local const auto runner = std::make_unique<BlockRunner>();
  const DeviceFloats floats;
  std::uint64_t blocks = 0, steps = 0;
  const Worker worker(*plan.turns);
  runner->begin_launch(plan);
  while (const auto i = plan.turns->take()) {
    const BlockOutcome outcome = runner->run_block(order[*i]);
    ++blocks;
    steps += outcome.steps;
    if (outcome.finding || !outcome.note.empty() || !outcome.latent.empty())
      keep(outcome, *i, progress);
    if (outcome.finding) plan.turns->stop();
    plan.turns->block_ended();
  }
  const std::lock_guard lock(progress.mutex);
  progress.blocks += blocks;
  progress.steps += steps;
}

// Each worker beyond those asked for holds a block that polls. That many threads are about what a device holds.
constexpr unsigned kMostThreads = 128 * 1024, kMostWorkers = 1024;

cudaError_t error_of(LaunchFindingKind kind) {
  switch (kind) {
    case LaunchFindingKind::kLaunchConfig:
      return cudaErrorInvalidConfiguration;
    case LaunchFindingKind::kStepLimit:
      return cudaErrorLaunchTimeout;
    case LaunchFindingKind::kNotInstrumented:
      return cudaErrorNotSupported;
    case LaunchFindingKind::kTrap:
      return cudaErrorAssert;
    default:
      return cudaErrorLaunchFailure;
  }
}

cudaError_t fail(LaunchReport& report, LaunchFinding finding) {
  const cudaError_t error = error_of(finding.kind);
  set_last_error(error, finding.message);
  note_failure(finding);
  report.findings.push_back(std::move(finding));
  return error;
}

}  // namespace

cudaError_t set_function_attribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // a hint
  if (value < 0 || static_cast<std::size_t>(value) > kOptInSharedOfBlock)
    return set_last_error(cudaErrorInvalidValue, concat("cudaFuncSetAttribute: ", value,
                                                        " bytes of dynamic shared memory; at most ",
                                                        kOptInSharedOfBlock, " are possible"));
  const std::lock_guard lock(g_launch_mutex);
  g_dynamic_shared_limit[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

std::size_t dynamic_shared_limit(const void* kernel) {
  const std::lock_guard lock(g_launch_mutex);
  return dynamic_limit(kernel);
}

std::vector<std::string> launched_kernels(const std::string& library) {
  const std::lock_guard lock(g_launch_mutex);
  std::set<std::string> names;
  for (const void* const kernel : g_launched) {
    const KernelLibrary of = find_library(kernel);
    std::error_code error;
    if (of.path.empty() || !std::filesystem::equivalent(of.path, library, error)) continue;
    std::string name = symbol_name(of.path, reinterpret_cast<std::uintptr_t>(kernel) - of.base);
    if (!name.empty()) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

cudaError_t launch(const cudaLaunchConfig_t& config, const KernelCall& call) {
  if (BlockRunner::current() != nullptr)
    throw std::logic_error("a kernel launches a kernel: not supported by the host executor");
  const std::lock_guard lock(g_launch_mutex);
  LaunchOptions options;
  LaunchReport unscoped;
  LaunchReport* report = &unscoped;
  ScopeState* const scope = current_scope();
  if (scope != nullptr) {
    options = scope->options;
    report = &scope->report;
  }
  ++report->launches;

  const std::string problem =
      impossible(config, call, dynamic_limit(call, config.dynamicSmemBytes));
  if (!problem.empty())
    return fail(*report,
                {LaunchFindingKind::kLaunchConfig,
                 concat("kernel ", kernel_name(call), " cannot be launched: ", problem, '.'),
                 call.file != nullptr ? call.file : "", call.line});
  if (options.schedule.kind == ScheduleKind::kLockstep && !call.instrumented)
    return fail(*report,
                {LaunchFindingKind::kNotInstrumented,
                 concat("kernel ", kernel_name(call),
                        " was not built for the lockstep schedule: run the library that attn-diag "
                        "build or attn_diag_add_kernel makes for it, x.lockstep.so, or choose "
                        "another schedule."),
                 "", 0});

  if (options.check && !call.instrumented)
    return fail(*report,
                {LaunchFindingKind::kNotInstrumented,
                 concat("kernel ", kernel_name(call.kernel),
                        " was not built to be checked: check the library that attn-diag build or "
                        "attn_diag_add_kernel makes for it, x.lockstep.so."),
                 "", 0});

  g_launched.insert(call.kernel);
  LaunchPlan plan;
  plan.config = config;
  plan.call = call;
  plan.library = find_library(call.kernel);
  plan.statics = static_layout(plan.library);
  plan.schedule = options.schedule;
  plan.mma_order = mma_order(options.mma_order);
  plan.async_copies = options.async_copies;
  plan.step_limit = options.step_limit != 0 ? options.step_limit : kDefaultStepLimit;
  plan.silent_seconds = options.silent_seconds > 0 ? options.silent_seconds : kDefaultSilentSeconds;
  plan.shared_fill = options.shared_fill;
  plan.blocks = std::uint64_t{config.gridDim.x} * config.gridDim.y * config.gridDim.z;

  note_launch(plan);
  prepare_grid_barrier(config);
  if (options.check) {
    options.workers = 1;
    plan.async_copies = AsyncCopies::kLate;
    plan.checker = scope->checker.get();
    plan.checker->begin_launch(plan);
  }
  if (options.values != nullptr) {
    options.workers = 1;
    plan.values = options.values.get();
    plan.values->begin_launch();
  }
  std::uint64_t workers = options.workers > 0 ? static_cast<std::uint64_t>(options.workers)
                                              : std::max(1u, std::thread::hardware_concurrency());
  workers = std::min(workers, plan.blocks);

  TurnLimits limits;
  limits.workers = static_cast<unsigned>(workers);
  const unsigned threads = config.blockDim.x * config.blockDim.y * config.blockDim.z;
  limits.most_workers = std::max(limits.workers, std::min(kMostWorkers, kMostThreads / threads));
  limits.silent_seconds = plan.silent_seconds;
  BlockTurns turns(plan.blocks, limits, [] { return WorkerPool::instance().add(); });
  plan.turns = &turns;

  const BlockOrder order(plan);
  Progress progress;
  const std::function<void()> work = [&] {
    try {
      run_blocks(plan, order, progress);
    } catch (...) {
      turns.stop();
      const std::lock_guard guard(progress.mutex);
      progress.error = std::current_exception();
    }
  };
  WorkerPool::instance().run(static_cast<int>(workers) - 1, work);
  if (progress.error) std::rethrow_exception(progress.error);

  report->blocks += progress.blocks;
  report->steps += progress.steps;
  if (!progress.first_note.note.empty())
    report->notes.push_back(std::move(progress.first_note.note));
  // Blocks behind the first finding may not have run.
  for (const auto& [note, first] : progress.latent)
    if (first <= progress.finding_at) report->notes.push_back(note);
  if (!progress.first_finding.finding) return cudaSuccess;
  if (plan.checker != nullptr) plan.checker->add_launch_finding(*progress.first_finding.finding);
  return fail(*report, *progress.first_finding.finding);
}

}  // namespace attn_diag::host
