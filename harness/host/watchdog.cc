#include "harness/host/watchdog.h"

#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "harness/host/random.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace attn_diag::host {
namespace {

// A signal at which gdb does not stop.
constexpr int kSignal = SIGVTALRM;

struct sigaction g_previous;

timespec to_timespec(double seconds) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  return time;
}

}  // namespace

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::uintptr_t Interrupted::program_counter() const {
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(x_context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

std::uintptr_t Interrupted::stack_pointer() const {
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(x_context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return machine.sp;
#else
  return 0;
#endif
}

std::uintptr_t Interrupted::return_address() const {
#if defined(__aarch64__)
  return static_cast<const ucontext_t*>(x_context)->uc_mcontext.regs[30];
#else
  return *reinterpret_cast<const std::uintptr_t*>(stack_pointer());
#endif
}

__attribute__((no_sanitize_address)) std::uint64_t Interrupted::fingerprint(
    std::uintptr_t stack_top) const {
  constexpr std::size_t kRedZone = 128, kNear = 1024;
  std::uint64_t hash = 0;
  const auto add = [&](const void* from, std::size_t words) __attribute__((no_sanitize_address)) {
    for (std::size_t i = 0; i < words; ++i)
      hash = mix(hash ^ static_cast<const volatile std::uint64_t*>(from)[i]);
  };
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(x_context)->uc_mcontext;
#if defined(__x86_64__)
  static_assert(REG_R8 == 0 && REG_RIP == 16);  // and the other registers between
  add(machine.gregs, REG_RIP + 1);
  if (machine.fpregs != nullptr) add(machine.fpregs->_xmm, sizeof machine.fpregs->_xmm / 8);
#elif defined(__aarch64__)
  add(machine.regs, sizeof machine.regs / 8);
  hash = mix(hash ^ machine.pc);
#endif
  const std::uintptr_t begin = stack_pointer() - kRedZone;
  const std::uintptr_t end = std::min<std::uintptr_t>(begin + kRedZone + kNear, stack_top);
  if (begin < end) add(reinterpret_cast<const void*>(begin / 8 * 8), (end - begin) / 8);
  return hash;
}

void Watchdog::handle(int signal, siginfo_t* info, void* context) {
  if (info->si_code == SI_TIMER && info->si_value.sival_ptr != nullptr) {
    const auto* watchdog = static_cast<const Watchdog*>(info->si_value.sival_ptr);
    const int error = errno;
    watchdog->x_tick(watchdog->x_argument, Interrupted(context));
    errno = error;
  } else if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  }
}

Watchdog::Watchdog(Tick tick, void* argument) : x_tick(tick), x_argument(argument) {
  ensure_timers();
}

void Watchdog::make_timers() {
  static OncePerProcess s_handler;
  s_handler.call([] {
    struct sigaction action {};
    action.sa_sigaction = &handle;
    // The handler may jump to another stack for good, and must find the signal unblocked the next time.
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    if (!install_handler(kSignal, action, g_previous))
      throw std::system_error(errno, std::generic_category(), "sigaction");
  });
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = this;
  event.sigev_notify_thread_id = gettid();
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &x_timer) != 0)
    throw std::system_error(errno, std::generic_category(), "timer_create");
  if (timer_create(CLOCK_MONOTONIC, &event, &x_alarm) == 0) return;
  const int error = errno;
  timer_delete(x_timer);
  throw std::system_error(error, std::generic_category(), "timer_create");
}

void Watchdog::ensure_timers() {
  x_made.call([this] {
    make_timers();
    x_interval = 0;
  });
}

Watchdog::~Watchdog() {
  if (!x_made.is_done()) return;
  timer_delete(x_timer);
  timer_delete(x_alarm);
}

void Watchdog::set_interval(double seconds) {
  ensure_timers();
  if (seconds == x_interval) return;
  x_interval = seconds;
  itimerspec time{};
  time.it_interval = time.it_value = to_timespec(seconds);
  timer_settime(x_timer, 0, &time, nullptr);
}

void Watchdog::call_after(double seconds) {
  ensure_timers();
  itimerspec time{};
  time.it_value = to_timespec(seconds);
  timer_settime(x_alarm, 0, &time, nullptr);
}

}  // namespace attn_diag::host
