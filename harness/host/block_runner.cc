#include "harness/host/block_runner.h"

#include <exception>

#include "attn_diag_host/indices.h"
#include "harness/host/block_runner_switch.h"
#include "harness/host/flight_names.h"
#include "harness/host/grid_barrier.h"
#include "harness/host/random.h"
#include "harness/host/sanitizer.h"

namespace attn_diag::host {
namespace {

constexpr double kTickSeconds = 5e-3;

}  // namespace

thread_local constinit BlockRunner* BlockRunner::s_current = nullptr;

void* dynamic_shared_memory() { return BlockRunner::current()->dynamic_shared_memory(); }

BlockRunner::BlockRunner() : x_watchdog(&tick, this) { enter_flight(*this); }

BlockRunner::~BlockRunner() { leave_flight(*this); }

void BlockRunner::renew(unsigned thread) {
  FiberStack& stack = x_stack[thread];
  const std::size_t bytes = stack.top - stack.bottom;
  forget_poison(stack.bottom, bytes);
  stack.sanitizer_stack = nullptr;
  x_fibers[thread].context = make_context(stack.top, bytes, &fiber_main);
}

void BlockRunner::begin_launch(const LaunchPlan& plan) {
  const dim3 shape = plan.config.blockDim;
  x_plan = &plan;
  x_seen_progress = 0;
  x_kind = plan.schedule.kind;
  x_warp_order = plan.schedule.warps;
  x_step_limit = plan.step_limit;
  x_threads = shape.x * shape.y * shape.z;
  x_words = (x_threads + 63) / 64;
  for (; x_made < x_threads; ++x_made) {
    x_stack[x_made] = x_stacks.allocate();
    renew(x_made);
  }
  if (shape.x != x_indexed_for.x || shape.y != x_indexed_for.y || shape.z != x_indexed_for.z) {
    x_indexed_for = dim3(0, 0, 0);
    for (unsigned t = 0; t < x_threads; ++t)
      x_fibers[t].index = {{t % shape.x, t / shape.x % shape.y, t / shape.x / shape.y}, t};
    x_indexed_for = shape;
  }
  place_shared_memory();
  x_latent_places.clear();
  x_check = nullptr;
  if (plan.checker != nullptr) {
    if (x_made_check == nullptr) x_made_check = std::make_unique<BlockChecker>();
    x_check = x_made_check.get();
    x_check->begin_launch(plan, x_static_storage, x_dynamic.data());
    for (unsigned t = 0; t < x_made; ++t)
      plan.checker->ignore(x_stack[t].bottom, x_stack[t].top - x_stack[t].bottom);
    plan.checker->ignore(address(&threadIdx), sizeof threadIdx);
    plan.checker->ignore(address(&blockIdx), sizeof blockIdx);
    plan.checker->ignore(address(&blockDim), sizeof blockDim);
    plan.checker->ignore(address(&gridDim), sizeof gridDim);
  }
  x_values = plan.values;
  x_watches_values = false;
  prepare_for_faults();
  x_watches_memory = is_lockstep() || x_check != nullptr;
  x_easy_check = is_lockstep() ? nullptr : x_check;
  x_watchdog.set_interval(kTickSeconds);
  blockDim = shape;
  gridDim = plan.config.gridDim;
}

BlockOutcome BlockRunner::run_block(std::uint64_t number) {
  const dim3 grid = x_plan->config.gridDim;
  x_number = number;
  blockIdx = {static_cast<unsigned>(number % grid.x),
              static_cast<unsigned>(number / grid.x % grid.y),
              static_cast<unsigned>(number / grid.x / grid.y)};
  poison_shared_memory();
  if (x_check != nullptr) x_check->begin_block(number, x_threads);
  if (x_values != nullptr) begin_values(number);

  for (unsigned w = 0; w < x_words; ++w) {
    const unsigned bits = x_threads - w * 64;
    x_alive[w] = x_runnable[w] = bits >= 64 ? ~0ull : (1ull << bits) - 1;
    x_polling[w] = 0;
  }
  for (unsigned w = 0; w * kWarpSize < x_threads; ++w) {
    x_warps[w].live = runnable_lanes(w);
    x_warps[w].pending = x_warps[w].displaced = 0;
    if (is_lockstep()) x_regions[w].clear();
  }
  for (unsigned t = 0; t < x_threads; ++t) {
    Fiber& fiber = x_fibers[t];
    fiber.file = nullptr;
    fiber.wait = Wait::kNone;
    x_position[t] = Position{};
  }
  x_live = x_threads;
  x_arrived = 0;
  x_barrier_differs = false;
  x_ayes = 0;
  x_named.open = 0;
  x_idle_rounds = 0;
  x_steps = x_round_steps = 0;
  x_abandoned = false;
  x_silent = false;
  x_interrupted = false;
  x_idle_atomics = 0;
  x_turn_begin = 0;
  ++x_blocks_run;
  x_random = mix(mix(x_plan->schedule.seed) + number);
  x_outcome = BlockOutcome{};

  s_current = this;
  if (x_plan->turns->polling()) look_soon();
  x_current = &x_fibers[0];
  Fiber& first = first_thread();
  x_current = &first;
  threadIdx = first.index;
  const FiberStack& stack = x_stack[first.index.linear];
  leaving_stack(&x_worker_sanitizer_stack, stack.bottom, stack.top - stack.bottom);
  x_from_worker = true;
  x_running = true;
  switch_context(x_worker, first.context);
  arrived_on_stack(x_worker_sanitizer_stack);
  x_running = false;
  s_current = nullptr;
  if (x_check != nullptr)
    x_check->end_block();  // which has seen what a guard only shows
  else if (!x_abandoned)
    check_guards();

  note_block_ended(number);
  if (x_copies_in_flight) {
    if (x_abandoned)
      x_copies = CopiesInFlight(kMaxThreads);
    else
      note_dropped_copies();
    x_copies_in_flight = false;
  }
  if (x_named.open != 0 && !x_abandoned) note_open_named_barriers();
  if (x_abandoned) {
    if (x_silent) record_silence();
    record_what_ended_block();
    for (unsigned t = 0; t < x_made; ++t) renew(t);
  }
  x_outcome.silent = x_silent;
  x_outcome.steps = x_steps;
  return std::move(x_outcome);
}

void BlockRunner::fiber_main() {
  BlockRunner& runner = *s_current;
  runner.arrived_on_fiber();
  for (;;) {
    runner.run_thread();
    runner.exit_thread();
  }
}

void BlockRunner::run_thread() {
  const KernelCall& call = x_plan->call;
  try {
    call.call(call.kernel, call.arguments);
    return;
  } catch (const std::exception& error) {
    record_exception(error.what());
  } catch (...) {
    record_exception("not a std::exception");
  }
  leave_for_good();
}

void BlockRunner::exit_thread() {
  Fiber& fiber = *x_current;
  const unsigned thread = fiber.index.linear;
  const unsigned warp_number = thread / kWarpSize;
  clear_runnable(thread);
  x_alive[thread / 64] &= ~(1ull << (thread % 64));
  fiber.wait = Wait::kNone;
  if (x_copies_in_flight) x_copies.drop(thread);
  if (is_lockstep()) let_go_on(warp_number, x_regions[warp_number].exit(thread % kWarpSize));
  if (--x_live == 0) {
    leave_block(false);
    return;
  }
  // What the others wait for may be complete without this thread.
  Warp& warp = x_warps[warp_number];
  warp.live &= ~(1u << (thread % kWarpSize));
  for (std::uint32_t pending = warp.pending; pending != 0; pending &= pending - 1) {
    Warp::Group& group = warp.groups[__builtin_ctz(pending)];
    if (group.arrived == (group.mask & warp.live)) complete_group(warp, warp_number, group);
  }
  if (x_named.open != 0) release_named_barriers_of_all();
  if (x_arrived == x_live) {
    release_barrier();
    switch_to(first_thread());
  } else {
    switch_to_next_or_report();
  }
}

}  // namespace attn_diag::host
