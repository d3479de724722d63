#include "harness/base/process.h"

#include <csignal>
#include <filesystem>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

TEST_CASE("both streams and the exit code of a program come back") {
  const ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 0);
  CHECK_FALSE(result.ok());
}

TEST_CASE("more output than a pipe holds does not block the program") {
  const ProcessResult result = run_process(
      {"sh", "-c", "i=0; while [ $i -lt 3000 ]; do printf '%0100d' $i; i=$((i+1)); done"});
  CHECK(result.ok());
  CHECK(result.out.size() == 300000);
}

TEST_CASE("a program that dies of a signal has not ended by itself") {
  const ProcessResult result = run_process({"sh", "-c", "kill -SEGV $$"});
  CHECK(result.signal == SIGSEGV);
  CHECK(result.exit_code == -1);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("a program that takes too long is stopped, and what it has said is kept") {
  const ProcessResult result = run_process({"sh", "-c", "echo here; exec sleep 1000"}, {{}, 0.3});
  CHECK(result.timed_out);
  CHECK(result.out == "here\n");
  CHECK_FALSE(result.ok());
}

TEST_CASE("a program runs in the folder that is named") {
  CHECK(run_process({"pwd"}, {"/"}).out == "/\n");
  CHECK(run_process({"pwd"}).out == std::filesystem::current_path().string() + "\n");
}

TEST_CASE("a program that does not exist is an error with its name") {
  try {
    run_process({"/nonexistent/program"});
    FAIL("started");
  } catch (const Error& e) {
    CHECK_THAT(std::string(e.what()), contains("/nonexistent/program"));
  }
}

TEST_CASE("a fork that throws ends by abort, and one that returns by exit code 0") {
  CHECK(wait_for(fork_child([] {})).exit_code == 0);
  CHECK(wait_for(fork_child([] { throw Error("lost"); })).signal == SIGABRT);
}

}  // namespace
}  // namespace attn_diag
