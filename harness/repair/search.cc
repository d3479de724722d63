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

struct TrialsAnswer {
  std::size_t agreed = 0;
  int failed = -1;  // the first that did not
  std::string what;
};

Bytes to_bytes(const TrialsAnswer& answer) {
  WireWriter to;
  to.number(answer.agreed).number(static_cast<std::uint64_t>(answer.failed + 1)).text(answer.what);
  return to.take();
}

TrialsAnswer answer_of(const Bytes& bytes) {
  WireReader from(bytes);
  TrialsAnswer answer;
  answer.agreed = from.number();
  answer.failed = static_cast<int>(from.number()) - 1;
  answer.what = from.text();
  return answer;
}

// Up to the first that fails. Those that need another build are left out.
TrialsAnswer run_trials(const std::string& spec, const std::vector<Trial>& trials,
                        const Tolerance& tolerance, int edit, bool instrumented) {
  TrialsAnswer answer;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].instrumented() && !instrumented) continue;
    const TrialVerdict verdict = run_trial(spec, trials[i], tolerance, edit);
    if (verdict.agrees) {
      ++answer.agreed;
    } else {
      answer.failed = static_cast<int>(i);
      answer.what = verdict.what;
      break;
    }
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
               const std::vector<Trial>& trials, std::size_t screen, double screen_seconds,
               const std::string& kernel, const RepairOptions& options, Clock::time_point deadline)
    : x_program(program),
      x_edits(edits),
      x_workshop(workshop),
      x_trials(trials),
      x_screen(screen),
      x_screen_seconds(screen_seconds),
      x_kernel(kernel),
      x_options(options),
      x_deadline(deadline),
      x_begin(Clock::now()),
      x_jobs(options.processes) {}

double Search::seconds_left() const {
  return std::chrono::duration<double>(x_deadline - Clock::now()).count();
}

std::string Search::spec(int number, bool instrumented) const {
  return x_workshop.library(number, instrumented) + ":" + x_kernel;
}

Workshop::Speed Search::speed() const {
  constexpr double kShort = 0.03;  // seconds of a run, most of them the process's own
  return x_screen_seconds < kShort ? Workshop::Speed::kSoonBuilt : Workshop::Speed::kSoonRun;
}

bool Search::better(int a, int b) const {
  const Edit &left = x_edits[static_cast<std::size_t>(a)],
             &right = x_edits[static_cast<std::size_t>(b)];
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

// One is found: others are looked for a little longer, since they may be smaller.
bool Search::enough() const {
  if (!x_first_verified) return false;
  const double took = std::chrono::duration<double>(*x_first_verified - x_begin).count();
  const double since = std::chrono::duration<double>(Clock::now() - *x_first_verified).count();
  return since > std::max(1.5, 0.35 * took);
}

void Search::run(const std::vector<int>& order) {
  x_rank.assign(x_edits.size(), 0);
  std::vector<int> together;
  for (std::size_t i = 0; i < order.size(); ++i) {
    x_rank[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    if (x_edits[static_cast<std::size_t>(order[i])].way == Way::kAlone)
      x_alone.push_back(order[i]);
    else
      together.push_back(order[i]);
  }
  for (std::size_t begin = 0, size = kFirstLibrary; begin < together.size();
       begin += size, size = kLaterLibraries) {
    const std::size_t end = std::min(begin + size, together.size());
    x_to_build.emplace_back(together.begin() + static_cast<std::ptrdiff_t>(begin),
                            together.begin() + static_cast<std::ptrdiff_t>(end));
    if (begin > 0) size = kLaterLibraries;
  }
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
      x_options.on_step(x_tried, static_cast<int>(x_edits.size()),
                        fmt::format("{} edits of {} tried, {:.0f} s left{}", x_tried,
                                    x_edits.size(), std::max(0.0, seconds_left()),
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
  if (start_verification() || start_trials()) return true;
  // A library is built while the edits of another are tried.
  if (x_building == 0 && waiting < kLaterLibraries && start_library()) return true;
  if (start_screening() || start_library()) return true;
  if (start_slow_screening()) return true;
  // Of the rest each takes a build of its own.
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
                                         schema_prelude(built.schema), which, speed()));
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

// Those that took longer than the wrong kernel does: the right one may.
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
        return WireWriter()
            .truth(run_trial(where, x_trials[x_screen], x_options.tolerance, number).agrees)
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
        return to_bytes(run_trials(where, x_trials, x_options.tolerance, number, instrumented));
      },
      kBuildSeconds, 5 + 20 * x_screen_seconds * static_cast<double>(x_trials.size()));
  return true;
}

bool Search::start_verification() {
  if (x_hopeful.empty() || x_verifying > 0) return false;
  const auto best = std::min_element(x_hopeful.begin(), x_hopeful.end(),
                                     [&](int a, int b) { return better(a, b); });
  const int edit = *best;
  // Only a smaller one is worth the time.
  if (!x_verified.empty() && better(x_verified.front(), edit)) return false;
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
        return to_bytes(run_trials(spec(number, false), x_trials, x_options.tolerance, 0, true));
      },
      kBuildSeconds);
  return true;
}

bool Search::start_alone() {
  if (x_alone.empty() || x_first_verified) return false;
  const int edit = x_alone.front();
  x_alone.pop_front();
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
            instrumented ? Workshop::Which::kInstrumented : Workshop::Which::kPlain, speed());
        if (!built.ok) throw Error("it does not compile");
        const std::string where = spec(number, instrumented);
        if (!run_trial(where, x_trials[x_screen], x_options.tolerance, 0).agrees)
          return to_bytes(TrialsAnswer{0, static_cast<int>(x_screen), ""});
        return to_bytes(run_trials(where, x_trials, x_options.tolerance, 0, instrumented));
      },
      kBuildSeconds);
  return true;
}

void Search::handle(const Started& what, const Jobs::Result& result) {
  Library* library =
      what.library < 0 ? nullptr : &x_libraries[static_cast<std::size_t>(what.library)];
  static double cpu[8][5];
  static int cnt[8][5];  // DEVLOG
  cpu[(int)what.task][(int)result.end] += result.processor_seconds;
  cnt[(int)what.task][(int)result.end]++;
  if (getenv("RLOG")) {
    FILE* f = fopen(fmt::format("{}.cpu", getenv("RLOG")).c_str(), "w");
    for (int t = 0; t < 6; ++t)
      for (int e = 0; e < 4; ++e)
        if (cnt[t][e]) fprintf(f, "task %d end %d: %d jobs %.2f s\n", t, e, cnt[t][e], cpu[t][e]);
    fclose(f);
  }
  switch (what.task) {
    case Task::kBuild:
      --x_building;
      library_built(what.library, result);
      break;
    case Task::kControl:
      // Without any edit it must be wrong as the user's is.
      library->ready = !agrees(result);
      if (library->ready && result.end == Jobs::End::kDone) {
        WireReader from(result.answer);
        from.truth();
        for (std::size_t i = 0; i <= library->schema.edits.size(); ++i)
          library->reached.push_back(from.truth());
      }
      if (library->ready)
        x_screen_seconds = std::max(x_screen_seconds, result.processor_seconds);
      else
        x_not_possible += static_cast<int>(library->schema.edits.size());
      break;
    case Task::kSlowScreen:
      if (agrees(result)) x_survivors.push_back({what.edit, what.library});
      break;
    case Task::kScreen:
      ++x_tried;
      if (result.end == Jobs::End::kTookTooLong) {
        x_slow.push_back(what);
        x_slow.back().task = Task::kSlowScreen;
      }
      if (agrees(result)) x_survivors.push_back({what.edit, what.library});
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
        to.truth(run_trial(where, x_trials[x_screen], x_options.tolerance, 0, &noted).agrees);
        for (const bool place : noted) to.truth(place);
        return to.take();
      },
      kBuildSeconds);
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
      if (code.path == file && edit.line == line && !refused.contains(i)) doubtful.insert(i);
    }
  if (getenv("RLOG")) {  // DEVLOG
    FILE* f = fopen(getenv("RLOG"), "a");
    fprintf(f, "=== %zu edits, refused %zu, doubtful %zu, blame %zu lines %zu\n", numbers.size(),
            refused.size(), doubtful.size(), blame.numbers.size(), blame.lines.size());
    fprintf(f, "%s\n", messages.c_str());
    fclose(f);
    static int n = 0;
    for (auto& t : library.schema.texts)
      if (t.find(kEditFile) != t.npos) {
        FILE* g = fopen(fmt::format("{}.{}.cu", getenv("RLOG"), n++).c_str(), "w");
        fputs(t.c_str(), g);
        fclose(g);
      }
  }
  x_not_possible += static_cast<int>(refused.size());
  std::vector<int> rest, apart;
  for (const int i : numbers)
    if (doubtful.contains(i))
      apart.push_back(i);
    else if (!refused.contains(i))
      rest.push_back(i);
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
  if (answer.failed < 0) {
    x_hopeful.push_back(what.edit);
    x_agreed.push_back(what.edit);
  } else if (answer.agreed > x_near.agreed) {
    x_near = {what.edit, answer.agreed, x_trials[static_cast<std::size_t>(answer.failed)].words,
              answer.what};
  }
}

void Search::verification_done(const Started& what, const Jobs::Result& result) {
  const bool done = result.end == Jobs::End::kDone;
  const TrialsAnswer answer = done ? answer_of(result.answer) : TrialsAnswer{0, 0, ""};
  ++x_built;
  if (answer.failed >= 0) {
    std::erase(x_agreed, what.edit);
    if (answer.agreed > x_near.agreed)
      x_near = {what.edit, answer.agreed, x_trials[static_cast<std::size_t>(answer.failed)].words,
                answer.what};
    return;
  }
  if (!x_first_verified) x_first_verified = Clock::now();
  x_verified.push_back(what.edit);
  std::sort(x_verified.begin(), x_verified.end(), [&](int a, int b) { return better(a, b); });
}

}  // namespace attn_diag::repair
