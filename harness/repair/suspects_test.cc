// In which order edits are tried.
#include "harness/repair/suspects.h"

#include <algorithm>
#include <string>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::repair {
namespace {

const char* const kText =
    "__global__ void k(float* o, const float* q, int n, int m) {\n"
    "  if (n < m) o[n] = q[n];\n"
    "  n = n + 1;\n"
    "  __syncthreads();\n"
    "\n\n\n\n\n\n\n\n\n"
    "  if (m > n) o[m] = q[m];\n"
    "}\n";

struct Ordered {
  explicit Ordered(const Suspects& suspects)
      : program(take_apart({{"/x/src/k.cu", "k.cu", kText}})),
        edits(propose_edits(program)),
        order(ordered(program, edits, suspects)) {}

  // The place in the order of the first edit of a line, of any operation or of one.
  std::size_t first(int line, std::string_view operation = {}) const {
    const auto found = std::find_if(order.begin(), order.end(), [&](int i) {
      const Edit& e = edits[static_cast<std::size_t>(i)];
      return e.line == line && (operation.empty() || e.operation == operation);
    });
    return static_cast<std::size_t>(found - order.begin());
  }

  Program program;
  std::vector<Edit> edits;
  std::vector<int> order;
};

TEST_CASE("edits at a suspect come first, then those beside it") {
  Suspects suspects;
  suspects.by_lines = {{"src/k.cu", 14}};
  const Ordered there(suspects);
  CHECK(there.edits[static_cast<std::size_t>(there.order[0])].line == 14);
  CHECK(there.first(14, "relational operator") < there.first(2, "relational operator"));
  suspects.by_lines = {{"src/k.cu", 2}};
  const Ordered here(suspects);
  CHECK(here.first(2, "relational operator") < here.first(14, "relational operator"));
  CHECK(here.first(3, "arithmetic operator") < here.first(14, "arithmetic operator"));
  CHECK(here.order.size() == here.edits.size());
}

TEST_CASE("large edits of what is seldom wrong come behind small ones anywhere") {
  Suspects suspects;
  suspects.by_lines = {{"k.cu", 14}};
  const Ordered there(suspects);
  std::size_t odd = 0;
  for (std::size_t i = 0; i < there.order.size(); ++i) {
    const Edit& e = there.edits[static_cast<std::size_t>(there.order[i])];
    if (e.tier < 2 || e.size < 6) continue;
    ++odd;
    CHECK(there.first(2, "relational operator") < i);
  }
  CHECK(odd > 10);
}

TEST_CASE("a file is known by the end of its path, not by a part of a name") {
  Suspects suspects;
  suspects.by_check = {{"/other/place/k.cu", 14}, {"c/k.cu", 14}, {"k.cu.bak", 14}};
  CHECK(Ordered(suspects).order == Ordered(Suspects()).order);
  suspects.by_check = {{"/x/src/k.cu", 14}};
  CHECK(Ordered(suspects).order != Ordered(Suspects()).order);
}

TEST_CASE("lines that the user names stand alone, and check comes before lines of wrong numbers") {
  Suspects suspects;
  suspects.by_lines = {{"k.cu", 3}, {"k.cu", 4}};
  suspects.by_check = {{"k.cu", 4}};
  CHECK(suspects.in_order() == std::vector<SourcePlace>{{"k.cu", 4}, {"k.cu", 3}});
  suspects.by_user = {{"k.cu", 14}};
  CHECK(suspects.in_order() == std::vector<SourcePlace>{{"k.cu", 14}});
}

TEST_CASE("where threads do not wait for each other barriers are tried earlier") {
  Suspects suspects;
  suspects.by_check = {{"k.cu", 2}};
  const std::size_t before = Ordered(suspects).first(3, kBarrierOperation);
  suspects.order = true;
  CHECK(Ordered(suspects).first(3, kBarrierOperation) < before);
}

TEST_CASE("a verdict keeps its places between processes") {
  TrialVerdict verdict;
  verdict.what = "check finds 1";
  verdict.order = true;
  verdict.places = {{"/x/k.cu", 7}, {"y.cuh", 1}};
  const Bytes bytes = to_bytes(verdict);
  WireReader from(bytes);
  const TrialVerdict back = verdict_of(from);
  CHECK(back.what == verdict.what);
  CHECK(back.order);
  CHECK_FALSE(back.agrees);
  CHECK(back.places == verdict.places);
}

}  // namespace
}  // namespace attn_diag::repair
