#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "harness/report/text.h"
#include "tools/diagnosis_matrix/sections.h"

namespace attn_diag::diagnosis_matrix {
namespace {

// Numbers that are the same everywhere.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : x_state(seed * 0x9e3779b97f4a7c15ull + 1) {}
  // In [0, count).
  int below(int count) {
    x_state = x_state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int>((x_state >> 33) % static_cast<std::uint64_t>(count));
  }
  template <class T, std::size_t kCount>
  T of(const std::array<T, kCount>& items) {
    return items[static_cast<std::size_t>(below(static_cast<int>(kCount)))];
  }

 private:
  std::uint64_t x_state;
};

struct RightCase {
  Problem problem;
  std::string inputs;
  RunOptions options;
};

RightCase draw_case(std::uint64_t seed) {
  Draw draw(seed);
  RightCase c;
  Problem& p = c.problem;
  p.batch = 1 + draw.below(2);
  p.kv_heads = 1 + draw.below(2);
  p.heads = p.kv_heads * (1 + draw.below(2));
  p.seqlen_q = 1 + draw.below(96);
  p.seqlen_k = draw.below(3) == 0 ? 1 + draw.below(96) : p.seqlen_q;
  p.head_dim = p.head_dim_v = draw.of(std::array{16, 32, 48, 64});
  p.dtype = draw.of(std::array{DType::kFp16, DType::kBf16, DType::kFp32});
  p.layout = draw.of(std::array{Layout::kBHSD, Layout::kBSHD});
  p.mask.kind = draw.of(std::array{MaskKind::kNone, MaskKind::kCausal, MaskKind::kWindow});
  p.mask.alignment = draw.of(std::array{CausalAlignment::kTopLeft, CausalAlignment::kBottomRight});
  p.mask.window_left = draw.below(40);
  p.mask.window_right = draw.below(10);
  p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
  c.inputs = draw.of(
      std::array<const char*, 7>{"randn", "small", "heavy", "probe", "rising", "large", "cancel"});
  c.options.taps = draw.below(2) == 0;
  c.options.gate = c.options.taps ? Gate::kReduce : Gate::kFull;
  return c;
}

std::string words(const std::string& kernel, const RightCase& c, const Diagnosis& diagnosis,
                  std::uint64_t seed) {
  return fmt::format("{}, {}, {} seed {}{}: {}", kernel, report::problem_text(c.problem), c.inputs,
                     seed, c.options.taps ? " with stages" : "", words_of(diagnosis));
}

}  // namespace

RightResult right_kernels(PlantedKernels& planted, std::int64_t cases,
                          const std::function<void(const std::string&)>& on_step) {
  std::vector<Kernel> kernels;
  for (const std::string& name : kernels_built_for("host"))
    kernels.push_back(Kernel::load(name, "host"));
  for (const std::string& base : planted.bases()) kernels.push_back(planted.load(base));
  RightResult result;
  for (std::uint64_t seed = 0; result.cases < cases; ++seed) {
    const Kernel& kernel = kernels[static_cast<std::size_t>(seed % kernels.size())];
    const RightCase c = draw_case(seed);
    try {
      plan_geometry(kernel, c.problem, c.options);
    } catch (const Error&) {
      continue;  // a problem that this kernel does not take
    }
    if (result.cases % 50 == 0) on_step(fmt::format("right kernels, case {}", result.cases));
    const InputData inputs = make_inputs(c.problem, c.inputs, seed, 1.0);
    const Diagnosis diagnosis = diagnose(run_kernel({kernel, c.problem, inputs, c.options}), {});
    if (diagnosis.verdict != DiagnosisVerdict::kNothingWrong)
      result.detections.push_back(words(kernel.info().name, c, diagnosis, seed));
    ++result.cases;
  }
  return result;
}

}  // namespace attn_diag::diagnosis_matrix
