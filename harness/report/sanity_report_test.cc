#include "harness/report/sanity_report.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

Sanity moved_by(GivenMemory memory) {
  Sanity s;
  s.finding = SanityFinding::kReadsUnwritten;
  s.runs = 19;
  Repetition::Cell cell;
  cell.tensor = Tensor::kO;
  cell.index = {0, 1, 2, 3, 0};
  cell.first = 0.25;
  cell.second = 0.5;
  s.culprits = {{memory, 0x77, 12, cell, ""}};
  s.detail = "With large finite numbers 12 cells differ.";
  return s;
}

}  // namespace

TEST_CASE("a result that depends on unwritten memory is named after that memory") {
  CHECK(sanity_headline(moved_by(GivenMemory::kWorkspace)) ==
        "the result depends on what was in the workspace before the run: an uninitialised read");
  CHECK(sanity_headline(moved_by(GivenMemory::kAllocated)) ==
        "the result depends on what was in memory from cudaMalloc before the run: an uninitialised "
        "read, or "
        "cells of o or lse that nothing stores");
  CHECK_THAT(sanity_headline(moved_by(GivenMemory::kAroundV)),
             contains("in the bytes around v before the run: a read outside the buffer"));
  CHECK_THAT(sanity_headline(moved_by(GivenMemory::kOutput)), contains("never written, or read"));
  Sanity race;
  race.finding = SanityFinding::kMoves;
  CHECK(sanity_headline(race) ==
        "the result moves from run to run: a race, or a read of memory that is not the kernel's");
  race.finding = SanityFinding::kDependsOnOrder;
  CHECK_THAT(sanity_headline(race),
             contains("the order in which threads run: a race, or a read of"));
  CHECK(sanity_headline({}).empty());
}

TEST_CASE("what check finds says why a result moves") {
  Sanity s = moved_by(GivenMemory::kAllocated);
  s.checked = Sanity::Checked{};
  CHECK_THAT(sanity_headline(s), contains("cells of o or lse that nothing stores"));
  s.checked->other = "an index is too large";
  CHECK_THAT(sanity_headline(s), contains("check finds this: an index is too large"));
  s.checked->unwritten = true;
  CHECK_THAT(sanity_headline(s), Catch::Matchers::EndsWith(": an uninitialised read"));
  s.finding = SanityFinding::kDependsOnOrder;
  CHECK_THAT(sanity_headline(s),
             Catch::Matchers::EndsWith("threads run: a read of what nobody wrote"));
  s.checked->early_copy = true;
  CHECK_THAT(
      sanity_headline(s),
      Catch::Matchers::EndsWith("threads run: an asynchronous copy is used before it has landed"));
  s.checked->race = true;
  CHECK_THAT(sanity_headline(s), Catch::Matchers::EndsWith("threads run: a race"));
  s.by_copies = true;
  CHECK_THAT(sanity_headline(s), contains("depends on when asynchronous copies land"));
  CHECK_THAT(sanity_headline(s), !contains("order"));
  s = moved_by(GivenMemory::kShared);
  s.checked = Sanity::Checked{};
  CHECK_THAT(sanity_headline(s), contains("an uninitialised read, or one before another thread"));
  s.checked->early_copy = true;
  CHECK_THAT(sanity_headline(s), contains("an asynchronous copy is used before it has landed"));
  s = moved_by(GivenMemory::kAllocated);
  s.finding = SanityFinding::kDependsOnOrder;
  s.checked = Sanity::Checked{};
  CHECK_THAT(sanity_headline(s), Catch::Matchers::EndsWith("though attn-diag check finds neither"));
  s.checked->other = "an index is too large";
  CHECK_THAT(sanity_headline(s),
             Catch::Matchers::EndsWith("attn-diag check finds this: an index is too large"));
}

TEST_CASE(
    "a result that moves within its bounds depends on the order of arrival and is no certain "
    "race") {
  for (const SanityFinding finding : {SanityFinding::kDependsOnOrder, SanityFinding::kMoves}) {
    Sanity s;
    s.finding = finding;
    s.within_bounds = true;
    CHECK_THAT(sanity_headline(s), contains("the order in which threads or blocks arrive") &&
                                       contains("within rounding") && !contains("race"));
    CHECK(standing_text(s).empty());
    CHECK_FALSE(s.unsound());
    const std::string text = sanity_text(s, "attn-diag check x", {});
    CHECK_THAT(text, contains("Sums by atomics or under a lock do so, and races whose effect"));
    CHECK_THAT(text, contains("Is it a race? attn-diag check x"));
    CHECK_THAT(text, !contains("What follows is one of the results"));
    CHECK(to_json(s, "c")["within_bounds"] == true);
  }
}

TEST_CASE("of a result that moves it is said what a GPU most likely makes of it") {
  Sanity s = moved_by(GivenMemory::kWorkspace);
  CHECK(standing_text(s).empty());  // not known
  s.calm = Sanity::Calm{"forward", {}, true, "with zeros in the workspace"};
  s.on_gpu = OnGpu::kRight;
  CHECK(s.latent());
  CHECK(standing_text(s) ==
        "; right with zeros in the workspace, and so most likely on a GPU today, but not in memory "
        "that was used before");
  CHECK(to_json(s, "c")["latent"] == true);
  CHECK(to_json(s, "c")["on_gpu"] == "right");
  s.on_gpu = OnGpu::kWrong;
  CHECK_FALSE(s.latent());
  CHECK_THAT(standing_text(s), contains("but most likely wrong on a GPU"));
  s.calm->right = false;
  CHECK_THAT(standing_text(s), contains("wrong with zeros in the workspace, too"));
  s.on_gpu = OnGpu::kEither;
  CHECK_FALSE(s.latent());
  CHECK_THAT(standing_text(s), contains("but not if warps come in another order"));
  CHECK(to_json(s, "c")["on_gpu"] == "either");
  CHECK(standing_text(s, "reduce diverges first") ==
        "; with zeros in the workspace, where it holds still, reduce diverges first");
  CHECK(to_json(s, "c")["calm"]["right"] == false);
}

TEST_CASE("what moves comes with the command that finds the lines, what holds still without") {
  const std::string text = sanity_text(moved_by(GivenMemory::kWorkspace), "attn-diag check x", {});
  CHECK_THAT(text, contains("12 cells differ"));
  CHECK_THAT(text, contains("Find the lines: attn-diag check x"));
  Sanity steady;
  steady.finding = SanityFinding::kSteady;
  steady.detail = "The same bits.";
  CHECK(sanity_text(steady, "attn-diag check x", {}) == "  The same bits.\n");
  CHECK(sanity_text({}, "attn-diag check x", {}).empty());
}

TEST_CASE("gate 0 in JSON has the finding as a word and each memory with its first cell") {
  const Json j = to_json(moved_by(GivenMemory::kWorkspace), "c");
  CHECK(j["finding"] == "reads_unwritten");
  CHECK(j["memories"][0]["memory"] == "the workspace");
  CHECK(j["memories"][0]["filled_with"] == "0x77");
  CHECK(j["memories"][0]["index"] == "(0, 1, 2, 3)");
  CHECK(j["find_the_lines"] == "c");
  const Json none = to_json(Sanity{}, "c");
  CHECK(none["finding"] == "not_checked");
  CHECK(none["headline"].is_null());
  CHECK(none["find_the_lines"].is_null());
}

}  // namespace attn_diag::report
