#include "harness/host/launch_limits.h"

#include "harness/host/test_kernels/limit_kernels.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

void check_refused(const Launched& run, const std::vector<std::string>& parts) {
  CAPTURE(run.finding().message);
  CHECK(run.error == cudaErrorInvalidConfiguration);
  CHECK(run.finding().kind == LaunchFindingKind::kLaunchConfig);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(contains(run.finding().message, part));
  }
}

}  // namespace

TEST_CASE("more static shared memory than nvcc takes is refused, with the arrays") {
  const Launched run = launched("forward", [] { return plain::static_beyond_limit(); });
  check_refused(run, {"static_beyond_limit_kernel<100> cannot be launched: 51712 bytes of static",
                      "sK 51200", "sV 512", "49152 are allowed on sm_90", "build for sm_90a"});
}

TEST_CASE("static and dynamic shared memory together are at most what a block has") {
  constexpr std::size_t kMost = 227 * 1024, kStatic = 40 * 1024;
  CHECK(launched("forward", [] { return plain::static_and_dynamic(kMost - kStatic); }).completed());
  const Launched run =
      launched("forward", [] { return plain::static_and_dynamic(kMost - kStatic + 16); });
  check_refused(run, {"40960 bytes of static (sQ 40960) and 191504 of dynamic", "are 232464",
                      "232448 at most on sm_90"});
}

TEST_CASE("dynamic shared memory is at most what the architecture built for has") {
  CHECK(launched("forward", [] { return plain::dynamic_on(900, 200 * 1024); }).completed());
  check_refused(launched("forward", [] { return plain::dynamic_on(800, 200 * 1024); }),
                {"204800 bytes of dynamic shared memory are impossible", "166912 on sm_80"});
  check_refused(launched("forward", [] { return plain::dynamic_on(890, 100 * 1024); }),
                {"101376 on sm_89"});
  CHECK(most_shared_of_block(750) == 65536);
}

}  // namespace attn_diag::host
