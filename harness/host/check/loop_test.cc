// Loops announced as a whole give the findings and counts that they give when each access is announced.
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/check/announced_loop.h"
#include "harness/host/check/loop_kernels.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::host {
namespace {

using checked::Flaw;
using checked::LoopElement;
using checked::Rows;
using checked::Shape;

// Three arrays, the first of which begins `begin` bytes behind an address that is a multiple of 1024.
struct Memory {
  explicit Memory(std::size_t begin)
      : from(&storage[begin / sizeof(int)], 8192),
        to(from.data() + 8192, 8192),
        out(to.data() + 8192, 64) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i * 7 % 251);
  }
  alignas(1024) std::array<int, 16384 + 64 + 256> storage{};
  std::span<int> from, to, out;
};
using Launch = std::function<cudaError_t(Memory&)>;
constexpr std::size_t kKnown = 64 * 32 * sizeof(int);  // of `from`; 16 KiB of `to`

// Everything that a report says of a run, and what the run computed.
struct Said {
  std::string text;
  std::vector<int> values;
  std::uint64_t in_loops = 0;
};

std::string said_of(const CheckAccess& a) {
  std::string text = " thread " + std::to_string(a.thread[0]) + " interval " +
                     std::to_string(a.interval) + " bytes " + std::to_string(a.bytes) +
                     (a.write ? " write" : " read");
  for (const SourcePlace& place : a.places) text += ' ' + std::to_string(place.line);
  return text;
}

Said said(const Launch& launch, const std::string& schedule, bool whole, std::size_t begin = 0) {
  const auto allocated = std::make_unique<Memory>(begin);
  Memory& memory = *allocated;
  LaunchOptions options;
  options.schedule = parse_schedule(schedule);
  options.check = CheckOptions{};
  whole_loops().allowed = whole;
  const std::uint64_t before = whole_loops().accesses;
  Said result;
  {
    const LaunchScope scope(options);
    register_memory(memory.from.data(), kKnown, "from", true);
    register_memory(memory.to.data(), 16384, "to", false);
    register_memory(memory.out.data(), 256, "out", false);
    const cudaError_t error = launch(memory);
    cudaGetLastError();
    const LaunchReport& report = scope.report();
    for (const LaunchFinding& finding : report.findings) UNSCOPED_INFO(finding.message);
    REQUIRE(error == cudaSuccess);
    for (const CheckFinding& f : report.check.findings)
      result.text += std::string(name(f.kind)) + ' ' + name(f.severity) + ' ' + f.array + " +" +
                     std::to_string(f.offset) + ' ' + std::to_string(f.folded) + said_of(f.access) +
                     (f.has_other ? said_of(f.other) : "") + ": " + f.message + '\n';
    const CheckSummary& sum = report.check.summary;
    result.text += "loads " + std::to_string(sum.loads) + " stores " + std::to_string(sum.stores) +
                   " local " + std::to_string(sum.local) + " unknown " +
                   std::to_string(sum.unknown) + '\n';
  }
  whole_loops().allowed = true;
  for (const std::span<int> all : {memory.from, memory.to, memory.out})
    result.values.insert(result.values.end(), all.begin(), all.end());
  result.in_loops = whole_loops().accesses - before;
  return result;
}

// How many accesses were noted by whole loops.
std::uint64_t check_same(const Launch& launch) {
  std::uint64_t in_loops = 0;
  for (const char* schedule : {"forward", "reverse", "seed:1"}) {
    CAPTURE(schedule);
    const Said first = said(launch, schedule, true);
    const Said single = said(launch, schedule, false);
    const Said again = said(launch, schedule, true);
    CHECK(first.text == single.text);
    CHECK(again.text == single.text);
    CHECK((first.values == single.values && again.values == single.values));
    CHECK(single.in_loops == 0);
    CHECK(again.in_loops >= first.in_loops);
    in_loops = again.in_loops;
  }
  CHECK(said(launch, "lockstep", true).in_loops == 0);
  return in_loops;
}

bool finds(const Launch& launch, const char* what) {
  const std::string text = said(launch, "forward", true).text;
  UNSCOPED_INFO(text);
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("a loop over a row in shared memory finds what its loads find one by one") {
  for (int e = 0; e < checked::kNumLoopElements; ++e)
    for (int f = 0; f < checked::kNumFlaws; ++f)
      for (const int stride : {1, -1, 3}) {
        const auto element = static_cast<LoopElement>(e);
        const auto flaw = static_cast<Flaw>(f);
        CAPTURE(e, f, stride);
        const Launch launch = [&](Memory& m) {
          return checked::reads_row(element, flaw, stride == 3 ? 22 : 64, stride, m.out.data());
        };
        const std::uint64_t in_loops = check_same(launch);
        if (flaw == Flaw::kNone) CHECK(in_loops >= 64u * 22u);
        if (flaw == Flaw::kOverrun) CHECK(in_loops == 0);
        // Larger elements overrun into the array that follows.
        if (flaw == Flaw::kOverrun)
          CHECK(
              (finds(launch, "out-of-bounds error") || finds(launch, "uninitialised-read error")));
        if (flaw == Flaw::kUninitialised && stride != 3)
          CHECK(finds(launch, "uninitialised-read error sRow"));
        if (flaw == Flaw::kRace && stride != 3) CHECK(finds(launch, "race error sRow"));
      }
}

TEST_CASE("loops that make no round, and few") {
  for (const int count : {0, 1, 2, 7}) {
    CAPTURE(count);
    const std::uint64_t in_loops = check_same([&](Memory& m) {
      return checked::reads_row(LoopElement::kInt, Flaw::kNone, count, 1, m.out.data());
    });
    CHECK(in_loops == static_cast<std::uint64_t>(64 * count));
  }
}

TEST_CASE("a nest of loops over global memory, and one that leaves its array") {
  for (int e = 0; e < checked::kNumLoopElements; ++e) {
    const auto element = static_cast<LoopElement>(e);
    CAPTURE(e);
    const auto launch = [&](int rows, int pitch) {
      return Launch([=](Memory& m) {
        return checked::reads_global(element, m.from.data(), rows, 16, pitch, m.out.data());
      });
    };
    CHECK(check_same(launch(8, 20)) >= 64u * 8u * 16u);
    CHECK(check_same(launch(8, 0)) >= 64u * 8u * 16u);
    CHECK(check_same(launch(0, 16)) == 0);
    constexpr int kBytes[] = {1, 2, 4, 8, 12, 16};
    const int past = static_cast<int>(kKnown) / kBytes[e];
    CHECK(check_same(launch(2, past)) == 0);
    CHECK(finds(launch(2, past), "out-of-bounds error"));
    // Wherever the array lies, and however many of the checker's pages an access is in.
    const std::string text = said(launch(2, past), "forward", false).text;
    for (const std::size_t begin : {16u, 912u, 976u, 992u, 1008u})
      CHECK(said(launch(2, past), "forward", false, begin).text == text);
  }
}

TEST_CASE("loops that store rows race as their stores do") {
  for (int e = 0; e < checked::kNumLoopElements; ++e)
    for (const bool shared : {true, false}) {
      const auto element = static_cast<LoopElement>(e);
      CAPTURE(e, shared);
      const auto launch = [&](Rows rows) {
        return Launch([=](Memory& m) {
          return checked::stores_rows(element, rows, shared, m.to.data(), m.out.data());
        });
      };
      CHECK(check_same(launch(Rows::kOwn)) >= 2u * 64u * 16u);
      CHECK(check_same(launch(Rows::kShared)) > 0);
      CHECK(finds(launch(Rows::kShared), "race error"));
      CHECK(check_same(launch(Rows::kSharedEqual)) > 0);
      CHECK(finds(launch(Rows::kSharedEqual), "race benign"));
      check_same(launch(Rows::kOfNeighbourLanes));
      CHECK(finds(launch(Rows::kOfNeighbourLanes), "lanes of one warp store different values"));
    }
}

TEST_CASE("a loop's stores race with the loads that came before") {
  for (int b = 0; b < checked::kNumBefore; ++b) {
    const auto before = static_cast<checked::Before>(b);
    CAPTURE(b);
    const Launch launch = [&](Memory& m) { return checked::stores_after(before, m.out.data()); };
    check_same(launch);
    CHECK(said(launch, "forward", true).in_loops >= 32u);  // of threads that come before the loads
    CHECK(finds(launch, "race error sRow") == (before != checked::Before::kBarrier));
  }
}

TEST_CASE("loops of every shape do and find the same") {
  for (int s = 0; s < checked::kNumShapes; ++s)
    for (const int limit : {32, 7, 1 << 27}) {
      const auto shape = static_cast<Shape>(s);
      CAPTURE(s, limit);
      const std::uint64_t in_loops = check_same([&](Memory& m) {
        return checked::works_on_rows(shape, m.from.data(), limit, m.out.data());
      });
      constexpr std::uint64_t kRead = 64 * 32;  // by the loop that follows each shape
      const bool is_whole = shape == Shape::kInPlace || shape == Shape::kPairs ||
                            shape == Shape::kCondition || shape == Shape::kLocal;
      if (is_whole && limit >= 32) CHECK(in_loops > kRead);
      if (shape == Shape::kAliased) CHECK(in_loops == kRead);
    }
#if !defined(__SANITIZE_ADDRESS__)  // whose runtime prints these itself
  CHECK(finds(
      [](Memory& m) {
        return checked::works_on_rows(Shape::kOverflow, m.from.data(), 1 << 27, m.out.data());
      },
      "int-overflow error"));
#endif
  CHECK(finds(
      [](Memory& m) {
        return checked::works_on_rows(Shape::kLocalUnset, m.from.data(), 32, m.out.data());
      },
      "uninitialised-read error local"));
}

}  // namespace attn_diag::host
