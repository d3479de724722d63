#include "harness/repair/trials.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "attn_diag/harness/check_kernel.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/harness/run.h"
#include "harness/library/support.h"

namespace attn_diag::repair {
namespace {

std::string words_of(const Problem& p, const std::string& more) {
  std::string text = fmt::format("H={}", p.heads);
  if (p.batch > 1) text = fmt::format("B={} {}", p.batch, text);
  if (p.kv_heads != p.heads) text += fmt::format(" KV={}", p.kv_heads);
  text += p.seqlen_q == p.seqlen_k ? fmt::format(" S={}", p.seqlen_q)
                                   : fmt::format(" Sq={} Sk={}", p.seqlen_q, p.seqlen_k);
  text += fmt::format(" D={} {}", p.head_dim, name(p.dtype));
  if (p.mask.kind == MaskKind::kCausal)
    text += p.mask.alignment == CausalAlignment::kBottomRight && p.seqlen_q != p.seqlen_k
                ? " causal:bottom_right"
                : " causal";
  if (p.mask.kind == MaskKind::kWindow)
    text += fmt::format(" window:{},{}", p.mask.window_left, p.mask.window_right);
  return more.empty() ? text : text + ", " + more;
}

// q alone is large: k and v may have to stay within the range of a narrower type.
std::shared_ptr<InputData> with_large_queries(const Problem& problem, std::uint64_t seed,
                                              double factor) {
  auto inputs = std::make_shared<InputData>(make_inputs(problem, "randn", seed, 1));
  inputs->q = make_inputs(problem, "randn", seed, factor).q;
  return inputs;
}

// All scores are far below 0: relative to a maximum that starts at 0, every weight vanishes.
std::shared_ptr<const InputData> low_scores(const Problem& problem) {
  const std::shared_ptr<InputData> inputs = with_large_queries(problem, 3, 36);
  const std::size_t size = size_of(problem.dtype);  // its last byte has the sign
  std::vector<std::byte>&q = inputs->q.edit(), &k = inputs->k.edit();
  for (std::size_t i = size - 1; i < q.size(); i += size) q[i] &= std::byte{0x7f};
  for (std::size_t i = size - 1; i < k.size(); i += size) k[i] |= std::byte{0x80};
  return inputs;
}

// Collects trials whose problem the kernel takes, each once.
class Trials {
 public:
  explicit Trials(const Experiment& given) : x_given(given) {}

  void add(const Problem& problem, std::shared_ptr<const InputData> inputs, RunOptions run,
           const std::string& more, bool check = false) {
    Trial trial;
    trial.words = words_of(problem, more);
    if (!x_seen.insert(trial.words).second) return;
    trial.problem = problem;
    trial.inputs = std::move(inputs);
    run.taps = false;
    run.gate = Gate::kFull;
    run.isolate = false;
    run.threads = 1;
    run.region = whole(problem);
    trial.run = std::move(run);
    trial.tolerance = x_given.tolerance;
    trial.check = check;
    trial.other = x_others;
    trials.push_back(std::move(trial));
  }
  // What is added from now on is not the case itself.
  void begin_others() { x_others = true; }

  // Another problem, with numbers of its own; the tile is the kernel's own choice where it was so.
  void other(Problem problem, const std::string& more = "", std::uint64_t seed = 1) {
    const KernelInfo& info = x_given.kernel.info();
    if (info.support != nullptr && !why_not_supported(*info.support, problem).empty()) return;
    try {
      plan_geometry(x_given.kernel, problem, x_given.run);
      // Files have no kind of their own to make others of.
      const InputData& inputs = x_given.inputs;
      const bool made = std::any_of(input_kinds().begin(), input_kinds().end(),
                                    [&](const InputKindInfo& k) { return inputs.kind == k.name; });
      add(problem,
          std::make_shared<InputData>(
              make_inputs(problem, made ? inputs.kind : "randn", seed, made ? inputs.scale : 1)),
          x_given.run, more);
    } catch (const Error&) {
    }
  }

  std::vector<Trial> trials;

 private:
  const Experiment& x_given;
  std::set<std::string> x_seen;
  bool x_others = false;
};

bool has_default_scale(const Problem& p) {
  return std::fabs(p.softmax_scale * std::sqrt(static_cast<float>(p.head_dim)) - 1) < 1e-5f;
}

// The lines of a finding, with those of the calls around them.
void add_places(const host::CheckFinding& finding, std::vector<SourcePlace>& to) {
  constexpr std::size_t kMost = 12;
  const auto add = [&](const std::vector<host::SourcePlace>& places) {
    for (const host::SourcePlace& at : places) {
      const SourcePlace place{at.file, at.line};
      if (at.line > 0 && to.size() < kMost && std::find(to.begin(), to.end(), place) == to.end())
        to.push_back(place);
    }
  };
  add(finding.access.places);
  if (finding.has_other) add(finding.other.places);
  for (const std::vector<host::SourcePlace>& places : finding.others_wait) add(places);
}

// "threads wait at /x/k.cu:40; ..."
void add_places(std::string_view words, std::vector<SourcePlace>& to) {
  constexpr std::string_view kSources[] = {".cu", ".cuh", ".h", ".hpp", ".inl"};
  for (std::size_t colon = words.find(':'); colon != words.npos;
       colon = words.find(':', colon + 1)) {
    const std::string_view before = words.substr(0, colon);
    const std::string_view file =
        before.substr(before.find_last_of(" \t\n\r\f\v:'\"()") + 1);  // npos + 1 is 0
    if (std::ranges::none_of(kSources, [&](std::string_view end) { return file.ends_with(end); }))
      continue;
    int line = 0;
    std::from_chars(words.data() + colon + 1, words.data() + words.size(), line);
    const SourcePlace place{std::string(file), line};
    if (place.line > 0 && std::find(to.begin(), to.end(), place) == to.end()) to.push_back(place);
  }
}

}  // namespace

bool Trial::instrumented() const { return check || host::is_lockstep(run.schedule); }

std::vector<Trial> make_trials(const Experiment& given, bool instrumented) {
  const Kernel& kernel = given.kernel;
  const Problem& problem = given.problem;
  const RunOptions& options = given.run;
  const auto inputs = std::make_shared<const InputData>(given.inputs);
  Trials to(given);
  const Geometry geometry = plan_geometry(kernel, problem, options);
  to.add(problem, inputs, options,
         options.schedule == "forward" ? "" : "schedule " + options.schedule);
  // As many behind the last whole tile: a kernel may take no others.
  const auto fewer = [](std::int32_t n, std::int32_t tile) {
    return n < 2 * tile ? n : tile + n % tile;
  };
  for (const std::int32_t tile : {32, 64, 0}) {
    for (const bool one_head : {true, false}) {
      Problem less = problem;
      if (tile > 0) {
        less.seqlen_q = fewer(less.seqlen_q, tile);
        less.seqlen_k = fewer(less.seqlen_k, tile);
      }
      if (one_head) {  // of k and v
        less.batch = 1;
        less.heads /= less.kv_heads;
        less.kv_heads = 1;
      }
      const bool is_less = less.seqlen_q < problem.seqlen_q || less.seqlen_k < problem.seqlen_k ||
                           less.heads < problem.heads || less.batch < problem.batch;
      const std::size_t before = to.trials.size();
      if (is_less) to.other(less);
      if (to.trials.size() > before) to.trials.back().smaller = true;
    }
  }
  const auto with = [&](const std::string& schedule, std::uint8_t fill) {
    RunOptions run = options;
    run.schedule = schedule;
    run.fill = MemoryFill::all(fill);
    return run;
  };
  to.add(problem, inputs, with("reverse", 0x00), "schedule reverse, zeros in memory");
  to.add(problem, inputs, with("seed:1", 0x77), "schedule seed:1, large numbers in memory");
  if (options.schedule != "forward") to.add(problem, inputs, with("forward", 0xFF), "");
  if (instrumented) {
    to.add(problem, inputs, with("lockstep", 0xFF), "schedule lockstep");
    to.add(problem, inputs, with("forward", 0xFF), "check", true);
  }
  to.other(problem, "seed 1", 1);
  to.other(problem, "seed 2", 2);
  to.begin_others();
  // Numbers of which a sum without the maximum, or with another, overflows or is lost.
  to.add(problem, with_large_queries(problem, 1, 64), options, "scores up to hundreds");
  to.add(problem, low_scores(problem), options, "scores below -50");

  // Lengths about the edges of tiles, the smallest first.
  const TileShape tile = geometry.tile;
  const auto lengths = [&](const Problem& like) {
    std::set<std::int32_t> edges;
    for (const std::int32_t n : {tile.block_n, tile.block_m})
      if (n > 0 && n <= 256) edges.insert({n - 1, n, n + 1, 2 * n, 2 * n + 1});
    edges.insert({1, 7, 33, 96});
    int taken = 0;
    for (const std::int32_t n : edges) {
      if (n < 1 || n > 300 || taken == 8) continue;
      Problem p = like;
      p.seqlen_q = p.seqlen_k = n;
      const std::size_t before = to.trials.size();
      to.other(p);
      taken += to.trials.size() > before ? 1 : 0;
    }
  };
  Problem small = problem;
  small.batch = 1;
  if (problem.heads == problem.kv_heads) small.heads = small.kv_heads = std::min(problem.heads, 2);
  lengths(small);
  const std::int32_t usual = std::min<std::int32_t>({problem.seqlen_q, problem.seqlen_k, 80});
  small.seqlen_q = small.seqlen_k = usual;

  const auto change = [&](const std::function<void(Problem&)>& edit) {
    Problem p = small;
    edit(p);
    if (has_default_scale(problem))
      p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
    to.other(p);
  };
  change([](Problem& p) { p.batch = 2; });
  change([](Problem& p) { p.heads = p.kv_heads = 3; });
  change([](Problem& p) { p.heads = 4, p.kv_heads = 2; });
  change([](Problem& p) { p.heads = 4, p.kv_heads = 1; });
  change([](Problem& p) { p.seqlen_k = p.seqlen_q + 21; });
  change([](Problem& p) { p.seqlen_q = std::max(1, p.seqlen_k - 21); });
  for (const MaskKind kind : {MaskKind::kNone, MaskKind::kCausal, MaskKind::kWindow})
    for (const CausalAlignment alignment :
         {CausalAlignment::kTopLeft, CausalAlignment::kBottomRight}) {
      if (kind != MaskKind::kCausal && alignment != CausalAlignment::kTopLeft) continue;
      const auto set = [&](Problem& p) {
        p.mask.kind = kind;
        p.mask.alignment = alignment;
        p.mask.window_left = kind == MaskKind::kWindow ? 9 : 0;
        p.mask.window_right = kind == MaskKind::kWindow ? 3 : 0;
      };
      change(set);
      change([&](Problem& p) { set(p), p.seqlen_k = p.seqlen_q + 21; });
    }
  for (const DType type : {DType::kFp16, DType::kBf16, DType::kFp32})
    change([&](Problem& p) { p.dtype = type; });
  const Support* support = kernel.info().support;
  std::vector<std::int32_t> dims = {32, 64};
  if (support != nullptr && support->num_head_dims > 0)
    dims.assign(support->head_dims, support->head_dims + support->num_head_dims);
  for (std::size_t i = 0; i < std::min<std::size_t>(dims.size(), 4); ++i)
    if (dims[i] <= 128) change([&](Problem& p) { p.head_dim = p.head_dim_v = dims[i]; });
  return std::move(to.trials);
}

TrialVerdict run_trial(const std::string& spec, const Trial& trial, int edit,
                       std::vector<bool>* noted, bool name_kernels) {
  TrialVerdict verdict;
  const unsigned char* places = nullptr;
  try {
    // An instrumented library named by itself serves every schedule.
    const bool itself = spec.find(".lockstep.so") != std::string::npos;
    const Kernel kernel = Kernel::load(spec, "host", trial.instrumented() && !itself);
    if (edit > 0 || noted != nullptr) {
      void* const library = ::dlopen(kernel.library_path().c_str(), RTLD_NOW | RTLD_NOLOAD);
      const auto find = [&](const char* name) {
        void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
        if (found == nullptr) throw Error("the library has no edits to choose from");
        return found;
      };
      if (edit > 0) reinterpret_cast<void (*)(int)>(find("attn_diag_choose_edit"))(edit);
      if (noted != nullptr)
        places = reinterpret_cast<unsigned char* (*)()>(find("attn_diag_note_edits"))();
    }
    const auto note_kernels = [&](const void*) {
      if (name_kernels) verdict.kernels = host::launched_kernels(kernel.library_path());
    };
    // However the run ends.
    const std::unique_ptr<const void, decltype(note_kernels)> noting(&kernel, note_kernels);
    if (trial.check) {
      const CheckResult result =
          check_kernel({kernel, trial.problem, *trial.inputs, trial.run}, host::CheckOptions());
      int standing = 0;
      for (const host::CheckFinding& finding : result.report.findings) {
        if (finding.severity == host::Severity::kBenign) continue;
        ++standing;
        verdict.order |= is_of_order(finding.kind);
        add_places(finding, verdict.places);
      }
      verdict.agrees = standing == 0;
      if (standing > 0)
        verdict.what =
            fmt::format("check finds {}: {}", standing, result.report.findings.front().message);
    } else {
      const Capture capture = run_kernel({kernel, trial.problem, *trial.inputs, trial.run});
      const Comparison comparison = compare_with_reference(capture, trial.tolerance, 1);
      verdict.agrees = answer_of(capture, comparison) == Answer::kAgrees;
      verdict.wrong = comparison.mismatched();
      if (!verdict.agrees)
        verdict.what = fmt::format("{} of {} elements are wrong", comparison.mismatched(),
                                   comparison.judged());
    }
  } catch (const Error& e) {
    verdict.what = e.what();
    verdict.refused = dynamic_cast<const RefusedCall*>(&e) != nullptr;
    verdict.left_out = dynamic_cast<const KernelLeftOut*>(&e) != nullptr;
    add_places(verdict.what, verdict.places);
  }
  for (std::size_t i = 0; places != nullptr && i < noted->size(); ++i) (*noted)[i] = places[i] != 0;
  return verdict;
}

}  // namespace attn_diag::repair
