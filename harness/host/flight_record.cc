#include "attn_diag/harness/host/flight_record.h"

#include <atomic>

#include "harness/host/block_runner.h"
#include "harness/host/flight_names.h"

namespace attn_diag::host {
namespace {

constexpr std::size_t kMaxRunners = 1024;  // threads beyond these are not found from another thread

std::atomic<bool> g_enabled{false};
std::array<std::atomic<const BlockRunner*>, kMaxRunners> g_runners{};
std::array<char, 256> g_last_kernel{};  // torn at worst where two threads launch at once

std::array<char, 1024> g_failed{};  // as above
std::array<char, 256> g_failed_file{};
int g_failed_line = 0;

template <std::size_t kSize>
void copy(std::array<char, kSize>& to, const char* from) noexcept {
  std::size_t i = 0;
  for (; from != nullptr && from[i] != '\0' && i + 1 < to.size(); ++i) to[i] = from[i];
  to[i] = '\0';
}

}  // namespace

void enable_flight_records() { g_enabled = true; }

void note_launch(LaunchPlan& plan) {
  if (!g_enabled) return;
  plan.kernel_name = kernel_name(plan.call);
  copy(g_last_kernel, plan.kernel_name.c_str());
}

void note_failure(const LaunchFinding& finding) {
  if (!g_enabled) return;
  copy(g_failed, finding.message.c_str());
  copy(g_failed_file, finding.file.c_str());
  g_failed_line = finding.line;
}

void enter_flight(const BlockRunner& runner) noexcept {
  for (auto& place : g_runners) {
    const BlockRunner* none = nullptr;
    if (place.compare_exchange_strong(none, &runner)) return;
  }
}

void leave_flight(const BlockRunner& runner) noexcept {
  for (auto& place : g_runners) {
    const BlockRunner* mine = &runner;
    if (place.compare_exchange_strong(mine, nullptr)) return;
  }
}

void BlockRunner::describe(FlightRecord& out) const noexcept {
  const Fiber& fiber = *x_current;
  const dim3 grid = x_plan->config.gridDim;
  out.in_kernel = true;
  copy(out.kernel, x_plan->kernel_name.c_str());
  out.block = {static_cast<unsigned>(x_number % grid.x),
               static_cast<unsigned>(x_number / grid.x % grid.y),
               static_cast<unsigned>(x_number / grid.x / grid.y)};
  out.thread = {fiber.index.x, fiber.index.y, fiber.index.z};
  copy(out.file, fiber.file);
  out.line = fiber.file != nullptr ? fiber.line : 0;
  out.stack_bottom = x_stack[fiber.index.linear].bottom;
  out.stack_top = x_stack[fiber.index.linear].top;
}

void read_flight_record(FlightRecord& out) noexcept {
  copy(out.failed, g_failed.data());
  copy(out.failed_file, g_failed_file.data());
  out.failed_line = g_failed_line;
  const BlockRunner* found = BlockRunner::current();
  for (auto place = g_runners.begin(); found == nullptr && place != g_runners.end(); ++place)
    if (const BlockRunner* runner = *place; runner != nullptr && runner->is_running())
      found = runner;
  if (found != nullptr)
    found->describe(out);
  else
    copy(out.kernel, g_last_kernel.data());
}

}  // namespace attn_diag::host
