// Every way of touching memory is seen.
#include <functional>
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/check/access_kernels.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::host {
namespace {

using checked::Element;
using checked::Libc;

// Bytes that differ from element to element, whatever their size.
struct Memory {
  std::vector<char> from = std::vector<char>(64 * 24 + 256), to = std::vector<char>(64 * 24 + 256);
  Memory() {
    for (std::size_t i = 0; i < from.size(); ++i)
      from[i] = static_cast<char>(i * 7 + i / 32 + i / 256);
  }
};

CheckReport checked_launch(const std::function<cudaError_t(Memory&)>& launch,
                           const std::string& schedule) {
  Memory memory;
  LaunchOptions options;
  options.schedule = parse_schedule(schedule);
  options.check = CheckOptions{};
  const LaunchScope scope(options);
  register_memory(memory.from.data(), 64 * 24, "from", true);
  register_memory(memory.to.data(), 64 * 24, "to", false);
  const cudaError_t error = launch(memory);
  cudaGetLastError();
  for (const LaunchFinding& finding : scope.report().findings) UNSCOPED_INFO(finding.message);
  REQUIRE(error == cudaSuccess);
  return scope.report().check;
}

std::string described(const CheckReport& report) {
  std::string text;
  for (const CheckFinding& f : report.findings)
    text += std::string(name(f.kind)) + ' ' + name(f.severity) + ' ' + f.array + '\n';
  return text;
}

// What is found is the same under every schedule.
void check_found(const std::string& expected, const std::function<cudaError_t(Memory&)>& launch) {
  for (const char* schedule : {"forward", "reverse", "seed:1", "lockstep"}) {
    CAPTURE(schedule);
    CHECK(described(checked_launch(launch, schedule)) == expected);
  }
}

}  // namespace

TEST_CASE("unordered copies of every type are a race, and benign where the values are equal") {
  for (int i = 0; i < checked::kNumElements; ++i)
    for (const bool shared : {false, true}) {
      const auto element = static_cast<Element>(i);
      const std::string array = shared ? "sRow" : "to";
      CAPTURE(i, shared);
      for (const bool equal : {false, true})
        check_found((equal ? "race benign " : "race error ") + array + '\n', [&](Memory& m) {
          return checked::copies_race(element, shared, equal, m.from.data(), m.to.data());
        });
    }
}

TEST_CASE("what is passed by value to a function that is not inlined is seen to be read") {
  for (int i = 0; i < checked::kNumElements; ++i) {
    CAPTURE(i);
    const auto launch = [i](bool synchronised) {
      return [i, synchronised](Memory& m) {
        return checked::passes_by_value(static_cast<Element>(i), synchronised, m.from.data(),
                                        reinterpret_cast<int*>(m.to.data()));
      };
    };
    check_found("", launch(true));
    check_found("race error sRow\n", launch(false));
  }
}

TEST_CASE("memcpy, memmove and memset are seen, whatever their size") {
  for (const Libc function : {Libc::kMemcpy, Libc::kMemmove, Libc::kMemset})
    for (const int bytes : {1, 3, 16, 24}) {
      CAPTURE(static_cast<int>(function), bytes);
      const auto launch = [&](bool apart) {
        return [&, apart](Memory& m) {
          return checked::calls_libc(function, apart, bytes, m.from.data(), m.to.data());
        };
      };
      check_found("", launch(true));
      check_found("race error to\n", launch(false));
    }
}

TEST_CASE("a call of what has no call-outs is named with its line") {
  const CheckReport report = checked_launch(
      [](Memory& m) { return checked::calls_unseen(m.from.data(), m.to.data()); }, "forward");
  CHECK(report.findings.empty());
  REQUIRE(report.unseen.size() == 1);
  CHECK(report.unseen[0].what == "swab");
  REQUIRE(!report.unseen[0].from.places.empty());
  CHECK(report.unseen[0].from.places[0].file.find("access_kernels.cc") != std::string::npos);
  CHECK(checked_launch(
            [](Memory& m) {
              return checked::calls_libc(Libc::kMemcpy, true, 3, m.from.data(), m.to.data());
            },
            "forward")
            .unseen.empty());
}

TEST_CASE("arrays that are only stored to or only read are watched") {
  const auto out = [](Memory& m) { return reinterpret_cast<int*>(m.to.data()); };
  check_found("", [&](Memory& m) { return checked::only_stores(out(m), false); });
  check_found("out-of-bounds error sUnread\n",
              [&](Memory& m) { return checked::only_stores(out(m), true); });
  check_found("uninitialised-read error sUnset\n",
              [&](Memory& m) { return checked::only_loads(out(m)); });
}

TEST_CASE("variables of the device are watched") {
  check_found("", [](Memory&) { return checked::device_variable(true); });
  check_found("race error g_last\n", [](Memory&) { return checked::device_variable(false); });
  check_found("", [](Memory&) { return checked::device_array(0); });
  check_found("out-of-bounds error g_row\n", [](Memory&) { return checked::device_array(1); });
  check_found("", [](Memory& m) {
    return checked::constant_array(reinterpret_cast<int*>(m.to.data()), 0);
  });
  check_found("out-of-bounds error c_row\n", [](Memory& m) {
    return checked::constant_array(reinterpret_cast<int*>(m.to.data()), 1);
  });
}

TEST_CASE("a loop with a tail is clean, of whatever length") {
  for (const int count : {1, 7, 63, 64, 100, 255}) {
    CAPTURE(count);
    check_found("", [count](Memory& m) {
      return checked::sums_rows(reinterpret_cast<const float*>(m.from.data()), count,
                                reinterpret_cast<float*>(m.to.data()));
    });
  }
}

}  // namespace attn_diag::host
