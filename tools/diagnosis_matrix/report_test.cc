#include "tools/diagnosis_matrix/report.h"

#include "attn_diag/harness/error.h"
#include "harness/catch_for_tests.h"

namespace attn_diag::diagnosis_matrix {
namespace {

SingleResult result(const Bug& bug, const char* inputs, Outcome outcome) {
  SingleResult r;
  r.bug = &bug;
  r.kernel = "sequential";
  r.setting.inputs.name = inputs;
  r.outcome = outcome;
  return r;
}

const Target& find(const std::vector<Target>& all, const std::string& what) {
  for (const Target& target : all)
    if (target.what == what) return target;
  FAIL("no target " + what);
  return all.front();
}

TEST_CASE("targets count each input set, and bugs of after the freeze apart") {
  Bug before, after, strange;
  before.name = "before";
  before.hypotheses = {"a"};
  after.name = "after";
  after.hypotheses = {"b"};
  strange.after_freeze = true;
  after.after_freeze = true;
  Evidence evidence;
  for (int i = 0; i < 9; ++i) evidence.singles.push_back(result(before, "probe", Outcome::kName));
  evidence.singles.push_back(result(before, "probe", Outcome::kWrong));
  evidence.singles.push_back(result(before, "randn", Outcome::kClass));
  evidence.singles.push_back(result(after, "probe", Outcome::kHidden));
  for (const Outcome outcome : {Outcome::kNotKnown, Outcome::kWrong})
    evidence.singles.push_back(result(strange, "probe", outcome));
  const auto all = targets(evidence);

  const Target& right = find(all, "probe: right name or class");
  CHECK(right.count == 9);
  CHECK(right.of == 10);
  CHECK_FALSE(right.met());
  CHECK(find(all, "probe: detected").met());
  CHECK_FALSE(find(all, "probe: wrong name").met());
  CHECK(find(all, "randn: right name or class").met());
  CHECK_FALSE(find(all, "probe: detected, bugs written last").met());
  CHECK(find(all, "probe: wrong name, bugs written last").met());
  CHECK(find(all, "probe: detected, bugs written last").of == 1);
  const Target& named = find(all, "bugs that are not in the catalogue: given a name");
  CHECK(named.count == 1);
  CHECK(named.of == 2);
}

TEST_CASE("a target of which nothing was run is none") { CHECK(targets({}).empty()); }

TEST_CASE("a detection on a right kernel misses its target") {
  Evidence evidence;
  evidence.right = {100, {}};
  CHECK(find(targets(evidence), "right kernels: detections").met());
  evidence.right.detections = {"fa1"};
  CHECK_FALSE(find(targets(evidence), "right kernels: detections").met());
}

TEST_CASE("pairs in which one bug hides the other are not counted") {
  Evidence evidence;
  evidence.pairs.resize(3);
  evidence.pairs[0].outcome = PairOutcome::kBoth;
  evidence.pairs[1].is_masked = true;
  evidence.pairs[2].outcome = PairOutcome::kOne;
  const Target& both = find(targets(evidence), "two bugs: both named");
  CHECK(both.count == 1);
  CHECK(both.of == 2);
}

TEST_CASE("worse than before is what is named, and better or equal is not") {
  Bug bug;
  bug.name = "b";
  Evidence before;
  before.singles = {result(bug, "probe", Outcome::kClass), result(bug, "randn", Outcome::kHidden)};
  const auto json = to_json(before);
  Evidence now = before;
  CHECK(worse_than(now, json).empty());
  now.singles[0].outcome = Outcome::kName;
  CHECK(worse_than(now, json).empty());
  now.singles[0].outcome = Outcome::kUnknown;
  now.singles[1].outcome = Outcome::kWrong;
  CHECK(worse_than(now, json).size() == 2);

  bug.name = "new";
  CHECK_THROWS_AS(worse_than(now, json), Error);
}

}  // namespace
}  // namespace attn_diag::diagnosis_matrix
