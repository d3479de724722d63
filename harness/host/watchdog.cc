#include "harness/host/watchdog.h"

#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace attn_diag::host {
namespace {

// A signal at which gdb does not stop.
constexpr int kSignal = SIGVTALRM;

struct sigaction g_previous;

const void* program_counter([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  return nullptr;
#endif
}

}  // namespace

void Watchdog::handle(int signal, siginfo_t* info, void* context) {
  if (info->si_code == SI_TIMER && info->si_value.sival_ptr != nullptr) {
    const auto* watchdog = static_cast<const Watchdog*>(info->si_value.sival_ptr);
    watchdog->x_tick(watchdog->x_argument, program_counter(context));
  } else if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  }
}

void Watchdog::install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &handle;
    // The handler may jump to another stack for good, and must find the signal unblocked the next time.
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    if (sigaction(kSignal, &action, &g_previous) != 0)
      throw std::system_error(errno, std::generic_category(), "sigaction");
  });
}

Watchdog::Watchdog(Tick tick, void* argument) : x_tick(tick), x_argument(argument) {
  install_handler();
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = this;
  event.sigev_notify_thread_id = gettid();
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &x_timer) != 0)
    throw std::system_error(errno, std::generic_category(), "timer_create");
}

Watchdog::~Watchdog() { timer_delete(x_timer); }

void Watchdog::set_interval(double seconds) {
  if (seconds == x_interval) return;
  x_interval = seconds;
  itimerspec time{};
  time.it_interval.tv_sec = static_cast<time_t>(seconds);
  time.it_interval.tv_nsec =
      static_cast<long>((seconds - static_cast<double>(time.it_interval.tv_sec)) * 1e9);
  time.it_value = time.it_interval;
  timer_settime(x_timer, 0, &time, nullptr);
}

}  // namespace attn_diag::host
