#include "harness/shrink/failure.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::shrink {
namespace {

Failure wrong(Tensor tensor, WrongAs as) {
  Failure f;
  f.kind = FailureKind::kWrong;
  f.tensor = tensor;
  f.as = as;
  return f;
}

TEST_CASE("a failure is the same where its tensor, and how it is wrong, are") {
  const Failure o = wrong(Tensor::kO, WrongAs::kNumbers);
  CHECK(o.same_as(wrong(Tensor::kO, WrongAs::kNumbers)));
  CHECK_FALSE(o.same_as(wrong(Tensor::kLse, WrongAs::kNumbers)));
  CHECK_FALSE(o.same_as(wrong(Tensor::kO, WrongAs::kNaN)));
  Failure elsewhere = o;
  elsewhere.row = {0, 1, 5};
  elsewhere.what = "o is wrong";
  CHECK(o.same_as(elsewhere));
  Failure moves = o;
  moves.moves = true;
  CHECK_FALSE(o.same_as(moves));
  CHECK_FALSE(o.same_as(Failure()));
}

TEST_CASE("a line is held where one was told") {
  Failure here = wrong(Tensor::kO, WrongAs::kNumbers), there = here, nowhere = here;
  here.line = "k.cu:4";
  there.line = "k.cu:5";
  CHECK(here.same_as(here));
  CHECK_FALSE(here.same_as(there));
  CHECK_FALSE(here.same_as(nowhere));
  CHECK(nowhere.same_as(here));
}

TEST_CASE("errors are of one kind whatever their numbers are") {
  const auto kind = [](const std::string& message) { return kind_of_error(message); };
  CHECK(kind("x wrote outside o: first at byte 128 of a buffer of 4096 bytes. Check it.") ==
        kind("x wrote outside o: first at byte -8 of a buffer of 64 bytes. Check it."));
  CHECK(kind("x wrote outside o: first at byte 1") != kind("x wrote outside lse: first at byte 1"));
  CHECK(kind("threads 0-31, 64 (and 7 more) of block (1, 0, 0) wait at k.cu:12.") ==
        kind("threads 3 (and more) of block (0, 2, 0) wait at k.cu:9. Look there."));
  CHECK(kind("load of 0x7ffe12ab") == kind("load of 0x1c"));
  CHECK(kind("fa1 stores") != kind("fa2 stores"));  // a name is no number
}

TEST_CASE("a failure comes through a pipe as it is") {
  Failure f = wrong(Tensor::kMergedO, WrongAs::kWrittenTwice);
  f.moves = true;
  f.error_kind = "e";
  f.line = "k.cu:7";
  f.what = "w";
  f.row = {1, -1, 1000};
  const Bytes bytes = to_bytes(f);
  WireReader from(bytes);
  const Failure again = failure_from(from);
  CHECK(f.same_as(again));
  CHECK(again.line == f.line);
  CHECK(again.what == f.what);
  CHECK(again.row == f.row);
}

}  // namespace
}  // namespace attn_diag::shrink
