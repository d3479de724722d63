// Kernels that end themselves.
#include <cstdio>
#include <cstdlib>

#include "attn_diag_host/kernel_limits.h"
#include "attn_diag_host/trap.h"
#include "harness/host/block_runner.h"
#include "harness/host/text.h"

namespace attn_diag::host {

void trap(const char* file, int line) {
  if (BlockRunner* runner = BlockRunner::current())
    runner->report_trap("calls __trap()", "See what led there", file, line);
  std::abort();
}

void BlockRunner::report_trap(const char* what, const char* advice, const char* file, int line) {
  {
    record(LaunchFindingKind::kTrap,
           concat(thread_name(*x_current), ' ', what, " at ", file, ':', line), advice, file, line);
  }
  leave_for_good();
}

void BlockRunner::report_failed_assert(const char* condition, const char* file, int line) {
  {
    record(LaunchFindingKind::kTrap,
           concat(thread_name(*x_current), " fails assert(", condition, ") at ", file, ':', line),
           "The condition does not hold there", file, line);
  }
  leave_for_good();
}

void BlockRunner::report_left_out() {
  {
    record(LaunchFindingKind::kLeftOut, "the kernel was left out of this build", "Build all of it",
           "", 0);
  }
  leave_for_good();
}

void launch_bounds_exceeded(unsigned most_threads, const char* file, int line) {
  BlockRunner::current()->report_launch_bounds(most_threads, file, line);
}

void BlockRunner::report_launch_bounds(unsigned most_threads, const char* file, int line) {
  {
    record(LaunchFindingKind::kLaunchConfig,
           concat("a block has ", blockDim.x * blockDim.y * blockDim.z,
                  " threads, but the kernel's __launch_bounds__ at ", file, ':', line, " allow ",
                  most_threads),
           "Launch fewer threads, or raise the bounds", file, line);
  }
  leave_for_good();
}

}  // namespace attn_diag::host

// What is left of a kernel that a build leaves out.
extern "C" __attribute__((visibility("default"), noreturn)) void attn_diag_left_out() {
  if (auto* runner = attn_diag::host::BlockRunner::current()) runner->report_left_out();
  std::abort();
}

// What assert() calls: this library comes before libc in the order of symbol resolution. On the host it is
// what libc's is.
extern "C" __attribute__((visibility("default"), noreturn)) void __assert_fail(
    const char* condition, const char* file, unsigned int line, const char* function) noexcept {
  if (auto* runner = attn_diag::host::BlockRunner::current())
    runner->report_failed_assert(condition, file, static_cast<int>(line));
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, condition);
  std::abort();
}
