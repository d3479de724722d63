// The child's side of a crash report: a signal handler that notes where the process was. It calls only
// what is safe there, except for backtrace() and dl_iterate_phdr(), which come last: if they fail, what
// they would have added is missing.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "harness/report/json.h"
#include "tools/attn_diag/crash_page.h"

namespace attn_diag::cli {
namespace {

CrashPage* g_page = nullptr;

std::uintptr_t program_counter([[maybe_unused]] const ucontext_t& c) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(c.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return c.uc_mcontext.pc;
#else
  return 0;
#endif
}

std::uintptr_t stack_pointer([[maybe_unused]] const ucontext_t& c) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(c.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return c.uc_mcontext.sp;
#else
  return 0;
#endif
}

struct ModuleSearch {
  std::uintptr_t address;
  CrashPage::Frame* frame;
};

int visit_module(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<ModuleSearch*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < begin ||
        search.address - begin >= segment.p_memsz)
      continue;
    search.frame->offset = search.address - object->dlpi_addr;
    std::strncpy(search.frame->module.data(), object->dlpi_name, search.frame->module.size() - 1);
    return 1;
  }
  return 0;
}

void note_frames(std::uintptr_t pc) {
  constexpr int kMost = 2 * CrashPage::kMaxFrames;
  void* addresses[kMost];
  const int n = backtrace(addresses, kMost);
  int first = 0;  // the frames before are the handler's
  while (first < n && reinterpret_cast<std::uintptr_t>(addresses[first]) != pc) ++first;
  const bool found = first < n;
  for (int i = found ? first : -1, used = 0; i < n && used < CrashPage::kMaxFrames; ++i, ++used) {
    // A return address may be the first of another line, or of another function.
    const std::uintptr_t address =
        i < 0 || i == first ? pc : reinterpret_cast<std::uintptr_t>(addresses[i]) - 1;
    CrashPage::Frame& frame = g_page->frames[static_cast<std::size_t>(used)];
    ModuleSearch search{address, &frame};
    dl_iterate_phdr(visit_module, &search);
    g_page->num_frames = used + 1;
    if (!found) break;
  }
}

// exit() called by code that has no business to.
void note_exit() {
  int none = 0;
  if (::getpid() != g_page->process || g_page->finished ||
      !g_page->signal.compare_exchange_strong(none, CrashPage::kExited))
    return;
  host::read_flight_record(g_page->flight);
  note_frames(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
}

void handle(int signal, siginfo_t* info, void* context) {
  int none = 0;
  if (::getpid() == g_page->process && g_page->signal.compare_exchange_strong(none, signal)) {
    const auto& c = *static_cast<const ucontext_t*>(context);
    // A general protection fault comes without an address.
    g_page->has_address =
        (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && info->si_code != SI_KERNEL;
    g_page->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    g_page->stack_pointer = stack_pointer(c);
    host::read_flight_record(g_page->flight);
    g_page->near_buffer =
        g_page->has_address && find_guarded_buffer(g_page->address, g_page->buffer);
    note_frames(program_counter(c));
  }
  // As if nobody had looked. (SA_RESETHAND has put the default back.)
  if (signal == SIGUSR2) _exit(2);
  ::raise(signal);
}

}  // namespace

void watch_for_crashes(CrashPage& page) {
  g_page = &page;
  page.process = ::getpid();
  host::enable_flight_records();
  // AddressSanitizer reports crashes itself, and better.
  const bool sanitized = dlsym(RTLD_DEFAULT, "__asan_init") != nullptr;
  std::atexit(&note_exit);
  void* warm_up[1];
  backtrace(warm_up, 1);  // loads what it needs, which must not happen in a handler

  static std::byte stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  stack_t there{};
  if (sigaltstack(nullptr, &there) == 0 && (there.ss_flags & SS_DISABLE) != 0)
    sigaltstack(&alternate, nullptr);

  struct sigaction action {};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP})
    if (!sanitized) sigaction(signal, &action, nullptr);
  sigaction(SIGUSR2, &action, nullptr);
}

void note_step(const char* step) {
  if (g_page == nullptr) return;
  std::strncpy(g_page->step.data(), step, g_page->step.size() - 1);
}

void note_check(const std::vector<std::string>& words) {
  if (g_page == nullptr) return;
  std::string all;
  for (const std::string& word : words) all.append(word).push_back('\0');
  g_page->check.fill('\0');
  if (all.size() < g_page->check.size()) std::copy(all.begin(), all.end(), g_page->check.begin());
}

void keep_report(const KeptReport& report) {
  if (g_page == nullptr || g_page->report < 0 || ftruncate(g_page->report, 0) != 0) return;
  report::Json junit = report::Json::array();
  for (const report::JunitCase& c : report.junit)
    junit.push_back(
        {c.class_name, c.name, static_cast<int>(c.kind), c.message, c.detail, c.seconds});
  const std::string text = report::dump_json({{"out", report.out}, {"junit", std::move(junit)}});
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n =
        pwrite(g_page->report, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

KeptReport kept_report(const CrashPage& page) {
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while (page.report >= 0 &&
         (n = pread(page.report, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0)
    text.append(buffer, static_cast<std::size_t>(n));
  KeptReport kept;
  const report::Json json = report::Json::parse(text, nullptr, false);
  if (!json.is_object()) return kept;  // none, or cut off by a second crash
  kept.out = json.at("out");
  for (const report::Json& c : json.at("junit"))
    kept.junit.push_back(
        {c[0], c[1], static_cast<report::JunitCase::Kind>(c[2].get<int>()), c[3], c[4], c[5]});
  return kept;
}

}  // namespace attn_diag::cli
