// ATTN_DIAG_TEST_LIBRARIES: the directory of the libraries made from testing_library.cc.
#include "harness/backends/choose_backend.h"

#include <string>

#include "attn_diag/harness/gpu.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/kernel_path.h"

namespace attn_diag {

TEST_CASE("a library named by path is run on the backend it was built for") {
  const std::string directory = ATTN_DIAG_TEST_LIBRARIES;
  CHECK(choose_backend(directory + "/two.host.so:first").backend == "host");
  const BackendChoice on_gpu = choose_backend(directory + "/gpu_only.cuda.so:first");
  CHECK(on_gpu.backend == "cuda");
  CHECK(on_gpu.why == "it has no build for host");
}

TEST_CASE("a kernel is run on the host where there is no GPU, and the reason is said") {
  const testing::KernelPath path(ATTN_DIAG_TEST_LIBRARIES);
  const BackendChoice choice = choose_backend("both");
  if (gpu_state().usable()) {
    CHECK_THAT(choice.why, contains("sm_"));
  } else {
    CHECK(choice.backend == "host");
    CHECK(choice.why == gpu_state().why_not.substr(0, choice.why.size()));
    CHECK_FALSE(choice.why.empty());
  }
  CHECK(choose_backend("two").backend == "host");
  CHECK(choose_backend("two").why == "it has no build for cuda");
}

}  // namespace attn_diag
