#include "harness/repair/repair.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "attn_diag/harness/error.h"
#include "harness/base/parallel_for.h"
#include "harness/repair/search.h"
#include "harness/toolchain/build/build.h"

namespace attn_diag::repair {

namespace fs = std::filesystem;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool lies_below(const fs::path& path, const fs::path& root) {
  const fs::path relative = path.lexically_relative(root);
  return !relative.empty() && *relative.begin() != "..";
}

// Files of the user's: not those of the compiler and of attn-diag.
std::vector<SourceFile> sources_of(const Kernel& kernel, const build::Settings& settings) {
  const Provenance provenance = kernel.provenance();
  if (provenance.sources_missing())
    throw Error(fmt::format(
        "The sources of {} are not all there: repair edits copies of them. Expected to find those "
        "that attn-diag list {} names where they were when it was built.",
        kernel.library_path(), kernel.library_path()));
  if (provenance.stale())
    throw Error(fmt::format(
        "STALE: the sources of {} have changed since it was built, so what it does is not what "
        "they say. Build it again (attn-diag build) and repeat this.",
        kernel.library_path()));
  std::vector<SourceFile> files;
  for (int i = 0; i < kernel.build().num_sources; ++i) {
    const char* const path = kernel.build().sources[i].path;
    bool own = !lies_below(path, "/usr");
    for (const fs::path& folder : settings.includes)
      own &= !lies_below(path, fs::weakly_canonical(folder));
    if (own) files.push_back({path, kernel.build().sources[i].shown_path, read(path)});
  }
  return files;
}

build::BuildRequest request_for(const Kernel& kernel) {
  if (std::string_view(kernel.build().backend) != "host")
    throw Error(fmt::format(
        "{} was built for backend {}: repair builds and runs edited copies on the host executor. "
        "Build it for the host (attn-diag build ... -o kernel.so) and name that library.",
        kernel.library_path(), kernel.build().backend));
  std::optional<build::BuildRequest> request = build::request_of(kernel.library_path());
  if (!request)
    throw Error(fmt::format(
        "{} does not say how it was built, which repair needs to build edited copies of it: "
        "expected a library that this version of attn-diag build has written. Build it by "
        "attn-diag "
        "build my_kernel.cu -o my_kernel.so, and name that.",
        kernel.library_path()));
  return *request;
}

// What the user's own library does in a trial.
struct Baseline : TrialVerdict {
  bool ran = false;
  bool ends = true;
  double seconds = 0;
};

// `seconds`: of the processor, for each, since the machine may be busy.
void run_baseline(const std::string& spec, const std::vector<Trial>& trials,
                  const std::vector<std::size_t>& which, const RepairOptions& options,
                  double seconds, std::vector<Baseline>& results) {
  Jobs jobs(options.processes);
  std::map<int, std::size_t> started;
  std::size_t next = 0;
  while (next < which.size() || !jobs.empty()) {
    while (next < which.size() && !jobs.full()) {
      const std::size_t i = which[next++];
      started[jobs.start([&, i] { return to_bytes(run_trial(spec, trials[i], 0, nullptr, true)); },
                         options.seconds / 2, seconds)] = i;
    }
    const Jobs::Result result = jobs.wait();
    Baseline& baseline = results[started.at(result.id)];
    baseline.ran = true;
    baseline.seconds = result.processor_seconds;
    if (result.end == Jobs::End::kDone) {
      WireReader from(result.answer);
      static_cast<TrialVerdict&>(baseline) = verdict_of(from);
    } else {
      baseline.ends = result.end != Jobs::End::kTookTooLong;
      baseline.what =
          baseline.ends ? "it crashes"
                        : fmt::format("it does not end within {:.0f} s of the processor", seconds);
    }
  }
}

// The trial that edits are tried on first: a failing one that is quick, of values before memory, of the case itself
// before others. Nothing is known about others that do not end: they may be slow.
std::optional<std::size_t> screen_of(const std::vector<Trial>& trials,
                                     const std::vector<Baseline>& baseline) {
  const auto cost = [&](std::size_t i) {
    constexpr double kQuick = 0.3;  // seconds
    // A smaller one must be wrong as the case is, by its numbers or by an error.
    const bool alike = baseline[i].ends && (baseline[i].wrong > 0) == (baseline[0].wrong > 0);
    const bool own = trials[i].inputs == trials[0].inputs || (trials[i].smaller && alike);
    return std::tuple(!own, trials[i].check, trials[i].instrumented(),
                      baseline[i].seconds > kQuick ? baseline[i].seconds : 0.0, !trials[i].smaller,
                      i);
  };
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (baseline[i].ran && !baseline[i].agrees && !baseline[i].refused &&
        (i == 0 || baseline[i].ends) && (!found || cost(i) < cost(*found)))
      found = i;
  return found;
}

}  // namespace

RepairResult repair(const Experiment& experiment, const RepairOptions& given,
                    const build::Settings& settings) {
  const Kernel& kernel = experiment.kernel;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  RepairOptions options = given;
  options.processes = resolve_threads(options.processes);
  const auto say = [&](const std::string& what) {
    if (options.on_step) options.on_step(0, 0, what);
  };
  RepairResult result;
  const build::BuildRequest request = request_for(kernel);
  const std::vector<SourceFile> files = sources_of(kernel, settings);
  const Program program = take_apart(files);
  for (const auto& code : program.files)
    if (!code->problem.empty())
      result.notes.push_back(fmt::format("{} is left as it is: {}.", code->shown, code->problem));

  say("running the case, and others that the kernel takes");
  const std::string no_instrumenter = settings.no_instrumenter();
  const bool instrumented =
      no_instrumenter.empty() &&
      fs::exists(kernel.library_path().substr(0, kernel.library_path().size() - 3) +
                 ".lockstep.so");
  if (!instrumented)
    result.notes.push_back(
        no_instrumenter.empty()
            ? "Neither lockstep nor check was tried: the library has no instrumented build."
            : "Neither lockstep nor check was tried: " + no_instrumenter);
  std::vector<Trial> trials = make_trials(experiment, instrumented);
  const std::string spec = kernel.library_path() + ":" + kernel.info().name;
  const auto finish = [&] {
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(result);
  };
  // Where the case itself fails soon, the others tell nothing new.
  std::vector<Baseline> baseline(trials.size());
  const double run_seconds = std::max(1.0, std::min(10.0, options.seconds / 6));
  run_baseline(spec, trials, {0}, options, run_seconds, baseline);
  if (baseline[0].agrees) {
    std::vector<std::size_t> others;
    for (std::size_t i = 1; i < trials.size(); ++i) others.push_back(i);
    run_baseline(spec, trials, others, options, run_seconds, baseline);
  }
  // Edits are tried on a smaller case, if that is wrong, too.
  if (!baseline[0].agrees) {
    std::vector<std::size_t> smaller;
    for (std::size_t i = 1; i < trials.size() && trials[i].smaller; ++i) smaller.push_back(i);
    run_baseline(spec, trials, smaller, options, run_seconds, baseline);
    // The kernel may not take so few.
    for (std::size_t i = trials.size(); i-- > 1;)
      if (trials[i].smaller && baseline[0].wrong >= 0 && baseline[i].wrong < 0) {
        trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(i));
        baseline.erase(baseline.begin() + static_cast<std::ptrdiff_t>(i));
      }
  }
  for (const Trial& trial : trials) result.cases.push_back(trial.words);
  const std::optional<std::size_t> screen = screen_of(trials, baseline);
  if (!screen) {
    result.verdict = RepairVerdict::kAgreesAlready;
    result.reason = "the kernel agrees already";
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (baseline[i].agrees) continue;
      std::erase(result.cases, trials[i].words);
      result.notes.push_back(
          fmt::format("{} is not among them: {}.", trials[i].words, baseline[i].what));
    }
    return finish();
  }
  if (trials[*screen].inputs != trials[0].inputs && baseline[0].agrees)
    result.notes.push_back(fmt::format("The case that was named agrees ({}), but {} does not.",
                                       trials[0].words, trials[*screen].words));
  result.failing = trials[*screen].words;
  result.failing_how = baseline[*screen].what;

  std::vector<Edit> edits = propose_edits(program);
  result.proposed = static_cast<int>(edits.size());
  if (edits.empty()) {
    result.reason = "no device code was found in the library's sources that could be edited";
    return finish();
  }
  const Workshop workshop(request, settings, files);
  const auto deadline = begin + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(options.seconds));
  Search::Wrong wrong;
  wrong.spec = spec;
  wrong.trial = *screen;
  wrong.elements = baseline[*screen].wrong;
  wrong.kernels = baseline[*screen].kernels;
  wrong.seconds = baseline[*screen].ends ? baseline[*screen].seconds : 0;
  wrong.suspects.by_user = options.suspects;
  wrong.suspects.order = options.order;
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (trials[i].check && baseline[i].ran) {
      wrong.check_has_run = true;
      wrong.suspects.by_check = baseline[i].places;
      wrong.suspects.order |= baseline[i].order;
    }
  if (!trials[*screen].check) wrong.suspects.by_error = baseline[*screen].places;
  Search search(program, edits, workshop, trials, wrong, kernel.info().name, options, deadline);
  search.run();
  result.suspects = search.suspects().in_order();

  result.tried = search.tried();
  result.built = search.built();
  result.not_possible = search.not_possible();
  result.out_of_time = search.out_of_time();
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (search.refused(i)) std::erase(result.cases, trials[i].words);
  std::vector<int> found = search.verified();
  if (!found.empty()) {
    const std::vector<int> others = search.others();
    found.insert(found.end(), others.begin(), others.end());
  }
  constexpr std::size_t kMost = 5;
  result.also = static_cast<int>(found.size() - std::min(found.size(), kMost));
  found.resize(std::min(found.size(), kMost));
  for (const int i : found) {
    const Edit& edit = edits[static_cast<std::size_t>(i)];
    const Code& code = *program.files[static_cast<std::size_t>(edit.file)];
    RepairedEdit repaired;
    repaired.file = code.path;
    repaired.shown = code.shown;
    repaired.line = edit.line;
    repaired.operation = edit.operation;
    repaired.built = search.is_built_by_itself(i);
    repaired.before = code.text;
    repaired.after = edited(code, edit);
    repaired.diff = unified_diff(code.shown, repaired.before, repaired.after);
    result.edits.push_back(std::move(repaired));
  }
  if (!result.edits.empty()) {
    result.verdict = RepairVerdict::kFound;
    for (const Trial& trial : trials)
      if (trial.instrumented() && !trials[*screen].instrumented() && !result.edits.front().built)
        std::erase(result.cases, trial.words);
    return finish();
  }
  for (const Search::Helpful& one : search.helpful()) {
    if (result.helpful.size() == kMost) break;
    const Edit& edit = edits[static_cast<std::size_t>(one.edit)];
    const Code& code = *program.files[static_cast<std::size_t>(edit.file)];
    result.helpful.push_back({code.path, code.shown, edit.line, std::string(edit.operation),
                              code.text, unified_diff(code.shown, code.text, edited(code, edit)),
                              one.left, wrong.elements, one.agreed, one.of, one.but});
  }
  result.reason = fmt::format("no single small edit makes {} agree",
                              search.near().edit < 0 ? "the case" : "all cases");
  if (result.out_of_time)
    result.reason = fmt::format("none of the {} edits that could be tried in time makes {} agree",
                                result.tried, search.near().edit < 0 ? "the case" : "all cases");
  if (!result.helpful.empty() && result.helpful.front().agrees_so_far())
    result.reason = "there was no time to build it by itself";
  if (search.near().edit >= 0) {
    const Edit& edit = edits[static_cast<std::size_t>(search.near().edit)];
    result.notes.push_back(fmt::format(
        "Nearest is an edit of {}:{} ({}), under which {} of {} cases agree, but not {}: {}.",
        program.files[static_cast<std::size_t>(edit.file)]->shown, edit.line, edit.operation,
        search.near().agreed, trials.size(), search.near().words, search.near().what));
  }
  return finish();
}

void apply_edit(const RepairedEdit& edit) {
  std::error_code error;
  const fs::path target = fs::canonical(edit.file, error);
  if (error) throw Error(fmt::format("{} is no longer there: nothing was written.", edit.file));
  if (read(target.string()) != edit.before)
    throw Error(fmt::format(
        "{} has changed while the repair was looked for: nothing was written. Build it again and "
        "repeat this.",
        edit.file));
  if (::access(target.c_str(), W_OK) != 0)
    throw Error(fmt::format(
        "{} cannot be written: {}. Nothing was changed; the edit is the diff above, for patch -p1.",
        edit.file, std::strerror(errno)));
  // Beside it first: a file is never half written.
  const fs::path beside = target.string() + ".repaired";
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    file << edit.after;
    if (!file.flush()) {
      fs::remove(beside, error);
      throw Error(fmt::format(
          "{} cannot be written: no file can be made beside it. Nothing was changed; the edit is "
          "the diff above, for patch -p1.",
          edit.file));
    }
  }
  fs::permissions(beside, fs::status(target).permissions(), error);
  fs::rename(beside, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(beside, error);
    throw Error(fmt::format("{} cannot be written: {}. Nothing was changed.", edit.file, why));
  }
}

}  // namespace attn_diag::repair
