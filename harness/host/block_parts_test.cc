// The parts of a block, each alone: a block with threads that are C++ functions, and the one part.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/host/block_barriers.h"
#include "harness/host/block_collectives.h"
#include "harness/host/block_mbarriers.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

class TestBlock final : public BlockContext {
 public:
  TestBlock(unsigned threads, ScheduleKind kind, std::size_t shared_bytes = 0)
      : x_turns(1, TurnLimits{}, [] { return false; }) {
    x_test_plan.config.blockDim = dim3(threads, 1, 1);
    x_test_plan.config.gridDim = dim3(1, 1, 1);
    x_test_plan.config.dynamicSmemBytes = shared_bytes;
    x_test_plan.call = KernelCall{nullptr, nullptr, nullptr, false, "test", nullptr, 0};
    x_test_plan.schedule.kind = kind;
    x_test_plan.step_limit = 1 << 20;
    x_test_plan.turns = &x_turns;
    begin_launch(x_test_plan, &fiber_main);
    x_memory.begin_launch(x_test_plan);
    begin_block(0);
  }

  // Runs body(thread) in every thread; after each, `exited`, which says whether all others may go on.
  BlockOutcome run(
      std::function<void(unsigned)> body,
      std::function<bool(unsigned)> exited = [](unsigned) { return false; }) {
    x_body = std::move(body);
    x_exited = std::move(exited);
    s_running = this;
    enter_block(start());
    s_running = nullptr;
    return x_outcome;
  }

 private:
  static void fiber_main() {
    auto& self = *static_cast<TestBlock*>(running());
    self.arrived_on_fiber();
    for (;;) {
      const unsigned thread = self.current_thread();
      self.x_body(thread);
      self.thread_exits();
      if (self.x_live == 0)
        self.leave_block(false);
      else if (self.x_exited(thread))
        self.switch_to_first();
      else
        self.switch_to_next_or_report();
    }
  }

  BlockTurns x_turns;
  LaunchPlan x_test_plan;
  std::function<void(unsigned)> x_body;
  std::function<bool(unsigned)> x_exited;
};

constexpr ScheduleKind kKinds[] = {ScheduleKind::kForward, ScheduleKind::kReverse,
                                   ScheduleKind::kSeeded};

TEST_CASE("scheduler alone: threads run in the order of the schedule") {
  std::vector<unsigned> order;
  TestBlock(70, ScheduleKind::kForward).run([&](unsigned thread) { order.push_back(thread); });
  REQUIRE(order.size() == 70);
  for (unsigned i = 0; i < 70; ++i) CHECK(order[i] == i);
  order.clear();
  TestBlock(70, ScheduleKind::kReverse).run([&](unsigned thread) { order.push_back(thread); });
  REQUIRE(order.size() == 70);
  for (unsigned i = 0; i < 70; ++i) CHECK(order[i] == 69 - i);
}

TEST_CASE("barriers alone: nobody passes before all have arrived, and votes are counted") {
  for (const ScheduleKind kind : kKinds) {
    TestBlock block(96, kind);
    BlockBarriers barriers(block);
    barriers.begin_block();
    unsigned arrived = 0, early = 0, wrong_votes = 0;
    const BlockOutcome outcome = block.run([&](unsigned thread) {
      ++arrived;
      const BarrierVotes votes = barriers.barrier_vote(thread % 3 == 0, "x.cu", 1, 0, 0);
      early += arrived != 96;
      wrong_votes += votes.ayes != 32 || votes.all != 96;
    });
    CHECK(!outcome.finding);
    CHECK(early == 0);
    CHECK(wrong_votes == 0);
  }
}

TEST_CASE("barriers alone: different lines are a finding that says who waits where") {
  TestBlock block(32, ScheduleKind::kForward);
  BlockBarriers barriers(block);
  barriers.begin_block();
  const BlockOutcome outcome = block.run(
      [&](unsigned thread) { barriers.barrier(block, "x.cu", thread < 4 ? 10 : 20, 0, 0); });
  REQUIRE(outcome.finding);
  CHECK(outcome.finding->kind == LaunchFindingKind::kBarrierDivergence);
  CHECK(contains(outcome.finding->message, "threads (0..3,0,0) at __syncthreads at x.cu:10"));
}

TEST_CASE("barriers alone: a named barrier counts those that arrive") {
  for (const ScheduleKind kind : kKinds) {
    TestBlock block(64, kind);
    BlockBarriers barriers(block);
    barriers.begin_block();
    unsigned arrived = 0, early = 0;
    const BlockOutcome outcome = block.run([&](unsigned thread) {
      ++arrived;
      barriers.named_barrier(3, 64, thread >= 32, "x.cu", 1, 0, 0);
      if (thread >= 32) early += arrived != 64;
    });
    CHECK(!outcome.finding);
    CHECK(early == 0);
  }
}

TEST_CASE("collectives alone: a shuffle brings the other lane's value") {
  for (const ScheduleKind kind : kKinds) {
    TestBlock block(64, kind);
    WarpCollectives collectives(block);
    collectives.begin_block();
    unsigned wrong = 0;
    const BlockOutcome outcome = block.run([&](unsigned thread) {
      const unsigned other = thread % 32 ^ 1u;
      const std::uint64_t got =
          collectives.collective(block, warp_call(WarpOp::kShuffleXor, 32, other), 0xFFFFFFFFu,
                                 std::uint64_t{100} + thread, "x.cu", 1, 0, 0);
      wrong += got != 100 + (thread ^ 1u);
    });
    CHECK(!outcome.finding);
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "collectives alone: a lane that ended no longer counts; one that waits elsewhere is missed") {
  const auto run = [](bool last_ends) {
    TestBlock block(32, ScheduleKind::kForward);
    WarpCollectives collectives(block);
    collectives.begin_block();
    return block.run(
        [&](unsigned thread) {
          if (thread == 31 && last_ends) return;
          const unsigned mask = thread == 31 ? 0x80000001u : 0xFFFFFFFFu;
          collectives.collective(block, warp_call(WarpOp::kSync), mask, 0, "x.cu", 7, 0, 0);
        },
        [&](unsigned thread) {
          collectives.thread_exited(thread);
          return false;
        });
  };
  CHECK(!run(true).finding);
  const BlockOutcome missed = run(false);
  REQUIRE(missed.finding);
  CHECK(missed.finding->kind == LaunchFindingKind::kWarpDivergence);
  CHECK(contains(missed.finding->message, "__syncwarp with mask 0x80000001 at x.cu:7"));
}

TEST_CASE("mbarriers alone: a phase ends with the last arrival, and one too many is a finding") {
  TestBlock block(32, ScheduleKind::kForward, 64);
  CopiesInFlight copies(kMaxThreads);
  Mbarriers mbarriers(block, copies);
  auto* const barrier = reinterpret_cast<std::uint64_t*>(block.memory().dynamic().data());
  std::vector<bool> left;
  const BlockOutcome outcome = block.run([&](unsigned thread) {
    if (thread != 0) return;
    mbarriers.init(barrier, 2, "x.cu", 1, 0);
    mbarriers.change(barrier, {1, false, 0}, "x.cu", 2, 0, 0);
    left.push_back(mbarriers.test_wait(barrier, false, "x.cu", 3, 0, 0));
    mbarriers.change(barrier, {1, false, 0}, "x.cu", 4, 0, 0);
    left.push_back(mbarriers.test_wait(barrier, false, "x.cu", 5, 0, 0));
    mbarriers.change(barrier, {3, false, 0}, "x.cu", 6, 0, 0);
  });
  CHECK(left == std::vector<bool>{false, true});
  REQUIRE(outcome.finding);
  CHECK(contains(outcome.finding->message,
                 "arrives 3 times at an mbarrier that lacks 2 of 2 arrivals, at x.cu:6"));
}

}  // namespace
}  // namespace attn_diag::host
