#include "tools/gpu_check/child.h"

#include <atomic>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"
#include "tools/gpu_check/parallel.h"

namespace attn_diag::gpu_check {
namespace {

TEST_CASE("both streams and the exit code of a child come back") {
  const ChildResult result = run_child({"sh", "-c", "echo out; echo err >&2; exit 3"}, 60);
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
  CHECK(result.exit_code == 3);
  CHECK(result.trouble({0, 3}).empty());
  CHECK(result.trouble({0}) == "ended with exit code 3: err");
}

TEST_CASE("more output than a pipe holds does not block the child") {
  const ChildResult result = run_child(
      {"sh", "-c", "i=0; while [ $i -lt 3000 ]; do printf '%0100d' $i; i=$((i+1)); done"}, 60);
  CHECK(result.exit_code == 0);
  CHECK(result.out.size() == 300000);
}

TEST_CASE("a child that dies of a signal is not one that ended well") {
  const ChildResult result = run_child({"sh", "-c", "kill -SEGV $$"}, 60);
  CHECK(result.signal == 11);
  CHECK_THAT(result.trouble({0}), contains("signal 11"));
}

TEST_CASE("a child that takes too long is stopped") {
  const ChildResult result = run_child({"sleep", "1000"}, 0.2);
  CHECK(result.timed_out);
  CHECK_THAT(result.trouble({0}), contains("took too long"));
}

TEST_CASE("a program that does not exist is an error with its name") {
  CHECK_THROWS_AS(run_child({"/nonexistent/program"}, 1), Error);
}

TEST_CASE("everything is done once, whatever the number of jobs") {
  for (const int jobs : {1, 3, 100}) {
    std::vector<std::atomic<int>> done(20);
    int reported = 0;
    parallel(
        20, jobs, [&](int i) { ++done[static_cast<std::size_t>(i)]; },
        [&](int n) { reported = n; });
    CHECK(reported == 20);
    for (const std::atomic<int>& one : done) CHECK(one == 1);
  }
  parallel(
      0, 4, [](int) { FAIL("nothing to do"); }, [](int) {});
}

}  // namespace
}  // namespace attn_diag::gpu_check
