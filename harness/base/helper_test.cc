#include "harness/base/helper.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Bytes bytes_of(const std::string& text) { return WireWriter().text(text).take(); }

std::string lost_by(const HelperLimits& limits, const std::function<void()>& deed) {
  Helper helper(limits, [&](const Bytes&) {
    deed();
    return Bytes();
  });
  try {
    helper.ask({});
  } catch (const HelperLost& e) {
    // And it stays lost.
    CHECK_THROWS_AS(helper.ask({}), HelperLost);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a helper answers question after question, large ones too, with what it keeps") {
  int asked = 0;
  Helper helper({}, [&](const Bytes& question) {
    const std::string text = WireReader(question).text();
    return WireWriter().number(static_cast<std::uint64_t>(++asked)).text(text + text).take();
  });
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const std::string large(i * 3'000'000, static_cast<char>('a' + i));
    const Bytes answer = helper.ask(bytes_of(large));
    WireReader from(answer);
    CHECK(from.number() == i);
    CHECK(from.text() == large + large);
  }
  CHECK(asked == 0);  // here
}

TEST_CASE("what an answer throws is thrown where it was asked for") {
  Helper helper({}, [](const Bytes& question) -> Bytes {
    if (question.empty()) throw std::bad_alloc();
    throw Error("no such thing");
  });
  CHECK_THROWS_AS(helper.ask({}), std::bad_alloc);
  CHECK_THROWS_WITH(helper.ask(bytes_of("x")), "no such thing");
}

TEST_CASE("a helper that crashes, exits or does not come back is lost, with the reason") {
  CHECK_THAT(lost_by({}, [] { std::raise(SIGSEGV); }), contains("Segmentation fault"));
  CHECK_THAT(lost_by({}, [] { std::abort(); }), contains("Abort"));
  CHECK_THAT(lost_by({}, [] { throw 3; }), contains("Abort"));
  CHECK_THAT(lost_by({}, [] { ::_exit(7); }), contains("exit(7)"));
  HelperLimits limits;
  limits.seconds_per_answer = 0.2;
  CHECK_THAT(lost_by(limits, [] { ::sleep(100); }), contains("more than 0.2 s"));
  limits = {};
  limits.processor_seconds = 1;
  CHECK_THAT(lost_by(limits,
                     [] {
                       for (volatile bool ever = true; ever;) {
                       }
                     }),
             contains("processor time"));
}

TEST_CASE("a helper has the memory that it was given, leaves no core and prints nothing") {
  HelperLimits limits;
  limits.memory = 64 << 20;
  Helper helper(limits, [](const Bytes& question) -> Bytes {
    if (question.empty()) {
      rlimit core{};
      getrlimit(RLIMIT_CORE, &core);
      return WireWriter().number(core.rlim_cur).truth(::isatty(2) == 1).take();
    }
    return Bytes(std::size_t{1} << 28);
  });
  const Bytes answer = helper.ask({});
  CHECK(WireReader(answer).number() == 0);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK_THROWS_AS(helper.ask(bytes_of("x")), std::bad_alloc);
#endif
}

TEST_CASE("no helper is left when it is not needed any more") {
  {
    Helper helper({}, [](const Bytes&) { return Bytes(); });
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no child at all
}

TEST_CASE("an answer that no writer has written is no answer") {
  const Bytes bytes = WireWriter().number(1000).take();
  CHECK_THROWS_AS(WireReader(bytes).text(), HelperLost);
  CHECK_THROWS_AS(WireReader(bytes).texts(), HelperLost);
  WireReader twice(bytes);
  twice.number();
  CHECK_THROWS_AS(twice.number(), HelperLost);
}

}  // namespace attn_diag
