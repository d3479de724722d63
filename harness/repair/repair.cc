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
#include <thread>

#include "attn_diag/harness/error.h"
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

// How far an edit is from the nearest place of suspicion: 0 at it, 1 close by, 2 not far, 3 elsewhere.
int remoteness(const Edit& edit, const Code& code, const std::vector<SourcePlace>& suspects) {
  if (suspects.empty()) return 0;
  int nearest = 3;
  for (const SourcePlace& place : suspects) {
    const fs::path path(code.path), named(place.file);
    const bool same = code.path == place.file || code.shown == place.file ||
                      path.string().ends_with("/" + named.lexically_normal().string());
    if (!same) continue;
    const int lines = std::abs(edit.line - place.line);
    nearest = std::min(nearest, lines == 0 ? 0 : lines <= 2 ? 1 : lines <= 8 ? 2 : 3);
  }
  return nearest;
}

std::vector<int> ordered(const Program& program, const std::vector<Edit>& edits,
                         const std::vector<SourcePlace>& suspects) {
  std::vector<int> order(edits.size());
  std::vector<int> distance(edits.size());
  for (std::size_t i = 0; i < edits.size(); ++i) {
    order[i] = static_cast<int>(i);
    const Code& code = *program.files[static_cast<std::size_t>(edits[i].file)];
    distance[i] = edits[i].tier + remoteness(edits[i], code, suspects);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
    if (distance[x] != distance[y]) return distance[x] < distance[y];
    return edits[x].size < edits[y].size;
  });
  return order;
}

struct Baseline {
  bool agrees = false;
  std::string what;
  double seconds = 0;
};

// What the user's own library does in each trial.
std::vector<Baseline> run_baseline(const std::string& spec, const std::vector<Trial>& trials,
                                   const RepairOptions& options, double seconds) {
  std::vector<Baseline> results(trials.size());
  Jobs jobs(options.processes);
  std::map<int, std::size_t> started;
  std::size_t next = 0;
  while (next < trials.size() || !jobs.empty()) {
    while (next < trials.size() && !jobs.full()) {
      const std::size_t i = next++;
      started[jobs.start(
          [&, i] {
            const TrialVerdict verdict = run_trial(spec, trials[i], options.tolerance, 0);
            return WireWriter().truth(verdict.agrees).text(verdict.what).take();
          },
          seconds)] = i;
    }
    const Jobs::Result result = jobs.wait();
    Baseline& baseline = results[started.at(result.id)];
    baseline.seconds = result.processor_seconds;
    if (result.end == Jobs::End::kDone) {
      WireReader from(result.answer);
      baseline.agrees = from.truth();
      baseline.what = from.text();
    } else {
      baseline.what = result.end == Jobs::End::kTookTooLong ? "it does not end" : "it crashes";
    }
  }
  return results;
}

// The trial that edits are tried on first: a failing one of the case itself, of values before memory, and a quick one.
std::optional<std::size_t> screen_of(const std::vector<Trial>& trials,
                                     const std::vector<Baseline>& baseline) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Problem &p = trials[i].problem, &given = trials[0].problem;
    const bool own = p.seqlen_q == given.seqlen_q && p.seqlen_k == given.seqlen_k &&
                     p.heads == given.heads && p.batch == given.batch &&
                     p.head_dim == given.head_dim && p.dtype == given.dtype &&
                     p.mask.kind == given.mask.kind && trials[i].inputs == trials[0].inputs;
    if (baseline[i].agrees || !own) continue;
    const auto cost = [&](std::size_t t) {
      return (trials[t].check ? 2 : 0) + (trials[t].instrumented() ? 1 : 0);
    };
    if (!found || cost(i) < cost(*found)) found = i;
  }
  return found;
}

}  // namespace

RepairResult repair(const Kernel& kernel, const Problem& problem,
                    const std::shared_ptr<const InputData>& inputs, const RepairOptions& given,
                    const build::Settings& settings) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  RepairOptions options = given;
  if (options.processes <= 0)
    options.processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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
  const std::vector<Trial> trials = make_trials(kernel, problem, inputs, options.run, instrumented);
  const std::string spec = kernel.library_path() + ":" + kernel.info().name;
  const std::vector<Baseline> baseline =
      run_baseline(spec, trials, options, std::max(1.0, options.seconds / 4));
  const auto finish = [&] {
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(result);
  };
  for (const Trial& trial : trials) result.cases.push_back(trial.words);
  const std::optional<std::size_t> screen = screen_of(trials, baseline);
  if (!screen) {
    result.outcome = RepairResult::Outcome::kAgreesAlready;
    result.reason = "the kernel agrees already";
    for (std::size_t i = 0; i < trials.size(); ++i)
      if (!baseline[i].agrees)
        result.notes.push_back(
            fmt::format("It does not agree on {}: {}. Name that case to have it repaired.",
                        trials[i].words, baseline[i].what));
    return finish();
  }
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
  Search search(program, edits, workshop, trials, *screen, baseline[*screen].seconds,
                kernel.info().name, options, deadline);
  search.run(ordered(program, edits, options.suspects));

  result.tried = search.tried();
  result.built = search.built();
  result.not_possible = search.not_possible();
  result.out_of_time = search.out_of_time();
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
    repaired.built = result.edits.size() < search.verified().size();
    repaired.before = code.text;
    repaired.after = edited(code, edit);
    repaired.diff = unified_diff(code.shown, repaired.before, repaired.after);
    result.edits.push_back(std::move(repaired));
  }
  if (!result.edits.empty()) {
    result.outcome = RepairResult::Outcome::kFound;
    return finish();
  }
  result.reason = fmt::format("no single small edit of the device code makes {} agree",
                              search.near().edit < 0 ? "the case" : "all cases");
  if (result.out_of_time)
    result.reason = fmt::format("none of the {} edits that could be tried in time makes {} agree",
                                result.tried, search.near().edit < 0 ? "the case" : "all cases");
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
