#include "harness/host/block_runner.h"

#include <exception>

#include "attn_diag_host/indices.h"
#include "harness/host/flight_names.h"
#include "harness/host/grid_barrier.h"

namespace attn_diag::host {

BlockRunner::BlockRunner() { enter_flight(*this); }

BlockRunner::~BlockRunner() { leave_flight(*this); }

void BlockRunner::begin_launch(const LaunchPlan& plan) {
  BlockContext::begin_launch(plan, &fiber_main);
  x_memory.begin_launch(plan);
  x_check = nullptr;
  if (plan.checker != nullptr) {
    if (x_made_check == nullptr) x_made_check = std::make_unique<BlockChecker>();
    x_check = x_made_check.get();
    x_check->begin_launch(plan, x_memory.static_storage(), x_memory.dynamic().data());
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
  blockDim = plan.config.blockDim;
  gridDim = plan.config.gridDim;
}

BlockOutcome BlockRunner::run_block(std::uint64_t number) {
  const dim3 grid = x_plan->config.gridDim;
  x_number = number;
  blockIdx = {static_cast<unsigned>(number % grid.x),
              static_cast<unsigned>(number / grid.x % grid.y),
              static_cast<unsigned>(number / grid.x / grid.y)};
  x_memory.poison();
  if (x_check != nullptr) x_check->begin_block(number, x_threads);
  if (x_values != nullptr) begin_values(number);
  begin_block(number);
  x_barriers.begin_block();
  x_collectives.begin_block();

  s_running = this;
  Fiber& first = start();
  x_running = true;
  enter_block(first);
  x_running = false;
  s_running = nullptr;
  if (x_check != nullptr)
    x_check->end_block();  // which has seen what a guard only shows
  else if (!x_abandoned)
    x_memory.check_guards();

  note_block_ended(number);
  x_copies.end_block(x_abandoned);
  if (x_abandoned) {
    if (is_silent()) record_silence();
    record_what_ended_block();
    for (unsigned t = 0; t < x_made; ++t) renew(t);
  } else {
    x_barriers.note_open();
  }
  x_outcome.silent = is_silent();
  x_outcome.steps = x_steps;
  return std::move(x_outcome);
}

void BlockRunner::fiber_main() {
  BlockRunner& runner = *current();
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
  const unsigned thread = current_thread();
  x_copies.thread_exited(thread);
  thread_exits();
  if (x_live == 0) {
    leave_block(false);
    return;
  }
  // What the others wait for may be complete without this thread.
  x_collectives.thread_exited(thread);
  if (x_barriers.thread_exited())
    switch_to_first();
  else
    switch_to_next_or_report();
}

}  // namespace attn_diag::host
