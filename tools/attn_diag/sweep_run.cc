// The cases of a sweep, each run and judged in a process of its own or with a few others.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/host/faults.h"
#include "harness/run/jobs.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/run_case.h"
#include "tools/attn_diag/sweep.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

using report::Json;
using report::MatrixRow;
using report::RowVerdict;
using Clock = std::chrono::steady_clock;

constexpr double kSecondsPerCase = 600;  // after which one has failed, unless --timeout says so
constexpr std::int64_t kMostAttempts = 1000;

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "all", or GPUs as CUDA_VISIBLE_DEVICES names them: one process each. Counted in a process of its own, since one that
// has used CUDA cannot be forked.
std::vector<std::string> devices_of(const Flags& flags) {
  if (flags.sweep.devices.empty()) return {};
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (flags.sweep.devices != "all") return split_list("--devices", flags.sweep.devices);
  if (visible != nullptr && visible[0] != '\0') return split_list("CUDA_VISIBLE_DEVICES", visible);
  Jobs jobs(1);
  jobs.start([] { return bytes_of(std::to_string(gpu_state().gpus.size())); }, kSecondsToLoad);
  const Jobs::Result result = jobs.wait();
  const int count = result.end == Jobs::End::kDone ? std::atoi(text_of(result.answer).c_str()) : 0;
  if (count == 0) throw Error("--devices all: there is no GPU here. attn-diag doctor says why.");
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(std::to_string(i));
  return devices;
}

// What a case is, and its place in the sweep.
struct Placed {
  std::optional<RequestedCase> one;  // nullopt: no problem
  report::SweepPoint point;
  MatrixRow row;  // of what is no problem
};

class Runner {
 public:
  explicit Runner(const SweepRun& run)
      : x_run(run), x_tolerance(parse_tolerance(run.session.flags)), x_history(no_history(run)) {
    for (const auto& kernel : run.kernels) x_cuda = x_cuda || kernel.backend == "cuda";
    if (!x_cuda && !run.session.flags.sweep.devices.empty())
      throw Error(
          "--devices is about GPUs, and all cases run on backend host: --jobs N runs N at a time.");
    if (x_cuda && !run.session.flags.sweep.jobs.empty())
      throw Error("--jobs is about backend host: --devices all runs a process on each GPU.");
    x_devices = devices_of(run.session.flags);
    if (x_devices.empty()) x_devices.assign(static_cast<std::size_t>(jobs()), "");
    if (!run.session.flags.child.timeout.empty())
      x_limit = parse_real("--timeout", run.session.flags.child.timeout, 1e-3);
    x_free.assign(x_devices.rbegin(), x_devices.rend());
  }

  void run() {
    // Host kernels are loaded here, so that each fork has them.
    if (!x_cuda && !x_run.cases.empty())
      for (const auto& kernel : x_run.kernels) load(kernel);
    Progress progress(!x_run.session.flags.quiet);
    Jobs jobs(static_cast<int>(x_devices.size()));
    x_begin = Clock::now();
    for (const std::int64_t number : x_run.cases) x_left_cost += cost(number);
    for (;;) {
      while (!jobs.full() && has_more()) start(jobs, progress);
      if (jobs.empty()) return;
      take(jobs.wait());
    }
  }

 private:
  struct Batch {
    std::vector<std::int64_t> cases;
    std::string device;
  };

  static Flags no_history(const SweepRun& run) {
    Flags flags = run.session.flags;
    flags.no_history = true;
    return flags;
  }
  int jobs() const {
    const std::string& jobs = x_run.session.flags.sweep.jobs;
    return jobs.empty() ? 1 : static_cast<int>(parse_int("--jobs", jobs, 1, 1024));
  }

  void load(const sweep::Plan::Kernel& kernel) {
    RequestedCase one;
    one.kernel = kernel.name;
    one.backend = kernel.backend;
    x_kernels.get(one);
  }

  bool has_more() const { return !x_again.empty() || x_next < x_run.cases.size(); }

  // Enough cases to make a process worthwhile, by the time that cases have taken so far.
  std::vector<std::int64_t> next_batch() {
    if (!x_again.empty()) {
      const std::int64_t one = x_again.front();
      x_again.pop_front();
      return {one};
    }
    constexpr std::size_t kMost = 64;
    const double worth = x_cuda ? 5 : 0.25;
    const double rate = x_seconds > 0 ? x_seconds / x_done_cost : 1e9;
    std::vector<std::int64_t> batch;
    double expected = 0;
    do {
      batch.push_back(x_run.cases[x_next]);
      expected += rate * cost(x_run.cases[x_next]);
      x_left_cost -= cost(x_run.cases[x_next]);
      ++x_next;
    } while (x_next < x_run.cases.size() && batch.size() < kMost && expected < worth);
    return batch;
  }
  double cost(std::int64_t number) const {
    return static_cast<double>(x_run.costs[static_cast<std::size_t>(number)]);
  }

  void start(Jobs& jobs, Progress& progress) {
    Batch batch{next_batch(), x_free.back()};
    x_free.pop_back();
    progress.step(x_done + 1, static_cast<int>(x_run.cases.size()),
                  progress_text(batch.cases.front()));
    const int id =
        jobs.start([&] { return work(batch); }, x_limit * static_cast<double>(batch.cases.size()));
    x_started[id] = std::move(batch);
  }

  std::string progress_text(std::int64_t number) const {
    std::string s;
    if (x_wrong > 0) s += fmt::format("{} not right so far, ", x_wrong);
    if (x_done > 0) {
      const double elapsed = std::chrono::duration<double>(Clock::now() - x_begin).count();
      s += report::duration(elapsed * x_left_cost / x_done_cost) + " left: ";
    }
    const auto one = x_run.grid.flags_of(number);
    return s + (one ? x_run.grid.text_of(*one) : "");
  }

  // In the process of the batch.
  Bytes work(const Batch& batch) {
    if (!batch.device.empty()) ::setenv("CUDA_VISIBLE_DEVICES", batch.device.c_str(), 1);
    std::string lines;
    for (const std::int64_t number : batch.cases)
      lines += line_of(number, batch.device).dump() + '\n';
    return bytes_of(lines);
  }

  Json line_of(std::int64_t number, const std::string& device) {
    const Placed placed = place(number);
    Json line =
        placed.one ? report::sweep_line(
                         run_one(*placed.one, x_kernels, x_tolerance, x_history, x_run.session).row,
                         placed.point, placed.one->run.schedule)
                   : report::sweep_line(placed.row, placed.point, "");
    if (!device.empty()) line["device"] = device;
    return line;
  }

  // Points drawn at random that are no valid problem are passed over.
  Placed place(std::int64_t number) const {
    Placed placed;
    placed.point.number = number;
    placed.point.cost = cost(number);
    for (std::int64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
      const auto flags = x_run.grid.flags_of(number, attempt);
      if (!flags) break;
      if (attempt == 0) {
        placed.point.values = x_run.grid.values_of(*flags);
        placed.row.kernel = flags->kernel;
        placed.point.key = sweep::hash_of(x_run.grid.text_of(*flags));
      }
      try {
        Flags one = *flags;
        one.backend = kernel(one.kernel).backend;
        placed.one = std::move(expand_cases(one, false).front());
        placed.point.values = x_run.grid.values_of(*flags);
        std::string words;
        for (const std::string& word : reproduce("run", *placed.one, one)) words += word + '\n';
        placed.point.key = sweep::hash_of(words);
        return placed;
      } catch (const Error& e) {
        if (attempt == 0) placed.row.why = e.what();
      }
    }
    placed.row.verdict = RowVerdict::kUnsupported;
    return placed;
  }

  const sweep::Plan::Kernel& kernel(const std::string& name) const {
    return *std::find_if(x_run.kernels.begin(), x_run.kernels.end(),
                         [&](const sweep::Plan::Kernel& k) { return k.name == name; });
  }

  void take(const Jobs::Result& result) {
    const Batch batch = std::move(x_started.at(result.id));
    x_started.erase(result.id);
    x_free.push_back(batch.device);
    std::vector<Json> lines;
    if (result.end == Jobs::End::kDone) {
      const std::string text = text_of(result.answer);
      for (std::size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1)
        lines.push_back(Json::parse(text.substr(at, end - at)));
    } else if (batch.cases.size() > 1) {  // which of them was it?
      x_again.insert(x_again.end(), batch.cases.begin(), batch.cases.end());
      return;
    } else {
      lines.push_back(failed_line(batch, result));
    }
    for (const Json& line : lines) {
      ++x_done;
      x_wrong += line["verdict"] != "agrees" && line["verdict"] != "unsupported";
    }
    for (const std::int64_t number : batch.cases) x_done_cost += cost(number);
    x_seconds += result.seconds;
    x_run.take(lines);
  }

  Json failed_line(const Batch& batch, const Jobs::Result& result) const {
    Placed placed = place(batch.cases.front());
    MatrixRow& row = placed.row;
    row.verdict = RowVerdict::kFailed;
    row.seconds = result.seconds;
    row.why = result.end == Jobs::End::kTookTooLong
                  ? fmt::format("it did not end within {:.3g} s (--timeout)", x_limit)
              : result.end == Jobs::End::kFailed ? text_of(result.answer).empty()
                                                       ? "there was not enough memory"
                                                       : text_of(result.answer)
              : result.signal == 0 ? "its process ended itself"
                                   : fmt::format("its process was ended by signal {} ({})",
                                                 result.signal, ::strsignal(result.signal));
    std::string schedule;
    if (placed.one) {
      const Session& session = x_run.session;
      const RequestedCase& one = *placed.one;
      row.kernel = one.kernel;
      row.backend = one.backend;
      row.problem = one.problem;
      row.inputs = one.inputs;
      row.seed = one.seed;
      row.input_scale = one.input_scale;
      row.reproduce = session.shell(reproduce("run", one, session.flags));
      row.hunt = session.shell(reproduce("trace", one, session.flags));
      schedule = one.run.schedule;
    }
    Json line = report::sweep_line(row, placed.point, schedule);
    line.erase("geometry");
    if (!batch.device.empty()) line["device"] = batch.device;
    return line;
  }

  const SweepRun& x_run;
  Tolerance x_tolerance;
  History x_history;
  Kernels x_kernels;
  bool x_cuda = false;
  double x_limit = kSecondsPerCase;
  std::vector<std::string> x_devices, x_free;
  std::map<int, Batch> x_started;
  std::deque<std::int64_t> x_again;
  std::size_t x_next = 0;
  int x_done = 0, x_wrong = 0;
  double x_left_cost = 0, x_done_cost = 0, x_seconds = 0;
  Clock::time_point x_begin;
};

// Asked in a process of its own: whether there is a GPU is a question to CUDA, after which no process can be forked.
sweep::Plan::Kernel ask_about(const Flags& one) {
  Jobs jobs(1);
  jobs.start(
      [&] {
        Flags simple;
        simple.command = one.command;
        simple.kernel = one.kernel;
        simple.backend = one.backend;
        simple.schedule = one.schedule;
        simple.mma_order = one.mma_order;
        simple.async_copies = one.async_copies;
        const RequestedCase c = std::move(expand_cases(simple, false).front());
        const Kernel kernel = load_kernel(c);
        return WireWriter()
            .text(c.backend)
            .text(fmt::format("{}", fmt::join(c.notes, "\n")))
            .text(kernel.provenance().build_id)
            .take();
      },
      2 * kSecondsToLoad);
  const Jobs::Result result = jobs.wait();
  if (result.end == Jobs::End::kFailed) throw Error(text_of(result.answer));
  if (result.end != Jobs::End::kDone)
    throw Error(
        fmt::format("{} cannot be loaded: the process that did so came to no end of its own. "
                    "attn-diag run says more.",
                    one.kernel));
  WireReader from(result.answer);
  sweep::Plan::Kernel kernel;
  kernel.name = one.kernel;
  kernel.backend = from.text();
  kernel.note = from.text();
  kernel.build_id = from.text();
  return kernel;
}

}  // namespace

std::vector<sweep::Plan::Kernel> kernels_of(const Session& session, const SweepGrid& grid) {
  Flags flags = *grid.flags_of(0);
  std::vector<sweep::Plan::Kernel> kernels;
  for (const std::string& name : expand_entries("--kernel", session.flags.kernel, false)) {
    flags.kernel = name;
    kernels.push_back(ask_about(flags));
  }
  return kernels;
}

void run_cases(const SweepRun& run) {
  host::make_faults_findings();  // one case's, not the end of all
  Runner(run).run();
}

}  // namespace attn_diag::cli
