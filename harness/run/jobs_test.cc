#include "harness/run/jobs.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using End = Jobs::End;

void compute_for_ever() {
  for (volatile bool go_on = true; go_on;) {
  }
}

TEST_CASE("jobs run at the same time, and each says how it ended") {
  Jobs jobs(8);
  std::map<int, End> expected;
  expected[jobs.start([] { return WireWriter().text("done").take(); }, 20)] = End::kDone;
  expected[jobs.start([]() -> Bytes { throw Error("not possible"); }, 20)] = End::kFailed;
  const int aborts = jobs.start([]() -> Bytes { std::abort(); }, 20);
  expected[aborts] = End::kCrashed;
  expected[jobs.start([]() -> Bytes { ::_exit(0); }, 20)] = End::kCrashed;
  expected[jobs.start(
      [] {
        ::sleep(100);
        return Bytes();
      },
      0.2)] = End::kTookTooLong;
  // However busy the machine is.
  expected[jobs.start(
      [] {
        compute_for_ever();
        return Bytes();
      },
      60, 0.05)] = End::kTookTooLong;
  CHECK(jobs.running() == 6);
  while (!jobs.empty()) {
    const Jobs::Result result = jobs.wait();
    INFO(result.id);
    CHECK(result.end == expected.at(result.id));
    if (result.end == End::kCrashed) CHECK(result.signal == (result.id == aborts ? SIGABRT : 0));
    if (result.end == End::kDone) {
      WireReader from(result.answer);
      CHECK(from.text() == "done");
    }
    if (result.end == End::kFailed)
      CHECK(std::string(reinterpret_cast<const char*>(result.answer.data()),
                        result.answer.size()) == "not possible");
    CHECK(result.seconds < 50);
  }
}

TEST_CASE("what a job has started ends with it") {
  const auto begin = std::chrono::steady_clock::now();
  {
    Jobs jobs(1);
    jobs.start(
        [] {
          if (::system("sleep 100") != 0) return Bytes();
          return Bytes();
        },
        100);
    ::usleep(100000);
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("an answer may be long") {
  Jobs jobs(1);
  jobs.start([] { return Bytes(300000, std::byte{7}); }, 20);
  const Jobs::Result result = jobs.wait();
  CHECK(result.end == End::kDone);
  CHECK(result.answer == Bytes(300000, std::byte{7}));
}

}  // namespace
}  // namespace attn_diag
