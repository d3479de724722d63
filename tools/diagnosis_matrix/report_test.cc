#include "tools/diagnosis_matrix/report.h"

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

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
  strange.frozen_at = after.frozen_at = "c0ffee1";
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
  CHECK_FALSE(find(all, "probe: detected, bugs written after c0ffee1, today").met());
  CHECK(find(all, "probe: wrong name, bugs written after c0ffee1, today").met());
  CHECK(find(all, "probe: detected, bugs written after c0ffee1, today").of == 1);
  const Target& named = find(all, "bugs that are not in the catalogue: given a name");
  CHECK(named.count == 1);
  CHECK(named.of == 2);
}

TEST_CASE("first answers are of bugs written after their commit alone and counted beside today's") {
  Records records;
  records.bugs.resize(2);
  records.bugs[0].name = "early";
  records.bugs[1].name = "late";
  for (Bug& bug : records.bugs) {
    bug.formula = "F1";
    bug.hypotheses = {"a"};
  }
  records.bugs[1].frozen_at = "c0ffee1";
  const auto then = nlohmann::ordered_json::parse(R"({"commit": "c0ffee1", "bugs": {
      "split.early": {"probe fp16 stages": "wrong"},
      "split.late": {"probe fp16 stages": "name", "probe bf16 outputs": "unknown"},
      "wmma.late": {"randn fp16 outputs": "wrong"}}})");
  Evidence evidence;
  evidence.first_answers.push_back(read_first_answers(then, records));
  CHECK(evidence.first_answers.front().answers.size() == 3);
  evidence.singles.push_back(result(records.bugs[1], "probe", Outcome::kName));

  const auto all = targets(evidence);
  const Target& first =
      find(all, "probe: right name or class, bugs written after c0ffee1, when first asked");
  CHECK(first.count == 1);
  CHECK(first.of == 2);
  CHECK(first.is_past);
  CHECK(find(all, "all inputs: wrong name, bugs written after c0ffee1, when first asked").count ==
        1);
  const Target& today = find(all, "probe: right name or class, bugs written after c0ffee1, today");
  CHECK(today.met());
  CHECK_FALSE(today.is_past);
  const std::string page = to_markdown(evidence, records);
  CHECK(page.find("1 name, 1 unknown, 1 wrong |\n") != std::string::npos);
  CHECK(page.find("c0ffee1") != std::string::npos);
}

TEST_CASE(
    "bugs written after different commits are counted apart, and first answers to unknown ones are "
    "not right") {
  Records records;
  records.bugs.resize(2);
  records.bugs[0].name = "known";
  records.bugs[0].hypotheses = {"a"};
  records.bugs[0].frozen_at = "c0ffee1";
  records.bugs[1].name = "strange";
  records.bugs[1].frozen_at = "c0ffee2";
  for (Bug& bug : records.bugs) bug.formula = "F1";
  Evidence evidence;
  for (const char* commit : {"c0ffee1", "c0ffee2"})
    evidence.first_answers.push_back(
        read_first_answers({{"commit", commit},
                            {"bugs",
                             {{"split.known", {{"probe fp16 stages", "name"}}},
                              {"split.strange", {{"probe fp16 stages", "not known"}}}}}},
                           records));
  CHECK(freezes(evidence) == std::vector<std::string>{"c0ffee1", "c0ffee2"});
  const auto all = targets(evidence);
  const std::string right = "probe: right name or class, bugs written after ";
  const Target& known = find(all, right + "c0ffee1, when first asked");
  CHECK(known.count == 1);
  CHECK(known.of == 1);
  const Target& strange = find(all, right + "c0ffee2, when first asked");
  CHECK(strange.count == 0);
  CHECK(strange.of == 1);
  const std::string page = to_markdown(evidence, records);
  CHECK(page.find("## Bugs written after c0ffee1\n") <
        page.find("## Bugs written after c0ffee2\n"));
}

TEST_CASE("first answers that are none are refused") {
  const Records records{{[] {
                          Bug bug;
                          bug.name = "late";
                          bug.frozen_at = "a";
                          return bug;
                        }()},
                        {}};
  const auto read = [&](const char* text) {
    return read_first_answers(nlohmann::ordered_json::parse(text), records);
  };
  CHECK_THROWS_AS(read("{}"), Error);
  CHECK_THROWS_AS(read(R"({"commit": null, "bugs": {}})"), Error);
  CHECK_THROWS_AS(
      read(R"({"commit": "a", "bugs": {"split.late": {"probe fp16 stages": "maybe"}}})"), Error);
  CHECK_THROWS_AS(read(R"({"commit": "a", "bugs": {"split.late": {"ones fp16": "name"}}})"), Error);
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
