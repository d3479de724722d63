#include "harness/repair/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "attn_diag/harness/error.h"

namespace attn_diag::repair {
namespace {

// The first library is soon there, the next ones hold more.
constexpr std::size_t kFirstLibrary = 150, kLaterLibraries = 450;
constexpr double kBuildSeconds = 90, kRunSeconds = 20;  // by the clock
constexpr double kUnknownSeconds = 0.1;                 // of the processor: a short run
// Looking for suspects must leave most of the time to edits.
constexpr double kLookSeconds = 25, kLookShare = 0.2;

Bytes to_bytes(const TrialsAnswer& answer) {
  WireWriter to;
  to.number(answer.agreed)
      .number(answer.disagreed)
      .truth(answer.sound)
      .number(static_cast<std::uint64_t>(answer.failed + 1))
      .number(answer.left_out)
      .text(answer.what)
      .number(answer.refused.size());
  for (const bool refused : answer.refused) to.truth(refused);
  return to.take();
}

TrialsAnswer answer_of(const Bytes& bytes) {
  WireReader from(bytes);
  TrialsAnswer answer;
  answer.agreed = from.number();
  answer.disagreed = from.number();
  answer.sound = from.truth();
  answer.failed = static_cast<int>(from.number()) - 1;
  answer.left_out = from.number();
  answer.what = from.text();
  answer.refused.resize(from.count());
  for (std::size_t i = 0; i < answer.refused.size(); ++i) answer.refused[i] = from.truth();
  return answer;
}

// Up to the first that fails and is no other case. Those that need another build are left out, counted where it is one of
// all kernels, and those that the user's own library, `given`, does not take either.
TrialsAnswer run_trials(const std::string& given, const std::string& spec,
                        const std::vector<Trial>& trials, int edit, bool instrumented) {
  TrialsAnswer answer;
  answer.refused.resize(trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].instrumented() && !instrumented) continue;
    const TrialVerdict verdict = run_trial(spec, trials[i], edit);
    if (verdict.agrees) {
      ++answer.agreed;
      continue;
    }
    if (verdict.left_out) {
      ++answer.left_out;
      continue;
    }
    if (verdict.refused && run_trial(given, trials[i], 0).refused) {
      answer.refused[i] = true;
      continue;
    }
    ++answer.disagreed;
    if (answer.failed < 0) {
      answer.failed = static_cast<int>(i);
      answer.what = verdict.what;
    }
    if (trials[i].other) continue;
    answer.sound = false;
    break;
  }
  return answer;
}

Bytes to_bytes(const Workshop::Built& built) {
  WireWriter to;
  to.truth(built.ok).text(built.messages);
  return to.take();
}

bool agrees(const Jobs::Result& result) {
  if (result.end != Jobs::End::kDone) return false;
  WireReader from(result.answer);
  return from.truth();
}

}  // namespace

Search::Search(const Program& program, const std::vector<Edit>& edits, const Workshop& workshop,
               const std::vector<Trial>& trials, const Wrong& wrong, const std::string& kernel,
               const RepairOptions& options, Clock::time_point deadline)
    : x_program(program),
      x_edits(edits),
      x_workshop(workshop),
      x_trials(trials),
      x_wrong(wrong),
      x_screen(wrong.trial),
      x_screen_seconds(wrong.seconds > 0 ? wrong.seconds : kUnknownSeconds),
      x_kernel(kernel),
      x_options(options),
      x_deadline(deadline),
      x_begin(Clock::now()),
      x_jobs(options.processes, workshop.folder()),
      x_refused(trials.size()) {}

double Search::seconds_left() const {
  return std::chrono::duration<double>(x_deadline - Clock::now()).count();
}

std::string Search::spec(int number, bool instrumented) const {
  return x_workshop.library(number, instrumented) + ":" + x_kernel;
}

// CPU seconds for all trials, without compilers.
double Search::trials_seconds() const {
  return 5 + 20 * x_screen_seconds * static_cast<double>(x_trials.size());
}

bool Search::better(int a, int b) const {
  const Edit &left = x_edits[static_cast<std::size_t>(a)],
             &right = x_edits[static_cast<std::size_t>(b)];
  // Where threads do not wait for each other, to drop what another waits for is smaller, and hides it.
  const bool barrier = left.operation == kBarrierOperation;
  if (x_wrong.suspects.order && barrier != (right.operation == kBarrierOperation)) return barrier;
  if (left.size != right.size) return left.size < right.size;
  if (left.tier != right.tier) return left.tier < right.tier;
  return x_rank[static_cast<std::size_t>(a)] < x_rank[static_cast<std::size_t>(b)];
}

std::vector<int> Search::others() const {
  std::vector<int> edits;
  for (const int edit : x_agreed)
    if (std::find(x_verified.begin(), x_verified.end(), edit) == x_verified.end())
      edits.push_back(edit);
  std::sort(edits.begin(), edits.end(), [&](int a, int b) { return better(a, b); });
  return edits;
}

// Whether an edit that is smaller than this one, and likelier, has not been tried yet: a library whose first build was
// refused comes late.
bool Search::likelier_waits(int edit) const {
  const auto likelier = [&](int other) {
    return x_rank[static_cast<std::size_t>(other)] < x_rank[static_cast<std::size_t>(edit)] &&
           better(other, edit);
  };
  for (const std::vector<int>& edits : x_to_build)
    if (std::any_of(edits.begin(), edits.end(), likelier)) return true;
  for (const auto& [id, job] : x_started) {
    if (job.task != Task::kBuild && job.task != Task::kControl) continue;
    const std::vector<int>& edits = x_libraries[static_cast<std::size_t>(job.library)].schema.edits;
    if (std::any_of(edits.begin(), edits.end(), likelier)) return true;
  }
  for (const Library& library : x_libraries)
    for (std::size_t i = library.next; library.ready && i < library.order.size(); ++i)
      if (likelier(library.schema.edits[static_cast<std::size_t>(library.order[i]) - 1]))
        return true;
  return false;
}

// One is found: others are looked for a little longer, since they may be smaller. A smaller one that is on its way gets
// the time that it needs.
bool Search::enough() const {
  if (!x_first_verified) return false;
  const double took = std::chrono::duration<double>(*x_first_verified - x_begin).count();
  const double since = std::chrono::duration<double>(Clock::now() - *x_first_verified).count();
  if (since <= std::max(1.5, 0.2 * took)) return false;
  const auto smaller = [&](int edit) { return better(edit, x_verified.front()); };
  const bool on_its_way =
      std::any_of(x_hopeful.begin(), x_hopeful.end(), smaller) ||
      std::any_of(x_whole.begin(), x_whole.end(), smaller) ||
      std::any_of(x_survivors.begin(), x_survivors.end(),
                  [&](const Survivor& survivor) { return smaller(survivor.edit); }) ||
      std::any_of(
          x_started.begin(), x_started.end(),
          [&](const auto& job) {
            const Task task = job.second.task;
            return (task == Task::kTrials || task == Task::kVerify || task == Task::kScreenAlone) &&
                   smaller(job.second.edit);
          }) ||
      likelier_waits(x_verified.front());
  return !on_its_way || since > std::max(10.0, took);
}

// Orders all edits that are not in a library yet.
void Search::set_order() {
  const std::vector<int> order = ordered(x_program, x_edits, x_wrong.suspects);
  for (std::size_t i = 0; i < order.size(); ++i)
    x_rank[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  const auto by_rank = [&](int a, int b) {
    return x_rank[static_cast<std::size_t>(a)] < x_rank[static_cast<std::size_t>(b)];
  };
  std::sort(x_alone.begin(), x_alone.end(), by_rank);
  for (Library& library : x_libraries)
    std::sort(library.order.begin() + static_cast<std::ptrdiff_t>(library.next),
              library.order.end(), [&](int a, int b) {
                return by_rank(library.schema.edits[static_cast<std::size_t>(a) - 1],
                               library.schema.edits[static_cast<std::size_t>(b) - 1]);
              });
  std::vector<int> together;
  for (const std::vector<int>& group : x_to_build)
    together.insert(together.end(), group.begin(), group.end());
  std::sort(together.begin(), together.end(), by_rank);
  x_to_build.clear();
  std::size_t size = kFirstLibrary;
  for (std::size_t begin = 0; begin < together.size(); begin += size) {
    if (begin > 0) size = kLaterLibraries;
    const std::size_t end = std::min(begin + size, together.size());
    x_to_build.emplace_back(together.begin() + static_cast<std::ptrdiff_t>(begin),
                            together.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

void Search::start_looking() {
  const double seconds = std::min(kLookSeconds, kLookShare * seconds_left());
  const auto checks = std::find_if(x_trials.begin(), x_trials.end(),
                                   [](const Trial& trial) { return trial.check; });
  if (checks != x_trials.end() && !x_wrong.check_has_run) {
    ++x_looking;
    start(
        {Task::kCheck, -1, -1, 0},
        [&, checks] { return to_bytes(run_trial(x_wrong.spec, *checks, 0)); }, seconds);
  }
  if (has_lines(x_trials[x_screen])) {
    ++x_looking;
    start(
        {Task::kLines, -1, -1, 0},
        [&] {
          TrialVerdict verdict;
          verdict.places = suspected_lines(x_wrong.spec, x_trials[x_screen]);
          return to_bytes(verdict);
        },
        seconds);
  }
}

void Search::run() {
  x_rank.assign(x_edits.size(), 0);
  std::vector<int> together;
  for (std::size_t i = 0; i < x_edits.size(); ++i)
    if (x_edits[i].way == Way::kAlone)
      x_alone.push_back(static_cast<int>(i));
    else
      together.push_back(static_cast<int>(i));
  if (!together.empty()) x_to_build.push_back(std::move(together));
  set_order();
  if (x_wrong.suspects.by_user.empty()) start_looking();
  while (!enough()) {
    if (seconds_left() <= 0) {
      x_out_of_time = true;
      break;
    }
    while (!x_jobs.full() && next_task()) {
    }
    if (x_jobs.empty()) break;
    const Jobs::Result result = x_jobs.wait();
    const auto found = x_started.find(result.id);
    const Started what = found->second;
    x_started.erase(found);
    handle(what, result);
    if (x_options.on_step)
      x_options.on_step(
          x_tried, static_cast<int>(x_edits.size()),
          fmt::format("{}{} edits of {} tried on {}, {:.0f} s left{}",
                      x_looking > 0 ? "looking for suspects, " : "", x_tried, x_edits.size(),
                      x_jobs.most() == 1 ? "1 core" : fmt::format("{} cores", x_jobs.most()),
                      std::max(0.0, seconds_left()),
                      x_verified.empty() ? "" : ", a repair is found"));
  }
  x_jobs.stop_all();
}

void Search::start(Started what, const std::function<Bytes()>& work, double seconds,
                   double processor_seconds) {
  x_started[x_jobs.start(work, std::max(0.05, std::min(seconds, seconds_left())),
                         processor_seconds)] = what;
}

bool Search::next_task() {
  std::size_t waiting = 0;
  for (const Library& library : x_libraries)
    if (library.ready) waiting += library.order.size() - library.next;
  if (start_verification() || start_trials() || start_whole()) return true;
  // What would be in the first library if it could be chosen at run time; not many, since each is a build.
  constexpr std::size_t kEarly = 3;
  if (x_built > 0 && x_building == 0 && x_looking == 0 && x_early < kEarly && !x_alone.empty() &&
      x_rank[static_cast<std::size_t>(x_alone.front())] < static_cast<int>(kFirstLibrary) &&
      start_alone()) {
    ++x_early;
    return true;
  }
  // The first library holds what is wrong most often; which are to be in the next, suspects decide.
  constexpr int kFewCores = 4;
  const bool has_work =
      waiting > 0 || std::any_of(x_started.begin(), x_started.end(), [](const auto& job) {
        return job.second.task == Task::kBuild || job.second.task == Task::kControl;
      });
  if (x_looking > 0 && has_work && x_jobs.most() <= kFewCores) return start_screening();
  // A library is built while the edits of another are tried.
  if (x_building == 0 && waiting < kLaterLibraries && start_library()) return true;
  // Two builds on the cores of one make the first library wait for the second.
  if (start_screening()) return true;
  if (x_building * x_workshop.units() < x_jobs.most() && start_library()) return true;
  if (start_slow_screening()) return true;
  // Each of the rest takes a build of its own.
  if (x_building > 0 || !x_survivors.empty() || !x_hopeful.empty() || x_verifying > 0) return false;
  return start_alone();
}

bool Search::start_library() {
  if (x_to_build.empty()) return false;
  Library library;
  library.number = x_next_number++;
  library.schema = make_schema(x_program, x_edits, x_to_build.front());
  x_to_build.pop_front();
  for (std::size_t n = 1; n <= library.schema.edits.size(); ++n)
    library.order.push_back(static_cast<int>(n));
  std::sort(library.order.begin(), library.order.end(), [&](int a, int b) {
    const auto rank = [&](int n) {
      return x_rank[static_cast<std::size_t>(
          library.schema.edits[static_cast<std::size_t>(n) - 1])];
    };
    return rank(a) < rank(b);
  });
  // What does not fit in goes into the next.
  if (!library.schema.left.empty()) x_to_build.push_back(library.schema.left);
  x_libraries.push_back(std::move(library));
  const Library& built = x_libraries.back();
  ++x_building;
  const Workshop::Which which =
      x_trials[x_screen].instrumented() ? Workshop::Which::kInstrumented : Workshop::Which::kPlain;
  start(
      {Task::kBuild, static_cast<int>(x_libraries.size()) - 1, -1, built.number},
      [&] {
        return to_bytes(x_workshop.build(built.number, built.schema.texts,
                                         edit_definitions(built.schema), which,
                                         Workshop::Speed::kSoon, x_wrong.kernels));
      },
      kBuildSeconds);
  return true;
}

bool Search::start_screening() {
  for (std::size_t i = 0; i < x_libraries.size(); ++i) {
    Library& library = x_libraries[i];
    while (library.ready && library.next < library.order.size()) {
      const int number = library.order[library.next++];
      // Where the run does not come by, an edit changes nothing.
      const auto place =
          static_cast<std::size_t>(library.schema.first[static_cast<std::size_t>(number) - 1]);
      if (!library.reached.empty() && !library.reached[place]) {
        ++x_tried;
        continue;
      }
      screen({Task::kScreen, static_cast<int>(i),
              library.schema.edits[static_cast<std::size_t>(number) - 1], number},
             std::max(0.04, 4 * x_screen_seconds));
      return true;
    }
  }
  return false;
}

// Edits whose run takes longer than that of the wrong kernel: the right one may too.
bool Search::start_slow_screening() {
  if (x_slow.empty() || x_first_verified) return false;
  const Started what = x_slow.front();
  x_slow.pop_front();
  screen(what, std::max(1.0, 25 * x_screen_seconds));
  return true;
}

void Search::screen(const Started& what, double processor_seconds) {
  const std::string where = spec(x_libraries[static_cast<std::size_t>(what.library)].number,
                                 x_trials[x_screen].instrumented());
  const int number = what.number;
  start(
      what,
      [&, where, number] {
        const TrialVerdict verdict = run_trial(where, x_trials[x_screen], number);
        return WireWriter()
            .truth(verdict.agrees)
            .number(static_cast<std::uint64_t>(verdict.wrong + 1))
            .truth(verdict.left_out)
            .take();
      },
      kRunSeconds, processor_seconds);
}

bool Search::start_trials() {
  if (x_survivors.empty()) return false;
  const Survivor survivor = x_survivors.front();
  x_survivors.pop_front();
  const Library& library = x_libraries[static_cast<std::size_t>(survivor.library)];
  const auto& numbers = library.schema.edits;
  const int number =
      static_cast<int>(std::find(numbers.begin(), numbers.end(), survivor.edit) - numbers.begin()) +
      1;
  const bool instrumented = x_trials[x_screen].instrumented();
  const std::string where = spec(library.number, instrumented);
  start(
      {Task::kTrials, survivor.library, survivor.edit, number},
      [&, where, number, instrumented] {
        return to_bytes(run_trials(x_wrong.spec, where, x_trials, number, instrumented));
      },
      kBuildSeconds, trials_seconds());
  return true;
}

std::vector<int>::iterator Search::smallest(std::vector<int>& edits) const {
  return std::min_element(edits.begin(), edits.end(), [&](int a, int b) { return better(a, b); });
}

// Where one is found, only a smaller one is worth the time.
bool Search::is_worth_more(int edit) const {
  return x_verified.empty() || !better(x_verified.front(), edit);
}

bool Search::start_verification() {
  if (x_hopeful.empty() || x_verifying > 0) return false;
  const auto best = smallest(x_hopeful);
  const int edit = *best;
  if (!is_worth_more(edit)) return false;
  x_hopeful.erase(best);
  const int number = x_next_number++;
  ++x_verifying;
  start(
      {Task::kVerify, -1, edit, number},
      [&, edit, number] {
        const Edit& e = x_edits[static_cast<std::size_t>(edit)];
        std::vector<std::string> texts;
        for (const auto& code : x_program.files) texts.push_back(code->text);
        texts[static_cast<std::size_t>(e.file)] =
            edited(*x_program.files[static_cast<std::size_t>(e.file)], e);
        const bool instrumented =
            std::any_of(x_trials.begin(), x_trials.end(),
                        [](const Trial& trial) { return trial.instrumented(); });
        const Workshop::Built built = x_workshop.build(
            number, texts, {}, instrumented ? Workshop::Which::kBoth : Workshop::Which::kPlain,
            Workshop::Speed::kAsBuilt);
        if (!built.ok) throw Error(built.messages);
        return to_bytes(run_trials(x_wrong.spec, spec(number, false), x_trials, 0, true));
      },
      kBuildSeconds, trials_seconds());
  return true;
}

bool Search::start_whole() {
  if (x_whole.empty()) return false;
  const auto best = smallest(x_whole);
  const int edit = *best;
  if (!is_worth_more(edit)) return false;
  x_whole.erase(best);
  build_alone(edit);
  return true;
}

bool Search::start_alone() {
  if (x_alone.empty() || x_first_verified) return false;
  const int edit = x_alone.front();
  x_alone.pop_front();
  build_alone(edit);
  return true;
}

void Search::build_alone(int edit) {
  const int number = x_next_number++;
  const bool instrumented = x_trials[x_screen].instrumented();
  start(
      {Task::kScreenAlone, -1, edit, number},
      [&, edit, number, instrumented] {
        const Edit& e = x_edits[static_cast<std::size_t>(edit)];
        std::vector<std::string> texts;
        for (const auto& code : x_program.files) texts.push_back(code->text);
        texts[static_cast<std::size_t>(e.file)] =
            edited(*x_program.files[static_cast<std::size_t>(e.file)], e);
        const Workshop::Built built = x_workshop.build(
            number, texts, {},
            instrumented ? Workshop::Which::kInstrumented : Workshop::Which::kPlain,
            Workshop::Speed::kSoon);
        if (!built.ok) throw Error("it does not compile");
        const std::string where = spec(number, instrumented);
        if (!run_trial(where, x_trials[x_screen], 0).agrees)
          return to_bytes(TrialsAnswer{0, 1, false, static_cast<int>(x_screen), 0, {}, ""});
        return to_bytes(run_trials(x_wrong.spec, where, x_trials, 0, instrumented));
      },
      kBuildSeconds, trials_seconds());
}

void Search::handle(const Started& what, const Jobs::Result& result) {
  Library* library =
      what.library < 0 ? nullptr : &x_libraries[static_cast<std::size_t>(what.library)];
  switch (what.task) {
    case Task::kLines:
    case Task::kCheck:
      --x_looking;
      if (result.end != Jobs::End::kDone) break;
      {
        WireReader from(result.answer);
        const TrialVerdict verdict = verdict_of(from);
        (what.task == Task::kLines ? x_wrong.suspects.by_lines : x_wrong.suspects.by_check) =
            verdict.places;
        x_wrong.suspects.order |= verdict.order;
      }
      if (!x_wrong.suspects.empty()) set_order();
      break;
    case Task::kBuild:
      --x_building;
      library_built(what.library, result);
      break;
    case Task::kControl:
      control_done(*library, result);
      break;
    case Task::kSlowScreen:
      screened(what, result);
      break;
    case Task::kScreen:
      ++x_tried;
      if (result.end == Jobs::End::kTookTooLong) {
        x_slow.push_back(what);
        x_slow.back().task = Task::kSlowScreen;
      }
      screened(what, result);
      break;
    case Task::kTrials:
      trials_done(what, result);
      break;
    case Task::kScreenAlone:
      x_workshop.remove(what.number);
      if (result.end == Jobs::End::kFailed) {
        ++x_not_possible;
        break;
      }
      ++x_built;
      ++x_tried;
      trials_done(what, result);
      break;
    case Task::kVerify:
      --x_verifying;
      x_workshop.remove(what.number);
      verification_done(what, result);
      break;
  }
}

void Search::screened(const Started& what, const Jobs::Result& result) {
  if (result.end != Jobs::End::kDone) return;
  WireReader from(result.answer);
  const bool agrees = from.truth();
  if (agrees) x_survivors.push_back({what.edit, what.library});
  const auto left = static_cast<std::int64_t>(from.number()) - 1;
  const bool left_out = from.truth();
  if (left_out) return wait_alone(what.edit);
  // What agrees by its numbers alone may have left cells unwritten, say.
  if (left < 0 || 2 * left > x_wrong.elements || (left == 0 && !agrees)) return;
  const Edit& edit = x_edits[static_cast<std::size_t>(what.edit)];
  Helpful& known = x_helpful[{edit.file, edit.line}];
  if (known.agreed > 0) return;
  if (known.edit < 0 || left < known.left ||
      (left == known.left && better(what.edit, known.edit))) {
    known.edit = what.edit;
    known.left = left;
  }
}

// It is to be built by itself when its turn comes.
void Search::wait_alone(int edit) {
  const auto later = std::upper_bound(x_alone.begin(), x_alone.end(), edit, [&](int a, int b) {
    return x_rank[static_cast<std::size_t>(a)] < x_rank[static_cast<std::size_t>(b)];
  });
  x_alone.insert(later, edit);
}

std::vector<Search::Helpful> Search::helpful() const {
  std::vector<Helpful> all;
  for (const auto& [place, one] : x_helpful) all.push_back(one);
  std::sort(all.begin(), all.end(), [&](const Helpful& a, const Helpful& b) {
    if (a.agreed != b.agreed) return a.agreed > b.agreed;
    return a.left != b.left ? a.left < b.left : better(a.edit, b.edit);
  });
  return all;
}

// Without any edit it must be wrong as the user's is.
void Search::control_done(Library& library, const Jobs::Result& result) {
  library.ready = !agrees(result);
  if (!library.ready) {
    x_not_possible += static_cast<int>(library.schema.edits.size());
    return;
  }
  if (result.end != Jobs::End::kDone) return;
  WireReader from(result.answer);
  from.truth();
  if (from.truth()) {
    // It was built for others than it launches.
    library.ready = false;
    x_workshop.remove(library.number);
    x_wrong.kernels.clear();
    x_to_build.push_front(library.schema.edits);
    return;
  }
  for (std::size_t i = 0; i <= library.schema.edits.size(); ++i)
    library.reached.push_back(from.truth());
  x_screen_seconds = std::max(x_screen_seconds, result.processor_seconds);
}

void Search::library_built(int index, const Jobs::Result& result) {
  Library& library = x_libraries[static_cast<std::size_t>(index)];
  bool ok = false;
  std::string messages;
  if (result.end == Jobs::End::kDone) {
    WireReader from(result.answer);
    ok = from.truth();
    messages = from.text();
  }
  if (!ok) return library_refused(library, messages);
  ++x_built;
  const std::string where = spec(library.number, x_trials[x_screen].instrumented());
  const std::size_t places = library.schema.edits.size() + 1;
  start(
      {Task::kControl, index, -1, 0},
      [&, where, places] {
        std::vector<bool> noted(places);
        WireWriter to;
        const TrialVerdict verdict = run_trial(where, x_trials[x_screen], 0, &noted);
        to.truth(verdict.agrees).truth(verdict.left_out);
        for (const bool place : noted) to.truth(place);
        return to.take();
      },
      kRunSeconds, std::max(1.0, 25 * x_screen_seconds));
}

// Without those that the compiler refuses it is built again.
void Search::library_refused(Library& library, const std::string& messages) {
  x_workshop.remove(library.number);
  const std::vector<int>& numbers = library.schema.edits;
  const Blame blame = blamed(messages);
  std::set<int> refused, doubtful;
  for (const int number : blame.numbers)
    if (number <= static_cast<int>(numbers.size()))
      refused.insert(numbers[static_cast<std::size_t>(number) - 1]);
  for (const auto& [file, line] : blame.lines)
    for (const int i : numbers) {
      const Edit& edit = x_edits[static_cast<std::size_t>(i)];
      const Code& code = *x_program.files[static_cast<std::size_t>(edit.file)];
      if (code.path == file && edit.statement_line <= line && line <= edit.line &&
          !refused.contains(i))
        doubtful.insert(i);
    }
  x_not_possible += static_cast<int>(refused.size());
  // Of an expression in a template clang tells one error at a time: where that went wrong twice, the other edits wait,
  // so that not each of them takes a build of all.
  const auto site = [&](int i) {
    const Edit& edit = x_edits[static_cast<std::size_t>(i)];
    return std::tuple(edit.file, edit.site_begin, edit.site_end);
  };
  std::set<std::tuple<int, std::size_t, std::size_t>> sites;
  for (const int i : refused) sites.insert(site(i));
  for (const auto& at : sites) ++x_refused_at[at];
  std::vector<int> rest, apart, later;
  for (const int i : numbers)
    if (doubtful.contains(i))
      apart.push_back(i);
    else if (!refused.contains(i))
      (x_refused_at[site(i)] > 1 ? later : rest).push_back(i);
  if (rest.empty() && apart.empty()) std::swap(rest, later);
  if (!later.empty()) x_to_build.push_back(std::move(later));
  if (rest.empty()) std::swap(rest, apart);
  if (refused.empty() && apart.empty()) {
    // Nothing says which: one half is, or both are.
    const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2);
    apart.assign(middle, rest.end());
    rest.erase(middle, rest.end());
  }
  // A build for each is no more than builds that tell which of them.
  constexpr std::size_t kFew = 4;
  if (refused.empty() && rest.size() + apart.size() <= kFew) {
    for (const auto* few : {&rest, &apart}) x_alone.insert(x_alone.end(), few->begin(), few->end());
    return;
  }
  if (!apart.empty()) x_to_build.push_front(std::move(apart));
  if (!rest.empty()) x_to_build.push_front(std::move(rest));
}

void Search::trials_done(const Started& what, const Jobs::Result& result) {
  if (result.end != Jobs::End::kDone) return;
  const TrialsAnswer answer = answer_of(result.answer);
  note_refused(answer);
  if (answer.failed < 0) {
    const bool built_later =
        x_options.build_each ||
        x_edits[static_cast<std::size_t>(what.edit)].operation == kBarrierOperation;
    if (answer.left_out == 0) x_agreed.push_back(what.edit);
    if (built_later)
      x_hopeful.push_back(what.edit);
    else if (answer.left_out > 0)
      x_whole.push_back(what.edit);
    else
      return found(what.edit);
    note_sound(what.edit, answer.agreed, answer.agreed + answer.left_out, "");
    return;
  }
  note_partial(what.edit, answer);
}

void Search::note_refused(const TrialsAnswer& answer) {
  for (std::size_t i = 0; i < answer.refused.size(); ++i)
    if (answer.refused[i]) x_refused[i] = true;
}

// An edit under which not all trials agree.
void Search::note_partial(int edit, const TrialsAnswer& answer) {
  const std::string& words = x_trials[static_cast<std::size_t>(answer.failed)].words;
  if (answer.agreed > x_near.agreed) x_near = {edit, answer.agreed, words, answer.what};
  if (answer.sound) note_sound(edit, answer.agreed, answer.agreed + answer.disagreed, words);
}

void Search::note_sound(int edit, std::size_t agreed, std::size_t of, const std::string& but) {
  const Edit& e = x_edits[static_cast<std::size_t>(edit)];
  Helpful& known = x_helpful[{e.file, e.line}];
  if (known.edit < 0 || known.agreed < agreed) known = {edit, 0, agreed, of, but};
}

void Search::verification_done(const Started& what, const Jobs::Result& result) {
  const bool done = result.end == Jobs::End::kDone;
  const TrialsAnswer answer =
      done ? answer_of(result.answer) : TrialsAnswer{0, 1, false, 0, 0, {}, ""};
  ++x_built;
  note_refused(answer);
  if (answer.failed >= 0) {
    std::erase(x_agreed, what.edit);
    std::erase_if(x_helpful, [&](const auto& one) { return one.second.edit == what.edit; });
    return note_partial(what.edit, answer);
  }
  x_built_by_itself.insert(what.edit);
  found(what.edit);
}

void Search::found(int edit) {
  if (!x_first_verified) x_first_verified = Clock::now();
  x_verified.push_back(edit);
  std::sort(x_verified.begin(), x_verified.end(), [&](int a, int b) { return better(a, b); });
}

}  // namespace attn_diag::repair
