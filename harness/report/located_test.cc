// Findings with a place, as compilers, GitHub and SARIF say them.
#include "harness/report/located.h"

#include <set>
#include <string>

#include "harness/report/words.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

host::CheckFinding race() {
  host::CheckFinding f;
  f.kind = host::CheckKind::kRace;
  f.array = "sK";
  f.message = "two threads access the same bytes";
  f.advice = "Put a barrier between them";
  f.access.bytes = 4;
  f.access.places = {{"/home/a b/src/k.cu", 12, "load"}, {"/home/a b/src/k.cu", 40, "kernel"}};
  f.has_other = true;
  f.other.bytes = 2;
  f.other.write = true;
  f.other.places = {{"/usr/include/tile.h", 7, "store"}};
  return f;
}

CheckView view_of(const host::CheckFinding& finding) {
  CheckView view;
  view.result.report.findings = {finding};
  return view;
}

TEST_CASE("a race in the words of a compiler: the line, the other one, and the calls around") {
  CHECK(gcc_text(located(view_of(race())), "/home/a b") ==
        "src/k.cu:12: error: sK: two threads access the same bytes. Put a barrier between them. "
        "[race]\n"
        "src/k.cu:40: note: called from here\n"
        "/usr/include/tile.h:7: note: and, before it, write of 2 bytes here\n");
}

TEST_CASE("latent findings are warnings, benign ones notes, those accepted are left out") {
  host::CheckFinding f = race();
  f.severity = host::Severity::kLatent;
  CHECK(gcc_text(located(view_of(f)), "/").find(": warning: latent: sK") != std::string::npos);
  f.severity = host::Severity::kBenign;
  CHECK(gcc_text(located(view_of(f)), "/").find(":12: note: ") != std::string::npos);
  CheckView view;
  view.suppressed.push_back({race(), "measured: harmless", 3});
  CHECK(gcc_text(located(view), "/").empty());
  CHECK(github_text(located(view), "/").empty());
  const Json log = sarif(located(view), {"1", "attn-diag check", "/", 0});
  CHECK(log["runs"][0]["results"][0]["suppressions"][0]["justification"] == "measured: harmless");
}

TEST_CASE("a finding without a file begins as a compiler's message without one") {
  CHECK(gcc_text({unplaced("diverges", "two\nlines")}, "/") ==
        "attn-diag: error: two lines [diverges]\n");
  CHECK(github_text({unplaced("diverges", "x")}, "/") ==
        "::error title=attn-diag%3A diverges::x\n");
}

TEST_CASE("GitHub's escapes: % CR LF in messages, also : and , in properties") {
  LocatedFinding f = unplaced("race", "50 % of a,b: c\r\nd");
  f.place.file = "/w/a,b:c%.cu";
  f.place.line = 3;
  f.place.column = 9;
  CHECK(github_text({f}, "/w") ==
        "::error file=a%2Cb%3Ac%25.cu,line=3,col=9,title=attn-diag%3A race::50 %25 of a,b: "
        "c%0D%0Ad\n");
  f.level = LocatedFinding::Level::kNote;
  CHECK(github_text({f}, "/w").starts_with("::notice "));
}

TEST_CASE("only what lies below the folder becomes relative") {
  CHECK(file_below("/a/b/c.cu", "/a") == "b/c.cu");
  CHECK(file_below("/a/./b/../c.cu", "/a/") == "c.cu");
  CHECK(file_below("/ab/c.cu", "/a") == "/ab/c.cu");
  CHECK(file_below("c.cu", "/a") == "c.cu");
}

TEST_CASE(
    "a file that was compiled from another folder goes by the path that the library has, if that "
    "is one") {
  CheckView view = view_of(race());
  view.result.report.findings[0].access.places = {{"src/./k.cu", 12, "load"}};
  view.result.report.findings[0].has_other = false;
  const auto place = [&] { return located(view)[0].place.file; };
  CHECK(place() == "src/./k.cu");
  view.result.provenance.sources = {{"/else/where/other_k.cu"}, {"/else/where/src/k.cu"}};
  CHECK(place() == "/else/where/src/k.cu");
  view.result.provenance.sources.push_back({"/third/src/k.cu"});
  CHECK(place() == "src/./k.cu");
}

TEST_CASE("SARIF: rules are explained, places are URIs, both lines of a race are there") {
  CheckView view = view_of(race());
  host::CheckFinding read = race();
  read.kind = host::CheckKind::kUninitialisedRead;
  read.has_other = false;
  view.result.report.findings.push_back(read);
  view.result.report.findings.push_back(race());
  const Json log = sarif(located(view), {"1.2", "attn-diag check", "/home/a b", 1});
  CHECK(log["version"] == "2.1.0");
  REQUIRE(log["runs"].size() == 1);
  const Json& run = log["runs"][0];
  CHECK(run["invocations"][0]["executionSuccessful"] == true);
  CHECK(run["originalUriBaseIds"]["SRCROOT"]["uri"] == "file:///home/a%20b/");
  const Json& rules = run["tool"]["driver"]["rules"];
  REQUIRE(rules.size() == 2);
  CHECK(rules[1]["id"] == "uninitialised-read");
  CHECK(rules[0]["fullDescription"]["text"] == find_word("race")->meaning);
  REQUIRE(run["results"].size() == 3);
  CHECK(run["results"][2]["ruleIndex"] == 0);
  const Json& first = run["results"][0];
  CHECK(first["level"] == "error");
  const Json& place = first["locations"][0]["physicalLocation"];
  CHECK(place["artifactLocation"]["uri"] == "src/k.cu");
  CHECK(place["artifactLocation"]["uriBaseId"] == "SRCROOT");
  CHECK(place["region"]["startLine"] == 12);
  CHECK(!place["region"].contains("startColumn"));
  REQUIRE(first["relatedLocations"].size() == 2);
  const Json& other = first["relatedLocations"][1];
  CHECK(other["physicalLocation"]["artifactLocation"]["uri"] == "file:///usr/include/tile.h");
  CHECK(!other["physicalLocation"]["artifactLocation"].contains("uriBaseId"));
  CHECK(other["message"]["text"] == "and, before it, write of 2 bytes here");
}

TEST_CASE("SARIF of nothing found has a run without results; of what failed it says so") {
  const Json clean = sarif({}, {"1", "x", "/", 0});
  CHECK(clean["runs"][0]["results"].empty());
  CHECK(clean["runs"][0]["results"].is_array());
  CHECK(sarif({}, {"1", "x", "/", 2})["runs"][0]["invocations"][0]["executionSuccessful"] == false);
}

LineDivergence lines_with(LineAnswer answer) {
  LineDivergence lines;
  lines.answer = answer;
  lines.what = "o of query 5 lacks key 3";
  lines.reason = "the first of these lines is the likeliest";
  lines.suspects = {{{"/w/k.cu", "kernel", 9, 5, "l += p;", "l"}, "adds a key twice"},
                    {{"/w/k.cu", "kernel", 4, 0, "int n = 3;", "n"}, "decides which keys"}};
  return lines;
}

TEST_CASE(
    "the line of a trace: an error where it is sure, else a warning; the other suspects are "
    "notes") {
  CHECK(gcc_text(located(lines_with(LineAnswer::kLine), "refused", {}), "/w") ==
        "k.cu:9:5: error: o of query 5 lacks key 3: adds a key twice. refused [wrong-line]\n"
        "k.cu:4: note: decides which keys\n");
  const std::string unsure =
      gcc_text(located(lines_with(LineAnswer::kUnsure), "refused", {}), "/w");
  CHECK(unsure.starts_with("k.cu:9:5: warning: not sure, likely: "));
  CHECK(unsure.find("[likely-line]") != std::string::npos);
  LineDivergence none;
  CHECK(gcc_text(located(none, "it wrote outside o", {}), "/w") ==
        "attn-diag: error: it wrote outside o [could_not_compare]\n");
}

TEST_CASE("every word is explained, and every finding of check is a word") {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Word& word : words()) {
    INFO(word.kind << ' ' << word.word);
    CHECK(seen.insert({word.kind, word.word}).second);
    CHECK(word.meaning.ends_with('.'));
    CHECK((word.advice.empty() || word.advice.ends_with('.')));
  }
  for (int i = 0; i < host::kNumCheckKinds; ++i) {
    const auto kind = static_cast<host::CheckKind>(i);
    REQUIRE(find_word(host::name(kind)));
    CHECK(find_word(host::name(kind))->kind == "finding of check");
  }
  for (const host::Severity s :
       {host::Severity::kError, host::Severity::kLatent, host::Severity::kBenign})
    CHECK(find_word(host::name(s)));
}

TEST_CASE("words are found whatever their capitals, unless two differ by these alone") {
  CHECK(find_word("Could-Not-Compare")->word == "could_not_compare");
  CHECK(find_words("P").size() == 1);
  CHECK(find_words("P")[0].kind == "tensor");
  CHECK(!find_word("no-such-word"));
}

}  // namespace
}  // namespace attn_diag::report
