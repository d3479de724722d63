#include "harness/base/parallel_for.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

TEST_CASE("parallel_for does every piece once, whatever the number of threads") {
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> done(100);
    parallel_for(100, threads, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
    for (const std::atomic<int>& count : done) CHECK(count == 1);
  }
  parallel_for(0, 4, [](std::int64_t) { FAIL("there is no piece"); });
}

TEST_CASE("parallel_for throws what the first piece that failed threw, and begins no more") {
  for (const int threads : {1, 4}) {
    std::atomic<int> begun{0};
    std::string text;
    try {
      parallel_for(100000, threads, [&](std::int64_t i) {
        ++begun;
        if (i >= 10) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    CHECK(text == "10");
    CHECK(begun <= 10 + threads);
  }
}

}  // namespace
}  // namespace attn_diag
