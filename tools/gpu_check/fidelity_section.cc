// Kernels right and wrong, as users write them: does the host executor say what the GPU says?
#include <fmt/format.h>

#include <fstream>
#include <set>

#include "attn_diag/harness/error.h"
#include "harness/report/text.h"
#include "tools/gpu_check/child.h"
#include "tools/gpu_check/fidelity.h"
#include "tools/gpu_check/sections.h"

namespace attn_diag::gpu_check {
namespace {

constexpr double kRunSeconds = 120;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// One case of one of the pairs (fixtures/zoo/run_all).
struct PairCase {
  std::string name, flags, bug;
  std::string host_refused, cuda_refused;  // what the build said
};

std::vector<std::string> command(const Setup& setup, const PairCase& one, const std::string& verb,
                                 bool cuda) {
  std::vector<std::string> words = {setup.attn_diag, verb, "--kernel",
                                    setup.pairs + "/" + one.name + (cuda ? ".cuda.so" : ".so")};
  if (verb == "run")
    words.insert(words.end(), {"--backend", cuda ? "cuda" : "host", "--no-history"});
  for (const std::string& word : words_of(one.flags)) words.push_back(word);
  return words;
}

BackendVerdict run_on(const Setup& setup, const PairCase& one, bool cuda) {
  std::vector<std::string> words = command(setup, one, "run", cuda);
  words.emplace_back("--json");
  const ProcessResult result = run_child(words, kRunSeconds);
  return read_run(result.exit_code, result.timed_out, result.out, result.err);
}

Check compare_backends(const Setup& setup, const PairCase& one) {
  Check check;
  check.name = one.name + " " + one.flags;
  if (!one.host_refused.empty() || !one.cuda_refused.empty()) {
    const bool both = !one.host_refused.empty() && !one.cuda_refused.empty();
    check.verdict = both ? Verdict::kPassed : Verdict::kSkipped;
    check.why = both ? "neither compiler takes it"
                     : fmt::format("not built for {}: {}",
                                   one.host_refused.empty() ? "the GPU" : "the host",
                                   one.host_refused.empty() ? one.cuda_refused : one.host_refused);
    return check;
  }
  const BackendVerdict host = run_on(setup, one, false), gpu = run_on(setup, one, true);
  const bool broken = !one.bug.empty();
  if (as_expected(host, gpu, broken)) {
    check.verdict = Verdict::kPassed;
    return check;
  }
  std::vector<std::string> words = command(setup, one, "check", false);
  words.emplace_back("--json");
  const ProcessResult checked = run_child(words, kRunSeconds);
  const std::string reason = broken ? reason_of(checked.exit_code, checked.out) : "";
  check.why = fmt::format("host: {}; GPU: {}", in_words(host), in_words(gpu));
  if (!reason.empty()) {
    check.verdict = Verdict::kPassed;
    check.why += ". " + reason;
    return check;
  }
  check.why += broken ? ". check on the host finds nothing that would explain it"
                      : ". Nothing is wrong with this kernel";
  check.reproduce = setup.shown(command(setup, one, "run", false)) + "; " +
                    setup.shown(command(setup, one, "run", true));
  return check;
}

std::vector<PairCase> pair_cases(const std::string& folder) {
  std::ifstream file(folder + "/pairs.json");
  const Json pairs = Json::parse(file, nullptr, false);
  std::vector<PairCase> cases;
  if (pairs.is_discarded()) return cases;
  for (const Json& entry : pairs)
    for (const Json& flags : entry.at("cases"))
      cases.push_back(
          {entry.at("name"), flags, entry.at("bug"), entry.at("host"), entry.at("cuda")});
  return cases;
}

}  // namespace

Section fidelity_section(const Setup& setup) {
  Section section;
  const std::vector<PairCase> cases = pair_cases(setup.pairs);
  if (cases.empty()) {
    section.skipped =
        "no pairs here (a bundle made without --pairs, or `fixtures/zoo/run_all pairs` not run; "
        "--pairs names its folder)";
    return section;
  }
  section.checks.resize(cases.size());
  const int n = static_cast<int>(cases.size());
  parallel(
      n, default_jobs(),
      [&](int i) {
        const auto at = static_cast<std::size_t>(i);
        try {
          section.checks[at] = compare_backends(setup, cases[at]);
        } catch (const std::exception& e) {
          section.checks[at] = {cases[at].name, Verdict::kFailed, e.what(), ""};
        }
      },
      [&](int done) { setup.progress(done, n, "fidelity"); });
  // Where the two differ and check says why is worth a line, though no failure.
  for (const Check& check : section.checks)
    if (check.verdict == Verdict::kPassed && !check.why.empty())
      section.notes.push_back(check.name + ": " + check.why);
  return section;
}

}  // namespace attn_diag::gpu_check
