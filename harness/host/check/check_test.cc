#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/check/test_kernels.h"
#include "harness/host/check/untaken_kernels.h"
#include "harness/host/sanitizer.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::host {
namespace {

using checked::Fence;

// The line of test_kernels.cc that ends in "// [mark]".
int line_of(const std::string& mark) {
  std::ifstream file(ATTN_DIAG_CHECK_TEST_KERNELS);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number)
    if (line.ends_with("// [" + mark + "]")) return number;
  return -1;
}

struct Memory {
  std::vector<int> in, out, data;
  Memory() : in(256, 1), out(256, 0), data(1024, 0) {}
};

CheckReport checked_launch(const std::function<cudaError_t(Memory&)>& launch,
                           const std::string& schedule = "forward",
                           cudaError_t expected = cudaSuccess) {
  Memory memory;
  LaunchOptions options;
  options.schedule = parse_schedule(schedule);
  options.check = CheckOptions{};
  const LaunchScope scope(options);
  register_memory(memory.in.data(), 128 * sizeof(int), "in", true);
  register_memory(memory.out.data(), 128 * sizeof(int), "out", false);
  register_memory(memory.data.data(), memory.data.size() * sizeof(int), "data", true);
  const cudaError_t error = launch(memory);
  cudaGetLastError();
  const LaunchReport& report = scope.report();
  for (const LaunchFinding& finding : report.findings) UNSCOPED_INFO(finding.message);
  REQUIRE(error == expected);
  return report.check;
}

std::string described(const CheckReport& report) {
  std::string text;
  for (const CheckFinding& f : report.findings)
    text += std::string(name(f.kind)) + ' ' + name(f.severity) + ' ' + f.array + " +" +
            std::to_string(f.offset) + ": " + f.message + '\n';
  return text;
}

CheckFinding only(const CheckReport& report) {
  INFO(described(report));
  REQUIRE(report.findings.size() == 1);
  return report.findings.front();
}

void check_clean(const std::function<cudaError_t(Memory&)>& launch) {
  for (const char* schedule : {"forward", "reverse", "seed:1", "seed:2", "lockstep"}) {
    CAPTURE(schedule);
    CHECK(described(checked_launch(launch, schedule)) == "");
  }
}

// Every schedule finds this kind, at the same lines.
CheckFinding check_found(CheckKind kind, Severity severity,
                         const std::function<cudaError_t(Memory&)>& launch) {
  for (const char* schedule : {"reverse", "seed:1", "seed:2", "lockstep"}) {
    CAPTURE(schedule);
    const CheckFinding found = only(checked_launch(launch, schedule));
    CHECK(found.kind == kind);
    CHECK(found.severity == severity);
  }
  const CheckFinding found = only(checked_launch(launch));
  CHECK(found.kind == kind);
  CHECK(found.severity == severity);
  return found;
}

}  // namespace

TEST_CASE("a store races with loads of whichever warps") {
  for (const char* schedule : {"forward", "reverse", "seed:1", "seed:2", "lockstep"})
    for (const unsigned who : {0u, 31u, 32u, 70u, 127u}) {
      CAPTURE(schedule, who);
      const CheckReport report = checked_launch(
          [&](Memory& m) { return checked::reads_of_four_warps(m.out.data(), who); }, schedule);
      bool between_warps = false;
      for (const CheckFinding& found : report.findings) {
        INFO(described(report));
        CHECK(found.kind == CheckKind::kRace);
        CHECK(found.offset == 20);
        const int lines[] = {found.access.places.at(0).line, found.other.places.at(0).line};
        CHECK((lines[0] == line_of("all load") || lines[1] == line_of("all load")));
        CHECK((lines[0] == line_of("one stores") || lines[1] == line_of("one stores")));
        between_warps = between_warps || found.severity == Severity::kError;
      }
      CHECK(between_warps);
    }
}

TEST_CASE("loads that are noted in the call-out count as the others") {
  const auto loads = [](const char* schedule) {
    constexpr unsigned kNobody = 128;
    const CheckReport report = checked_launch(
        [](Memory& m) { return checked::reads_of_four_warps(m.out.data(), kNobody); }, schedule);
    return report.summary.loads;
  };
  CHECK(loads("forward") >= 128 * 32);
  CHECK(loads("forward") == loads("lockstep"));  // which notes none so
}

TEST_CASE("a barrier orders the accesses of a block") {
  check_clean([](Memory& m) { return checked::barrier_right(m.out.data()); });
}

TEST_CASE("a missing barrier is a race of the two lines, under every schedule") {
  const CheckFinding found = check_found(CheckKind::kRace, Severity::kError, [](Memory& m) {
    return checked::barrier_missing(m.out.data());
  });
  REQUIRE(found.has_other);
  REQUIRE(!found.access.places.empty());
  REQUIRE(!found.other.places.empty());
  const int load = line_of("load"), store = line_of("store");
  CHECK(found.access.places[0].line == (found.access.write ? store : load));
  CHECK(found.other.places[0].line == (found.other.write ? store : load));
  CHECK(found.access.write != found.other.write);
  CHECK(found.array == "sRow");
  CHECK(found.space == "shared");
  CHECK(found.access.thread[0] / 32 != found.other.thread[0] / 32);
  CHECK(found.folded > 0);
  CHECK_THAT(found.advice,
             Catch::Matchers::Contains("between line " + std::to_string(line_of("store")) +
                                       " and line " + std::to_string(line_of("load"))));
}

TEST_CASE(
    "threads that store equal values are benign, and lanes of one store that differ are wrong") {
  check_found(CheckKind::kRace, Severity::kBenign,
              [](Memory& m) { return checked::same_value(m.out.data()); });
  check_found(CheckKind::kRace, Severity::kError,
              [](Memory& m) { return checked::one_store_of_a_warp(m.out.data()); });
}

TEST_CASE("of two stores to one place the finding says what they store, and advises what fits") {
  const auto found = [](float first, float second, bool one_line) {
    return only(checked_launch(
        [=](Memory& m) { return checked::two_stores(m.out.data(), first, second, one_line); }));
  };
  const CheckFinding cleared = found(1.5f, 0, false);
  CHECK(cleared.message.ends_with(
      "with no barrier between: the first stores 1.5 (0x3FC00000), the second 0"));
  CHECK(cleared.advice.find("clears what the first has stored") != std::string::npos);
  const CheckFinding set = found(0, 1.5f, false);
  CHECK(set.message.ends_with("the first stores 0, the second 1.5 (0x3FC00000)"));
  CHECK(set.advice.find("behind the clearing") != std::string::npos);
  CHECK(found(2, 3, false).advice.find("Decide which thread owns") != std::string::npos);
  CHECK(found(2, 3, true).advice.find("the same index") != std::string::npos);
  CHECK(found(2, 2, true).severity == Severity::kBenign);
}

TEST_CASE(
    "lanes of a warp are ordered by __syncwarp; else a race is latent, also where they meet") {
  check_clean([](Memory& m) { return checked::warp_right(m.out.data()); });
  const CheckFinding met = check_found(CheckKind::kRace, Severity::kLatent, [](Memory& m) {
    return checked::shuffle_between(m.out.data());
  });
  CHECK(met.message.find("a shuffle, vote, match or matrix operation between") !=
        std::string::npos);
  CHECK(met.advice.find("__syncwarp()") != std::string::npos);
  check_found(CheckKind::kRace, Severity::kLatent,
              [](Memory& m) { return checked::warp_latent(m.out.data()); });
}

TEST_CASE(
    "a shuffle that reads a lane which takes no part is latent: CUDA does not define what it "
    "reads") {
  using checked::EightLanes;
  check_clean([](Memory& m) { return checked::eight_lanes(m.out.data(), EightLanes::kAll); });
  const auto found = [](EightLanes lanes) {
    const CheckFinding f =
        check_found(CheckKind::kUninitialisedRead, Severity::kLatent,
                    [=](Memory& m) { return checked::eight_lanes(m.out.data(), lanes); });
    REQUIRE_FALSE(f.access.places.empty());
    CHECK(f.access.places[0].line == line_of("reads another lane"));
    return f;
  };
  // Where lanes run one by one: in lockstep __activemask() names those that run together.
  const CheckFinding active = only(checked_launch(
      [](Memory& m) { return checked::eight_lanes(m.out.data(), EightLanes::kActive); }));
  CHECK(active.severity == Severity::kLatent);
  CHECK(active.message.find("lane 4, which its mask 0x1 does not name") != std::string::npos);
  CHECK(active.advice.find("__activemask() promises none but the calling lane") !=
        std::string::npos);
  const CheckFinding missing = found(EightLanes::kOneMissing);
  CHECK(missing.message.find("lane 7, which its mask 0x7f does not name") != std::string::npos);
  CHECK(found(EightLanes::kSomeReturn).message.find("which has returned") != std::string::npos);
}

TEST_CASE("a __syncwarp orders the lanes of its mask alone") {
  check_clean([](Memory& m) { return checked::half_warps(m.out.data(), true); });
  const CheckFinding found = check_found(CheckKind::kRace, Severity::kLatent, [](Memory& m) {
    return checked::half_warps(m.out.data(), false);
  });
  CHECK(found.message.find("no __syncwarp() between that has both in its mask") !=
        std::string::npos);
}

TEST_CASE("reading shared memory that nobody wrote is found, byte by byte") {
  const CheckFinding found =
      check_found(CheckKind::kUninitialisedRead, Severity::kError,
                  [](Memory& m) { return checked::uninitialised_shared(m.out.data()); });
  CHECK(found.offset == 5 * 4);
  CHECK(found.access.thread[0] == 5);
}

TEST_CASE("of memory that threads would have stored it is said that they had returned") {
  check_clean([](Memory& m) { return checked::returned_early(m.out.data(), 64); });
  const CheckFinding found =
      check_found(CheckKind::kUninitialisedRead, Severity::kError,
                  [](Memory& m) { return checked::returned_early(m.out.data(), 40); });
  CHECK(found.returned_before.line == line_of("some returned"));
  CHECK(found.advice.find("24 of the 64 threads of this block had returned") != std::string::npos);
  const CheckFinding other =
      only(checked_launch([](Memory& m) { return checked::uninitialised_shared(m.out.data()); }));
  CHECK(other.returned_before.line == 0);
}

TEST_CASE("neighbouring bytes are not one another's") {
  check_clean([](Memory& m) { return checked::bytes_of_neighbours(m.out.data()); });
}

TEST_CASE("stores past the end of shared and global arrays are found") {
#if defined(ATTN_DIAG_HOST_ASAN)
  WARN("SKIP: AddressSanitizer's own runtime ends the run at an index out of bounds");
#else
  const CheckFinding statics =
      check_found(CheckKind::kOutOfBounds, Severity::kError,
                  [](Memory& m) { return checked::past_static_array(m.out.data()); });
  CHECK(statics.message.find("63") != std::string::npos);
  CHECK(statics.access.places.at(0).line == line_of("past"));
  const CheckFinding dynamic =
      check_found(CheckKind::kOutOfBounds, Severity::kError,
                  [](Memory& m) { return checked::past_dynamic(m.out.data()); });
  CHECK(dynamic.array == "dynamic shared memory");
  CHECK(dynamic.offset == 63 * 4);
  CHECK(dynamic.message == "writes 4 bytes right behind the end of dynamic shared memory");
  const CheckFinding global = check_found(CheckKind::kOutOfBounds, Severity::kError, [](Memory& m) {
    return checked::read_through(m.in.data(), m.out.data(), 65);
  });
  CHECK(global.array == "in");
  CHECK(global.offset == 128 * 4);
  CHECK(global.message.starts_with("reads 4 bytes right behind the end of in"));
#endif
}

TEST_CASE("barrier objects and named barriers order who waits for them") {
  check_clean([](Memory& m) { return checked::barrier_object(m.out.data(), true); });
  check_clean([](Memory& m) { return checked::named(m.out.data(), true); });
  check_found(CheckKind::kRace, Severity::kError,
              [](Memory& m) { return checked::barrier_object(m.out.data(), false); });
  // Under other schedules its reads come first and are of what nobody has written.
  CHECK(only(checked_launch([](Memory& m) { return checked::named(m.out.data(), false); })).kind ==
        CheckKind::kRace);
}

TEST_CASE("a barrier object wants a barrier between who initialises it and who uses it") {
  for (const bool object : {false, true}) {
    CAPTURE(object);
    check_clean([&](Memory& m) { return checked::unpublished(m.out.data(), object, true); });
    const CheckFinding found = only(checked_launch(
        [&](Memory& m) { return checked::unpublished(m.out.data(), object, false); }));
    CHECK(found.kind == CheckKind::kRace);
    CHECK(found.severity == Severity::kError);
    CHECK(found.space == "shared");
    CHECK(found.other.thread[0] == 0);
    CHECK(found.other.write);
    CHECK_FALSE(found.other.atomic);
  }
}

TEST_CASE("of a race it is said which named barriers stand between") {
  const CheckFinding found =
      only(checked_launch([](Memory& m) { return checked::two_named(m.out.data()); }));
  CHECK(found.kind == CheckKind::kRace);
  const std::string line = std::to_string(line_of("of its own"));
  const bool first_reads =
      !found.access.write ? found.access.thread[0] < 32 : found.other.thread[0] < 32;
  CAPTURE(found.message);
  CHECK(found.message.find(std::string("the thread that reads has passed barrier ") +
                           (first_reads ? "1" : "2") + " (test_kernels.cc:" + line + ")") !=
        std::string::npos);
}

TEST_CASE("of a wait in vain within a helper it is said what called that") {
  for (const char* schedule : {"forward", "reverse", "lockstep"})
    for (const bool called : {false, true}) {
      CAPTURE(schedule, called);
      const CheckFinding found = only(checked_launch(
          [called](Memory& m) { return checked::waits_in_vain(m.out.data(), called); }, schedule,
          cudaErrorLaunchFailure));
      CHECK(found.kind == CheckKind::kLaunch);
      std::vector<int> lines;
      for (const SourcePlace& place : found.access.places) lines.push_back(place.line);
      std::vector<int> expected = {line_of("waits in vain")};
      if (called) expected.push_back(line_of("in a helper"));
      expected.push_back(line_of(called ? "calls" : "inlines"));
      CHECK(lines == expected);
    }
}

TEST_CASE("of warps that wait for each other it is said what called either wait") {
  for (const char* schedule : {"forward", "reverse", "lockstep"}) {
    CAPTURE(schedule);
    const CheckFinding found =
        only(checked_launch([](Memory& m) { return checked::wait_for_each_other(m.out.data()); },
                            schedule, cudaErrorLaunchFailure));
    REQUIRE(found.others_wait.size() == 1);
    std::set<std::vector<int>> waits;
    for (const auto& places : {found.access.places, found.others_wait.front()}) {
      std::vector<int> lines;
      for (const SourcePlace& place : places) lines.push_back(place.line);
      waits.insert(lines);
    }
    const int wait = line_of("waits in vain");
    CHECK(waits == std::set<std::vector<int>>{{wait, line_of("in a helper"), line_of("one calls")},
                                              {wait, line_of("the other inlines")}});
  }
}

TEST_CASE("reading before the wait for an asynchronous copy is found") {
  check_clean([](Memory& m) { return checked::async_copy(m.out.data(), m.in.data(), 0); });
  check_found(CheckKind::kAsyncCopy, Severity::kError,
              [](Memory& m) { return checked::async_copy(m.out.data(), m.in.data(), 1); });
  // The copy is wider than the load: each access has its own size.
  const CheckFinding wide = check_found(CheckKind::kAsyncCopy, Severity::kError, [](Memory& m) {
    return checked::wide_async_copy(m.out.data(), m.in.data());
  });
  CHECK(wide.access.bytes == 4);
  CHECK(wide.other.bytes == 16);
  CHECK(wide.other.write);
}

TEST_CASE("a copy over what another copy still writes is found, though one thread issues both") {
  check_clean([](Memory& m) { return checked::copied_over(m.out.data(), m.in.data(), 64); });
  const CheckFinding over = check_found(CheckKind::kAsyncCopy, Severity::kError, [](Memory& m) {
    return checked::copied_over(m.out.data(), m.in.data(), 0);
  });
  CHECK(over.access.places.at(0).line == line_of("copies over"));
  CHECK(over.access.async);
}

TEST_CASE("a copy that its own thread alone has waited for wants a barrier behind the wait") {
  check_clean([](Memory& m) { return checked::waited_copy(m.out.data(), m.in.data(), 0); });
  for (const char* schedule : {"forward", "reverse", "seed:1"}) {
    const CheckReport report = checked_launch(
        [](Memory& m) { return checked::waited_copy(m.out.data(), m.in.data(), 1); }, schedule);
    INFO(described(report));
    // Of threads that have not waited yet, and of those that have.
    REQUIRE(report.findings.size() == 2);
    for (const CheckFinding& found : report.findings) {
      CHECK((found.kind == CheckKind::kAsyncCopy || found.kind == CheckKind::kRace));
      CHECK(found.severity == Severity::kError);
      CHECK(found.wait.places.at(0).line == line_of("waits"));
      CHECK(found.access.places.at(0).line == line_of("reads of others"));
      CHECK(found.message.find("nobody has waited") == std::string::npos);
      CHECK(found.message.find("no barrier behind") != std::string::npos);
    }
  }
  // Where the wait leaves the copy in flight, that is what is wrong.
  const CheckFinding early = check_found(CheckKind::kAsyncCopy, Severity::kError, [](Memory& m) {
    return checked::async_copy(m.out.data(), m.in.data(), 1);
  });
  CHECK(early.wait.places.empty());
  CHECK(early.message.find("nobody has waited") != std::string::npos);
}

TEST_CASE("blocks that store to one place race; atomics do not") {
  check_found(CheckKind::kRace, Severity::kError,
              [](Memory& m) { return checked::blocks_race(m.out.data()); });
  check_clean([](Memory& m) { return checked::blocks_add(m.data.data()); });
}

TEST_CASE("a lock orders blocks if it is taken; one that stays as it was does not") {
  const auto launch = [](int taken, bool by_sub) {
    return [taken, by_sub](Memory& m) {
      return checked::locked(m.data.data(), m.data.data() + 64, taken, by_sub);
    };
  };
  check_clean(launch(1, false));
  check_clean(launch(1, true));
  const CheckFinding found = check_found(CheckKind::kRace, Severity::kError, launch(0, false));
  CHECK(found.access.places.at(0).line == line_of("locked"));
}

TEST_CASE("the last block may read what others wrote if they fenced before they counted") {
  const auto launch = [](Fence fence) {
    return [fence](Memory& m) {
      return checked::last_block_done(
          m.data.data(), reinterpret_cast<unsigned*>(m.data.data() + 512), m.out.data(), fence);
    };
  };
  check_clean(launch(Fence::kByEach));
  check_clean(launch(Fence::kByLast));
  for (const Fence fence : {Fence::kNone, Fence::kByOneTooEarly}) {
    const CheckFinding found =
        check_found(CheckKind::kMissingFence, Severity::kError, launch(fence));
    CHECK(found.access.places.at(0).line == line_of("sum"));
    CHECK(found.other.places.at(0).line == line_of("partial"));
  }
}

TEST_CASE("a lane may set the flag for a warp whose lanes fenced and then met") {
  const auto launch = [](bool fenced) {
    return [fenced](Memory& m) {
      return checked::warp_flag(m.data.data(), m.data.data() + 64, m.out.data(), fenced);
    };
  };
  check_clean(launch(true));
  check_found(CheckKind::kMissingFence, Severity::kError, launch(false));
}

TEST_CASE("a volatile flag hands over between blocks after a fence") {
  const auto launch = [](bool fenced) {
    return [fenced](Memory& m) {
      return checked::flag(m.data.data(), m.data.data() + 64, m.out.data(), fenced);
    };
  };
  CHECK(described(checked_launch(launch(true))) == "");
  CHECK(only(checked_launch(launch(false))).kind == CheckKind::kMissingFence);
}

TEST_CASE("a launch is ordered after the one before it, and what it wrote is initialised") {
  check_clean([](Memory& m) { return checked::two_launches(m.out.data(), m.data.data()); });
}

TEST_CASE("global memory that nothing wrote is found when read") {
  const CheckFinding found =
      check_found(CheckKind::kUninitialisedRead, Severity::kError,
                  [](Memory& m) { return checked::read_through(m.out.data(), m.data.data(), 0); });
  CHECK(found.array == "out");
}

TEST_CASE("memory of cudaMalloc is watched from its allocation to its end") {
  const CheckFinding unset =
      check_found(CheckKind::kUninitialisedRead, Severity::kError, [](Memory& m) {
        void* memory = nullptr;
        cudaMalloc(&memory, 64 * sizeof(int));
        const cudaError_t error = checked::read_through(static_cast<int*>(memory), m.out.data(), 0);
        cudaFree(memory);
        return error;
      });
  // It has the name that the kernel gives it.
  CHECK(unset.array == "data");
  CHECK(unset.offset == 0);
  check_clean([](Memory& m) {
    void* memory = nullptr;
    cudaMalloc(&memory, 64 * sizeof(int));
    cudaMemset(memory, 0, 64 * sizeof(int));
    const cudaError_t error = checked::read_through(static_cast<int*>(memory), m.out.data(), 0);
    cudaFree(memory);
    return error;
  });
  check_found(CheckKind::kUseAfterFree, Severity::kError, [](Memory& m) {
    void* memory = nullptr;
    cudaMalloc(&memory, 64 * sizeof(int));
    cudaMemset(memory, 0, 64 * sizeof(int));
    cudaFree(memory);
    return checked::read_through(static_cast<int*>(memory), m.out.data(), 0);
  });
}

TEST_CASE("of memory that was read unwritten it is told what of it is written") {
  constexpr std::size_t kCount = 64;
  const auto found_with = [&](std::size_t from, std::size_t to) {
    return check_found(CheckKind::kUninitialisedRead, Severity::kError, [=](Memory& m) {
      void* memory = nullptr;
      cudaMalloc(&memory, kCount * sizeof(int));
      std::vector<int> zeros(kCount);
      auto* const numbers = static_cast<int*>(memory);
      cudaMemcpy(numbers, zeros.data(), from * sizeof(int), cudaMemcpyHostToDevice);
      cudaMemcpy(numbers + to, zeros.data(), (kCount - to) * sizeof(int), cudaMemcpyHostToDevice);
      const cudaError_t error = checked::read_through(numbers, m.out.data(), 0);
      cudaFree(memory);
      return error;
    });
  };
  const CheckFinding between = found_with(10, 20);
  CHECK(between.written_below == 40);
  CHECK(between.written_above == 80);
  CHECK_THAT(between.advice, Catch::Matchers::Contains("before element 10, and from element 20"));
  const CheckFinding behind = found_with(32, kCount);
  CHECK(behind.written_below == 128);
  CHECK(behind.written_above == -1);
  CHECK_THAT(behind.advice, Catch::Matchers::Contains("nothing from there on: read no further"));
  const CheckFinding before = found_with(0, 8);
  CHECK(before.written_below == -1);
  CHECK(before.written_above == 32);
  CHECK_THAT(found_with(0, kCount).advice, Catch::Matchers::Contains("Write it first"));
}

TEST_CASE("a part that an adapter takes out of its memory has the name that the kernel gives it") {
  const CheckFinding part =
      check_found(CheckKind::kUninitialisedRead, Severity::kError, [](Memory&) {
        void* memory = nullptr;
        cudaMalloc(&memory, 128 * sizeof(int));
        auto* const numbers = static_cast<int*>(memory);
        const cudaError_t error = checked::read_through(numbers + 64, numbers, 0);
        cudaFree(memory);
        return error;
      });
  CHECK(part.array == "data");
  CHECK(part.offset == 0);
}

TEST_CASE("small allocations side by side do not forget what was written of one another") {
  constexpr std::size_t kBytes = 64 * sizeof(int), kMost = 16;
  // Each but `unset` is filled before the next is allocated; every fourth is freed and allocated again.
  const auto read_all = [](std::size_t unset) {
    return [unset](Memory& m) {
      std::vector<void*> all(kMost);
      const auto fill = [&](std::size_t i) {
        cudaMalloc(&all[i], kBytes);
        if (i != unset) cudaMemset(all[i], 0, kBytes);
      };
      for (std::size_t i = 0; i < kMost; ++i) fill(i);
      for (std::size_t i = 0; i < kMost; i += 4) cudaFree(all[i]);
      for (std::size_t i = 0; i < kMost; i += 4) fill(i);
      cudaError_t error = cudaSuccess;
      for (void* memory : all)
        if (error == cudaSuccess)
          error = checked::read_through(static_cast<int*>(memory), m.out.data(), 0);
      for (void* memory : all) cudaFree(memory);
      return error;
    };
  };
  check_clean(read_all(kMost));
  for (std::size_t unset = 0; unset < kMost; ++unset)
    check_found(CheckKind::kUninitialisedRead, Severity::kError, read_all(unset));
}

TEST_CASE("an element of a local array that was not set is found when read") {
  check_clean([](Memory& m) { return checked::local_array_partly_set(m.out.data(), true); });
  const CheckFinding found =
      check_found(CheckKind::kUninitialisedRead, Severity::kError,
                  [](Memory& m) { return checked::local_array_partly_set(m.out.data(), false); });
  CHECK(found.array == "rSum");
  CHECK(found.space == "local");
}

TEST_CASE(
    "no load is made that the source does not make, and those that it makes have their lines") {
  for (const checked::Untaken what : checked::kAllUntaken) {
    CAPTURE(static_cast<int>(what));
    check_clean([&](Memory& m) { return checked::loads_untaken(what, m.out.data(), 4, false); });
    const CheckReport report = checked_launch(
        [&](Memory& m) { return checked::loads_untaken(what, m.out.data(), 4, true); });
    CHECK(!report.findings.empty());
    for (const CheckFinding& found : report.findings) CHECK(!found.access.places.empty());
  }
}

TEST_CASE("a load that no line makes is no error") {
  const CheckReport report =
      checked_launch([](Memory& m) { return checked::load_without_line(m.out.data()); });
  const CheckFinding found = only(report);
  CHECK(found.kind == CheckKind::kUninitialisedRead);
  CHECK(found.severity == Severity::kLatent);
  CHECK(found.access.places.empty());
  CHECK(report.summary.symbolizer_note.empty());
}

#if !defined(__SANITIZE_ADDRESS__)  // whose runtime prints these itself
TEST_CASE("a vector load from an address that is not aligned to it is found") {
  check_clean([](Memory& m) { return checked::read_as_vector(m.data.data(), m.out.data(), 4); });
  const CheckFinding found = only(checked_launch(
      [](Memory& m) { return checked::read_as_vector(m.data.data(), m.out.data(), 1); }));
  CHECK(found.kind == CheckKind::kMisaligned);
}

TEST_CASE("such a load of a variable of the thread is latent, and what follows is run") {
  check_clean([](Memory& m) { return checked::read_local_as_vector(m.out.data(), 2); });
  const CheckFinding found = only(
      checked_launch([](Memory& m) { return checked::read_local_as_vector(m.out.data(), 1); }));
  CHECK(found.kind == CheckKind::kMisaligned);
  CHECK(found.severity == Severity::kLatent);
  CHECK(found.space == "local");
  CHECK(found.array.empty());
}

TEST_CASE("an index that overflows int is found, with its operands") {
  check_clean([](Memory& m) { return checked::overflow(m.in.data(), m.out.data(), 1 << 20); });
  const CheckFinding found = check_found(CheckKind::kIntOverflow, Severity::kError, [](Memory& m) {
    return checked::overflow(m.in.data(), m.out.data(), 1 << 28);
  });
  CHECK(found.message.find("8 * 268435456") != std::string::npos);
  CHECK(found.access.places.at(0).line == line_of("overflow"));
}
#endif

}  // namespace attn_diag::host
