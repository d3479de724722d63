// Cases, tried in processes of their own, each once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/options.h"
#include "harness/lines/watch.h"
#include "harness/run/jobs.h"
#include "harness/shrink/failure.h"

namespace attn_diag::shrink {

struct TriedCase {
  Problem problem;
  TileShape tile;
  int num_splits = 0;  // 0: the kernel does not take any
  std::shared_ptr<const InputData> inputs;
};

// What a trial said of a case.
enum class Said : std::uint8_t {
  kFails,    // in the same way
  kPasses,   // everything agrees
  kOther,    // it fails in another way
  kRefused,  // the kernel does not take it, or nothing of it can be judged
};
struct Told {
  Said said = Said::kPasses;
  Failure failure;  // of kFails and kOther
};

// Looks at a case in this process: kPasses, kRefused, or kFails in whatever way.
using Judge = std::function<Told(const TriedCase&)>;

// How much of a trace a failure needs to show.
struct Look {
  bool isolate = false;    // stages are fed the reference's inputs
  bool schedules = false;  // other orders of threads, other bytes in memory
  bool lines = false;
};

// The run options of a case: of one that is tried, on one thread.
RunOptions options_for(const TriedCase& one, const RunOptions& given);
TraceOptions trace_options(const Look& look);

class Trials {
 public:
  using Clock = std::chrono::steady_clock;
  struct Settings {
    RunOptions run;
    Tolerance tolerance;
    int processes = 1;
    Judge judge;  // in place of processes and of trace; one case at a time
    Clock::time_point deadline;
    std::function<void(const std::string& what)> on_trial;
  };
  Trials(const Kernel& kernel, Settings settings);

  // The case that is to become smaller, whatever it takes to see its failure. kFails or kPasses.
  // Throws Error where it can be neither.
  Told aim(const TriedCase& original, bool lines);
  const Look& how() const { return x_look; }

  // The first of `count` cases, in their order, that fails as the original does; nullopt: none, or time is up.
  // make(i) is the case, or nullopt where there is none. Several are tried at the same time; what comes out does
  // not depend on how many.
  std::optional<std::size_t> first_failing(
      std::size_t count, const std::function<std::optional<TriedCase>(std::size_t)>& make,
      const std::function<std::string(std::size_t)>& words);
  // What is known of a case; nullopt: it was not tried.
  std::optional<Told> known(const TriedCase& one) const;

  // No more trials after the deadline, until a later call sets another.
  void stop_at(Clock::time_point deadline) { x_settings.deadline = deadline; }
  bool out_of_time() const { return x_out_of_time; }
  int tried() const { return x_tried; }
  int remembered() const { return x_remembered; }

 private:
  Bytes look_at(const TriedCase& one, const Look& look) const;
  Told told_by(const Jobs::Result& result) const;
  Told judged(const TriedCase& one);
  Told against_aim(Told told) const;
  Told aim_by_judge(const TriedCase& original);
  std::optional<std::size_t> first_judged(
      std::size_t count, const std::function<std::optional<TriedCase>(std::size_t)>& make,
      const std::function<std::string(std::size_t)>& words);

  const Kernel& x_kernel;
  Settings x_settings;
  std::optional<lines::WatchBuild> x_watch;
  Look x_look;
  Failure x_aim;
  double x_limit = 0;  // seconds of the processor for one trial; 0: not yet known
  std::map<std::string, Told> x_known;
  int x_tried = 0, x_remembered = 0;
  bool x_out_of_time = false;
};

}  // namespace attn_diag::shrink
