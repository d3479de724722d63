#include "harness/shrink/trials.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/trace.h"

namespace attn_diag::shrink {
namespace {

// What trial processes answer: what was seen, before it is held against what was aimed at.
enum class Seen : std::uint8_t { kAgrees, kFailure, kRefused };

Bytes answer(Seen seen, const Failure& failure) {
  Bytes bytes = WireWriter().number(static_cast<std::uint64_t>(seen)).take();
  const Bytes rest = to_bytes(failure);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

std::string hash_of(const std::vector<std::byte>& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:x}.{:x}", hash.high64, hash.low64);
}

std::string key_of(const TriedCase& one) {
  const Problem& p = one.problem;
  return fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}x{} {} {} {} {}", p.batch, p.heads, p.kv_heads,
      p.seqlen_q, p.seqlen_k, p.head_dim, p.head_dim_v, static_cast<int>(p.dtype),
      static_cast<int>(p.layout), static_cast<int>(p.mask.kind), static_cast<int>(p.mask.alignment),
      p.mask.window_left, p.mask.window_right, p.softmax_scale, one.tile.block_m, one.tile.block_n,
      one.num_splits, hash_of(one.inputs->q), hash_of(one.inputs->k), hash_of(one.inputs->v));
}

std::string line_of(const LineDivergence& lines) {
  if (lines.suspects.empty() || lines.answer == LineAnswer::kNone ||
      lines.answer == LineAnswer::kNotLooked)
    return "";
  const LinePlace& place = lines.suspects.front().place;
  return fmt::format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
}

}  // namespace

RunOptions options_for(const TriedCase& one, const RunOptions& given) {
  RunOptions run = given;
  run.tile = one.tile;
  run.num_splits = one.num_splits;
  run.region = whole(one.problem);
  run.threads = 1;
  return run;
}

TraceOptions trace_options(const Look& look) {
  TraceOptions options;
  options.closure = false;
  options.isolate = look.isolate;
  options.schedules = look.schedules;
  options.lines = LinesWanted::kNever;
  return options;
}

Trials::Trials(const Kernel& kernel, Settings settings)
    : x_kernel(kernel), x_settings(std::move(settings)) {}

Bytes Trials::look_at(const TriedCase& one, const Look& look) const {
  const Experiment experiment{x_kernel, one.problem, *one.inputs, options_for(one, x_settings.run),
                              x_settings.tolerance};
  Failure failure;
  LinesBy by = LinesBy::kNumbers;
  try {
    const TraceResult result = trace(experiment, trace_options(look));
    failure = failure_of(result);
    if (failure.moves && result.calmly.empty()) by = LinesBy::kChecker;
    if (result.answer() == Answer::kNotJudged) {
      failure.what = "nothing of it can be judged";
      return answer(Seen::kRefused, failure);
    }
  } catch (const KernelFault& e) {
    failure = failure_of(e);
    by = LinesBy::kChecker;
  } catch (const Error& e) {
    failure = failure_of(e);
    // A kernel may refuse when it is called, or find something else wrong with what it is given.
    if (failure.what.find("does not support") != std::string::npos)
      return answer(Seen::kRefused, failure);
  }
  if (failure.kind == FailureKind::kNone) return answer(Seen::kAgrees, failure);
  // Lines cost more than all else: they are looked for only where the rest of the failure fits.
  const bool may_do = x_aim.kind == FailureKind::kNone || [&] {
    Failure without = x_aim;
    without.line.clear();
    return without.same_as(failure);
  }();
  if (look.lines && may_do && x_watch)
    failure.line = line_of(lines::trace_lines(*x_watch, experiment, by));
  return answer(Seen::kFailure, failure);
}

Told Trials::told_by(const Jobs::Result& result) const {
  Told told;
  if (result.end == Jobs::End::kDone) {
    WireReader from(result.answer);
    const auto seen = static_cast<Seen>(from.number());
    told.failure = failure_from(from);
    if (seen == Seen::kAgrees) return told;
    if (seen == Seen::kRefused) {
      told.said = Said::kRefused;
      return told;
    }
  } else if (result.end == Jobs::End::kTookTooLong) {
    told.failure.kind = FailureKind::kNoEnd;
    told.failure.what = "it does not end in time";
  } else {
    told.failure.kind = FailureKind::kCrash;
    told.failure.what = result.signal == 0 ? "its process ended itself"
                                           : fmt::format("its process was ended by signal {} ({})",
                                                         result.signal, ::strsignal(result.signal));
    told.failure.error_kind = told.failure.what;
  }
  told.said = Said::kFails;
  return against_aim(std::move(told));
}

Told Trials::against_aim(Told told) const {
  if (told.said == Said::kFails && x_aim.kind != FailureKind::kNone && !x_aim.same_as(told.failure))
    told.said = Said::kOther;
  return told;
}

Told Trials::judged(const TriedCase& one) {
  ++x_tried;
  return against_aim(x_settings.judge(one));
}

Told Trials::aim_by_judge(const TriedCase& original) {
  Told told = judged(original);
  if (told.said == Said::kRefused)
    throw Error(
        fmt::format("The case that was named cannot be made smaller: {}", told.failure.what));
  x_aim = told.failure;
  x_known[key_of(original)] = told;
  return told;
}

std::optional<std::size_t> Trials::first_judged(
    std::size_t count, const std::function<std::optional<TriedCase>(std::size_t)>& make,
    const std::function<std::string(std::size_t)>& words) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<TriedCase> one = make(i);
    if (!one) continue;
    const std::string key = key_of(*one);
    auto found = x_known.find(key);
    if (found != x_known.end()) {
      ++x_remembered;
    } else {
      if (Clock::now() >= x_settings.deadline) {
        x_out_of_time = true;
        return std::nullopt;
      }
      if (x_settings.on_trial) x_settings.on_trial(words(i));
      found = x_known.emplace(key, judged(*one)).first;
    }
    if (found->second.said == Said::kFails) return i;
  }
  return std::nullopt;
}

Told Trials::aim(const TriedCase& original, bool lines) {
  if (x_settings.judge) return aim_by_judge(original);
  if (lines) {
    x_watch = lines::make_watch_build(x_kernel);
    if (!x_watch->kernel)
      throw Error(
          fmt::format("--lines: no line can be told of {}: {}", x_kernel.spec(), x_watch->reason));
  }
  double seconds = 0;
  const auto look = [&](const Look& how) {
    Jobs jobs(1);
    const double left = std::chrono::duration<double>(x_settings.deadline - Clock::now()).count();
    jobs.start([&] { return look_at(original, how); }, std::max(1.0, left / 4));
    const Jobs::Result result = jobs.wait();
    if (result.end == Jobs::End::kTookTooLong)
      throw Error(
          fmt::format("The case that was named does not end within {:.0f} s, a quarter of the "
                      "time: --time-limit "
                      "allows more. Whether it ends at all, attn-diag trace --timeout tells.",
                      result.seconds));
    seconds = result.processor_seconds;
    ++x_tried;
    return told_by(result);
  };
  Told told;
  for (const bool isolate : {false, true}) {
    x_look = {isolate, true, lines};
    told = look(x_look);
    if (told.said == Said::kRefused)
      throw Error(
          fmt::format("The case that was named cannot be made smaller: {}", told.failure.what));
    if (told.said == Said::kFails) break;
  }
  if (told.said != Said::kFails) return told;
  if (lines && told.failure.line.empty())
    throw Error(
        "--lines: no line is named for the case as it is, so none can be held. Leave --lines out.");
  // Where it shows without other orders of threads, trials take a quarter of the time.
  if (!told.failure.moves && !x_look.isolate) {
    const double full = seconds;
    const Told cheap = look({false, false, lines});
    if (cheap.said == Said::kFails && told.failure.same_as(cheap.failure)) {
      x_look.schedules = false;
    } else {
      seconds = full;
    }
  }
  x_aim = told.failure;
  x_limit = std::max(2.0, 10 * seconds);
  x_known[key_of(original)] = told;
  return told;
}

std::optional<Told> Trials::known(const TriedCase& one) const {
  const auto found = x_known.find(key_of(one));
  return found == x_known.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::size_t> Trials::first_failing(
    std::size_t count, const std::function<std::optional<TriedCase>(std::size_t)>& make,
    const std::function<std::string(std::size_t)>& words) {
  if (x_settings.judge) return first_judged(count, make, words);
  struct Started {
    std::size_t candidate = 0;
    std::string key;
  };
  std::map<int, Started> started;
  std::map<std::size_t, Said> said;
  std::size_t next = 0, settled = 0, bound = count;  // all before `settled` do not fail
  Jobs jobs(x_settings.processes);
  const auto note = [&](std::size_t candidate, Said what) {
    said[candidate] = what;
    if (what == Said::kFails) bound = std::min(bound, candidate);
    while (settled < bound && said.contains(settled)) ++settled;
  };
  for (;;) {
    while (next < bound && !jobs.full()) {
      const std::size_t candidate = next++;
      const std::optional<TriedCase> one = make(candidate);
      if (!one) {
        note(candidate, Said::kRefused);
        continue;
      }
      std::string key = key_of(*one);
      if (const auto found = x_known.find(key); found != x_known.end()) {
        ++x_remembered;
        note(candidate, found->second.said);
        continue;
      }
      const double left = std::chrono::duration<double>(x_settings.deadline - Clock::now()).count();
      if (left <= 0) {
        x_out_of_time = true;
        return std::nullopt;
      }
      if (x_settings.on_trial) x_settings.on_trial(words(candidate));
      const int id =
          jobs.start([&] { return look_at(*one, x_look); }, std::max(left, 0.01), x_limit);
      started[id] = {candidate, std::move(key)};
    }
    if (settled >= bound) {  // those that still run are behind it
      jobs.stop_all();
      return bound < count ? std::optional(bound) : std::nullopt;
    }
    const Jobs::Result result = jobs.wait();
    const Started what = std::move(started.at(result.id));
    ++x_tried;
    if (result.end == Jobs::End::kTookTooLong && Clock::now() >= x_settings.deadline) {
      x_out_of_time = true;
      return std::nullopt;
    }
    const Told told = told_by(result);
    x_known[what.key] = told;
    note(what.candidate, told.said);
  }
}

}  // namespace attn_diag::shrink
