// Findings name elements by the extents that the source declares.
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/check/array_shape.h"
#include "harness/host/check/element_kernels.h"
#include "harness/host/sanitizer.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::host {
namespace {

using checked::Wrong;

std::vector<CheckFinding> all_found(Wrong wrong) {
  std::vector<int> out(64);
  LaunchOptions options;
  options.check = CheckOptions{};
  const LaunchScope scope(options);
  register_memory(out.data(), out.size() * sizeof(int), "out", false);
  REQUIRE(checked::goes_wrong(wrong, out.data(), 1) == cudaSuccess);
  return scope.report().check.findings;
}

CheckFinding found(Wrong wrong) {
  const std::vector<CheckFinding> findings = all_found(wrong);
  CAPTURE(static_cast<int>(wrong));
  REQUIRE(!findings.empty());
  return findings.front();
}

// "race sRows[3][5]", and what of the element where it is not its begin.
std::string element(Wrong wrong) {
  const CheckFinding f = found(wrong);
  std::string text = std::string(name(f.kind)) + ' ' + f.element;
  if (f.byte_of_element != 0) text += " byte " + std::to_string(f.byte_of_element);
  if (!f.extents.empty()) text += " of " + f.array + f.extents;
  return text;
}

}  // namespace

TEST_CASE("an element is named by its indices") {
  CHECK(element(Wrong::kRaceInRows) == "race sRows[3][5] of sRows[30][33]");
  CHECK(element(Wrong::kRaceInStructs) == "race sPairs[3] byte 4 of sPairs[8]");
  CHECK(element(Wrong::kRaceInVariable) == "race g_table[2][1] of g_table[4][8]");
  CHECK(element(Wrong::kLocalUnset) == "uninitialised-read rSums[1][2] of rSums[4][8]");
}

#if !defined(ATTN_DIAG_HOST_ASAN)  // whose runtime ends the run at an index out of bounds
TEST_CASE("what is past the end is named as if there were more rows") {
  CHECK(element(Wrong::kRowPast) == "out-of-bounds g_table[4][0] of g_table[4][8]");
  CHECK(element(Wrong::kLocalLoop) == "out-of-bounds rSums[4][0] of rSums[4][8]");
  CHECK(element(Wrong::kLocalPointer) == "out-of-bounds rSums[4][0] of rSums[4][8]");
}

TEST_CASE("an index past the end of an array is one of a variable") {
  CHECK(element(Wrong::kInnerIndex) == "out-of-bounds sRows[3][33] of sRows[30][33]");
  CHECK(element(Wrong::kOuterIndex) == "out-of-bounds sRows[30] of sRows[30][33]");
  CHECK(element(Wrong::kLocalIndex) == "out-of-bounds rSums[2][8] of rSums[4][8]");
  CHECK(element(Wrong::kReferenceIndex) == "out-of-bounds row[8] of row[8]");
  const CheckFinding inner = found(Wrong::kInnerIndex);
  CHECK(inner.array == "sRows");
  CHECK(inner.message ==
        "index 33 is past the end of an array of type 'int[33]': sRows[3][33], declared "
        "sRows[30][33]");
}

TEST_CASE("kernels go over all rows of an array by one index") {
  CHECK(all_found(Wrong::kFlatIndex).empty());
  CHECK(all_found(Wrong::kLocalFlat).empty());
  CHECK(
      found(Wrong::kFlatPast).message.starts_with("index 991 is past the end of an array of type"));
  CHECK(found(Wrong::kFlatRowPast).message ==
        "index 990 is past the end of an array of type 'int[33]' within sRows");
  CHECK(all_found(Wrong::kFlatPointer).empty());
}

TEST_CASE("an index below 0 is not said to be past the end") {
  CHECK(found(Wrong::kIndexBefore).message ==
        "index -1 is before the beginning of an array of type 'int[30][33]': sRows[-1], declared "
        "sRows[30][33]");
}

TEST_CASE("an index of a matrix row that lanes pass and nobody looks at is no error") {
  CHECK(all_found(Wrong::kIgnoredIndex).empty());
  const CheckFinding used = found(Wrong::kMatrixIndex);
  CHECK(used.element == "sTile[1][24]");
  CHECK(used.access.thread[0] == 9);
  CHECK(used.folded == 0);
}

TEST_CASE("of an index into something else no element is named") {
  const CheckFinding member = found(Wrong::kMemberIndex);
  CHECK(member.element.empty());
  CHECK(member.message == "index 4 is past the end of an array of type 'int[4]' within sMember");
  // What it points to may be a part of any array.
  CHECK(found(Wrong::kPointerIndex).message ==
        "index 8 is past the end of an array of type 'int[8]'");
  // LLVM calls it otherwise than the source.
  CHECK(found(Wrong::kSecondOfName).message ==
        "index 4 is past the end of an array of type 'int[4]'");
}
#endif

TEST_CASE("shapes as symbols have them") {
  CHECK(parse_shape("30x32x4").declared() == "[30][32]");
  CHECK(parse_shape("30x32x4").element_bytes == 4);
  for (const char* text : {"", "4", "x4", "30x", "0x4", "30x0", "30x4k", "30 x 4"}) {
    CAPTURE(text);
    CHECK(!parse_shape(text).is_known());
  }
  CHECK(element_at(parse_shape("30x32x4"), 4 * 32 * 2 + 7).indices == "[2][1]");
  CHECK(element_at(parse_shape("30x32x4"), 4 * 32 * 2 + 7).byte == 3);
  CHECK(element_at(parse_shape("30x32x4"), -1).indices == "[-1][31]");
  CHECK(element_at(parse_shape("30x32x4"), -1).byte == 3);
}

}  // namespace attn_diag::host
