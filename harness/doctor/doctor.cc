#include "harness/doctor/doctor.h"

#include <H5public.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "harness/base/helper.h"
#include "harness/base/parallel_for.h"
#include "harness/base/process.h"

namespace attn_diag {
namespace {

// "13.0.88" of "... release 13.0, V13.0.88".
std::string version_of(const std::string& nvcc) {
  const std::string text = run_process({nvcc, "--version"}).out;
  const std::size_t at = text.rfind(" V");
  if (at == std::string::npos) return "";
  const std::size_t end = text.find_first_not_of("0123456789.", at + 2);
  return text.substr(at + 2, end == std::string::npos ? end : end - at - 2);
}

// Small, with tails and a mask, and of a head_dim that every kernel takes.
Problem small_problem() {
  Problem p;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 40;
  p.head_dim = p.head_dim_v = 64;
  p.mask.kind = MaskKind::kCausal;
  p.softmax_scale = 0.125f;
  return p;
}

// Empty if the kernel runs and agrees with the reference.
std::string why_it_fails(const std::string& kernel, const std::string& backend) {
  try {
    const Problem problem = small_problem();
    const Kernel loaded = Kernel::load(kernel, backend);
    RunOptions options;
    options.taps = has_gate(loaded.info(), options.gate);
    const Capture capture =
        run_kernel({loaded, problem, make_inputs(problem, "randn", 0, 1.0), options});
    if (compare_with_reference(capture, {}).agrees() && !capture.repetition.moved()) return "";
    return fmt::format("{} runs, but is wrong. See attn-diag trace --kernel {} --backend {}.",
                       kernel, kernel, backend);
  } catch (const Error& e) {
    return e.what();
  }
}

// Runs kernels, each in a process of its own, since their code may do anything. Must be made before this process
// asks for GPUs: the CUDA runtime does not work in children of one that has.
class Trials {
 public:
  struct KernelHealth {
    std::string why_not;  // empty if the kernel runs and agrees
    bool ended = false;   // by its own code
  };
  KernelHealth try_kernel(const std::string& kernel, const std::string& backend) {
    const Bytes answer = x_starter.ask(WireWriter().text(kernel).text(backend).take());
    WireReader from(answer);
    KernelHealth health;
    health.ended = from.truth();
    health.why_not = from.text();
    return health;
  }

 private:
  static Bytes in_another(const Bytes& question) {
    static constexpr HelperLimits kLimits{.seconds_per_answer = 60};
    WireReader from(question);
    const std::string kernel = from.text(), backend = from.text();
    try {
      Helper one(kLimits, [&](const Bytes&) {
        return WireWriter().truth(false).text(why_it_fails(kernel, backend)).take();
      });
      return one.ask({});
    } catch (const HelperLost& lost) {
      return WireWriter()
          .truth(true)
          .text(fmt::format("The code of {} failed in a small run: {}.", kernel, lost.what()))
          .take();
    }
  }

  Helper x_starter{HelperLimits{}, in_another};
};

// Tries the kernels that could run until one does. One that refuses the small case may take others; one that
// ends the process cannot run.
BackendHealth examine_backend(const std::string& name, std::vector<LibraryHealth>& all,
                              Trials& trials) {
  BackendHealth health;
  health.name = name;
  health.why_not = fmt::format(
      "No kernel built for backend {} was found. Build the targets *_kernel{}, or name their "
      "folder in "
      "ATTN_DIAG_KERNEL_PATH.",
      name, name == "cuda" ? "_cuda, which there are where nvcc is found" : "");
  for (LibraryHealth& l : all) {
    if (l.library.backend != name || l.library.lockstep || !l.library.fault.empty()) continue;
    health.why_not = l.why_not;
    if (!health.why_not.empty()) continue;
    const std::string kernel = l.library.spec(l.library.kernels.front());
    const Trials::KernelHealth tried = trials.try_kernel(kernel, name);
    health.why_not = tried.why_not;
    if (tried.ended) l.why_not = tried.why_not;
    if (!health.why_not.empty()) continue;
    health.ran = kernel;
    break;
  }
  return health;
}

bool any_of_these(const Health& h, bool (*wanted)(const LibraryEntry&)) {
  return std::any_of(h.libraries.begin(), h.libraries.end(),
                     [&](const LibraryHealth& l) { return wanted(l.library); });
}

void find_lacks(Health& h) {
  const auto lack = [&](const std::string& what, const std::string& why) {
    h.lacks.push_back({what, why});
  };
  if (!h.host.works()) lack("backend host", h.host.why_not);
  if (!h.cuda.works()) lack("backend cuda", h.cuda.why_not);
  if (h.toolkit_found.nvcc.empty())
    lack("building kernels for GPUs",
         "nvcc is neither on the PATH nor in /usr/local/cuda/bin. Install the CUDA toolkit, or "
         "build "
         "on another machine and carry the libraries here.");
  std::vector<std::string> stale;
  for (const LibraryHealth& l : h.libraries) {
    // What a backend lacks as a whole is said once.
    const bool whole = l.library.backend == "cuda" && !h.gpus.usable();
    if (!l.why_not.empty() && !whole) lack(l.library.path, l.why_not);
    if (l.library.stale) stale.push_back(std::filesystem::path(l.library.path).filename().string());
  }
  if (!stale.empty())
    lack("trusting " + fmt::format("{}", fmt::join(stale, ", ")),
         "Their sources have changed since they were built. Build them again.");
  if (!any_of_these(h, [](const LibraryEntry& l) { return l.lockstep; }))
    lack("schedule lockstep", "No *.lockstep.so was found. Build the targets *_kernel_lockstep.");
  if (!any_of_these(h, [](const LibraryEntry& l) { return !l.fault.empty(); }))
    lack("fault kernels",
         "None are built. cmake --build <build> --target fault_kernels, and fault_kernels_cuda for "
         "GPUs.");
}

}  // namespace

std::string why_not_here(const LibraryEntry& library, const GpuState& gpus) {
  if (!library.problem.empty()) return library.problem;
  if (library.backend != "cuda") return "";
  return gpus.usable() ? why_not_on(library.architectures, gpus.gpus.front()) : gpus.why_not;
}

Toolkit find_toolkit(const std::string& path) {
  std::istringstream directories(path + ":/usr/local/cuda/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string nvcc = directory + "/nvcc";
    if (!directory.empty() && access(nvcc.c_str(), X_OK) == 0) return {nvcc, version_of(nvcc)};
  }
  return {};
}

Health examine() {
  Trials trials;
  Health h;
  h.compiler = ATTN_DIAG_COMPILER;
  h.toolkit_built = {ATTN_DIAG_BUILT_NVCC, ATTN_DIAG_BUILT_NVCC_VERSION};
  h.hdf5_built = fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
  std::array<unsigned, 3> version{};
  H5get_libversion(&version[0], &version[1], &version[2]);
  h.hdf5_running = fmt::format("{}.{}.{}", version[0], version[1], version[2]);
  h.cores = resolve_threads(0);
  const char* const path = std::getenv("PATH");
  h.toolkit_found = find_toolkit(path == nullptr ? "" : path);
  h.gpus = gpu_state();
  h.searched = kernel_directories();
  for (LibraryEntry& library : list_libraries()) {
    LibraryHealth l;
    l.why_not = why_not_here(library, h.gpus);
    l.library = std::move(library);
    h.libraries.push_back(std::move(l));
  }
  h.host = examine_backend("host", h.libraries, trials);
  h.cuda = examine_backend("cuda", h.libraries, trials);
  if (!h.gpus.usable()) h.cuda.why_not = h.gpus.why_not;
  find_lacks(h);
  return h;
}

}  // namespace attn_diag
