// Bugs in the code for some tiles or rows alone are named with their place.
#include <algorithm>
#include <string>

#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/testing/buggy_capture.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using testing::BuggyCase;

reference::NamedPlace place_named(const std::vector<reference::NamedPlace>& places,
                                  const std::string& name) {
  for (const reference::NamedPlace& place : places)
    if (place.name == name) return place;
  FAIL("no place " << name);
  return {};
}

// The first variant of a bug, a fitted parameter at the value, in a place.
reference::Variant bug_in(const BuggyCase& c, const std::string& id, double value,
                          const reference::NamedPlace& place) {
  const auto variants = reference::find_hypothesis(id)->variants(testing::data_of(c));
  REQUIRE_FALSE(variants.empty());
  const auto variant = in_place(variants.front().at(value), place);
  REQUIRE(variant.has_value());
  return *variant;
}

Diagnosis diagnose_singly(const Capture& capture) {
  DiagnoseOptions options;
  options.threads = 1;
  options.pairs = false;
  return diagnose(capture, options);
}

void check_named(const BuggyCase& c, const reference::Variant& bug, bool stages,
                 const std::string& label) {
  const Capture capture = testing::buggy_capture(c, bug.deviation, stages);
  const Diagnosis diagnosis = diagnose_singly(capture);
  INFO(bug.label());
  REQUIRE_FALSE(diagnosis.best.empty());
  CHECK(diagnosis.verdict == DiagnosisVerdict::kNamed);
  CHECK(diagnosis.best.front().label == label);
  CHECK(diagnosis.best.front().confirmed);
  const auto& parameters = diagnosis.best.front().parts.front().parameters;
  CHECK(std::any_of(parameters.begin(), parameters.end(), [&](const reference::ParameterValue& p) {
    return p.name == "only in" && p.named == bug.where;
  }));
}

}  // namespace

TEST_CASE("a bug of scores on tiles that the mask cuts is named with its place") {
  const BuggyCase c = testing::buggy_case();
  const auto places = reference::tile_places(c.problem, c.geometry);
  const auto place = place_named(places, "tiles in which the mask hides a key");
  const reference::Variant bug = bug_in(c, "temperature", 0.25, place);
  for (const bool stages : {false, true})
    check_named(c, bug, stages,
                "temperature(kappa = softmax_scale: the scale is applied twice, only in = tiles in "
                "which the mask hides a key)");
}

TEST_CASE("a fitted parameter is found in its place") {
  const BuggyCase c = testing::buggy_case();
  const auto places = reference::tile_places(c.problem, c.geometry);
  const auto place = place_named(places, "tiles in which the mask hides no key");
  const Capture capture =
      testing::buggy_capture(c, bug_in(c, "temperature", 1.37, place).deviation, true);
  const Diagnosis diagnosis = diagnose_singly(capture);
  REQUIRE(diagnosis.verdict == DiagnosisVerdict::kNamed);
  const Match& match = diagnosis.best.front();
  CHECK(match.parts.front().id == "temperature");
  CHECK(match.parts.front().parameters.front().value == Approx(1.37).epsilon(1e-3));
  CHECK(match.label.find("hides no key") != std::string::npos);
}

TEST_CASE("a bug in one head or in the last query tile is named with its place") {
  const BuggyCase c = testing::buggy_case();
  const auto places = reference::row_places(c.problem, c.geometry);
  check_named(c, bug_in(c, "l-missing", 0, place_named(places, "head 1, the last")), false,
              "l-missing(only in = head 1, the last)");
  check_named(c, bug_in(c, "l-missing", 0, place_named(places, "query tile 2, the last")), true,
              "l-missing(only in = query tile 2, the last)");
}

TEST_CASE("rows that no place describes have no name in one") {
  const BuggyCase c = testing::buggy_case();
  // Wrong in queries 5 to 11 of every 32.
  const reference::NamedPlace strange{
      {reference::TilePlace::kAll, {reference::RowAxis::kRowOfTile, 32, 5, 12}}, "nowhere"};
  const Capture capture =
      testing::buggy_capture(c, bug_in(c, "l-missing", 0, strange).deviation, false);
  const Diagnosis diagnosis = diagnose_singly(capture);
  CHECK(diagnosis.verdict != DiagnosisVerdict::kNamed);
  CHECK(diagnosis.verdict != DiagnosisVerdict::kClass);
}

}  // namespace attn_diag
