#include "tools/gpu_check/child.h"

#include <atomic>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::gpu_check {
namespace {

TEST_CASE("a child that ended well is no trouble; of any other it is said how it ended") {
  const ProcessResult ended = run_child({"sh", "-c", "echo err >&2; exit 3"}, 60);
  CHECK(trouble_of(ended, {0, 3}).empty());
  CHECK(trouble_of(ended, {0}) == "ended with exit code 3: err");
  CHECK_THAT(trouble_of(run_child({"sh", "-c", "kill -SEGV $$"}, 60), {0}), contains("signal 11"));
  CHECK_THAT(trouble_of(run_child({"sleep", "1000"}, 0.2), {0}), contains("took too long"));
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
