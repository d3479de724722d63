#include "tools/gpu_check/worker.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/harness/run.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::gpu_check {
namespace {

using report::Json;

constexpr int kRepetitions = 4;  // of the production kernel

struct AgreementCase {
  Problem problem;
  int num_splits = 0;  // 0: the kernel's choice
  bool quick = false;  // run with --quick too
};

Problem problem(int heads, int kv_heads, int seqlen_q, int seqlen_k, int head_dim, DType dtype) {
  Problem p;
  p.heads = heads;
  p.kv_heads = kv_heads;
  p.seqlen_q = seqlen_q;
  p.seqlen_k = seqlen_k;
  p.head_dim = p.head_dim_v = head_dim;
  p.dtype = dtype;
  p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return p;
}

Problem masked(Problem p, MaskKind kind, CausalAlignment alignment = CausalAlignment::kTopLeft) {
  p.mask.kind = kind;
  p.mask.alignment = alignment;
  if (kind == MaskKind::kWindow) p.mask.window_left = 40, p.mask.window_right = 3;
  return p;
}

// Sizes around the tiles (64 and 16), every mask, type, layout and head dimension that differs in the
// kernels' code.
std::vector<AgreementCase> cases() {
  using enum MaskKind;
  using enum DType;
  constexpr auto kBottomRight = CausalAlignment::kBottomRight;
  std::vector<AgreementCase> list = {
      {problem(2, 2, 128, 128, 64, kFp16), 0, true},
      {masked(problem(2, 2, 128, 128, 64, kFp16), kCausal), 0, true},
      {masked(problem(2, 2, 200, 200, 64, kFp16), kCausal), 3, true},
      {problem(2, 2, 65, 257, 64, kFp16), 2, true},
      {problem(1, 1, 1, 1, 64, kFp16), 0, true},
      {problem(2, 2, 63, 64, 64, kFp16)},
      {problem(2, 2, 1, 200, 64, kFp16)},
      {masked(problem(4, 2, 130, 130, 64, kFp16), kCausal)},
      {masked(problem(2, 1, 70, 130, 64, kFp16), kCausal, kBottomRight)},
      {masked(problem(2, 2, 130, 70, 64, kFp16), kCausal, kBottomRight)},
      {masked(problem(2, 2, 150, 150, 64, kFp16), kWindow)},
      {problem(2, 2, 100, 100, 32, kFp16)},
      {masked(problem(2, 2, 100, 100, 128, kFp16), kCausal), 2},
      {problem(2, 2, 80, 80, 80, kFp16)},
      {problem(2, 2, 128, 128, 64, kBf16), 0, true},
      {masked(problem(2, 2, 129, 129, 64, kBf16), kCausal)},
      {masked(problem(2, 1, 97, 131, 128, kBf16), kCausal, kBottomRight)},
      {problem(2, 2, 100, 100, 64, kFp32)},
      {masked(problem(2, 2, 100, 100, 64, kFp32), kCausal), 2},
  };
  AgreementCase two_batches{masked(problem(4, 2, 96, 96, 64, kFp16), kCausal)};
  two_batches.problem.batch = 2;
  two_batches.problem.layout = Layout::kBSHD;
  list.push_back(two_batches);
  AgreementCase narrow_v{problem(2, 2, 100, 100, 64, kFp16)};
  narrow_v.problem.head_dim_v = 32;
  list.push_back(narrow_v);
  return list;
}

void print(const char* section, const std::string& name, const char* verdict,
           const std::string& why) {
  Json line;
  line["section"] = section;
  line["name"] = name;
  line["verdict"] = verdict;
  line["why"] = why;
  std::fputs(report::dump_json(line).c_str(), stdout);
  std::fflush(stdout);
}

void judge(const char* section, const std::string& name, const std::string& why) {
  print(section, name, why.empty() ? "passed" : "failed", why);
}

// "": every tensor agrees.
std::string disagreement(const Comparison& comparison, const char* with) {
  if (comparison.tensors.empty()) return fmt::format("nothing was compared with {}", with);
  std::string why;
  for (const TensorComparison& t : comparison.tensors)
    if (!t.agrees())
      why += fmt::format("{}{} differs from {} in {} of {} cells, {} what is allowed",
                         why.empty() ? "" : "; ", name(t.tensor), with, t.mismatched, t.compared,
                         report::ratio(t.max_err_over_bound));
  return why;
}

std::string coverage_trouble(const Capture& capture) {
  for (const TensorInfo& t : kTensors) {
    const Coverage& c = capture.coverage[static_cast<std::size_t>(t.id)];
    if (c.never > 0 || c.repeatedly > 0)
      return fmt::format("{}: {} cells never written, {} repeatedly", t.name, c.never,
                         c.repeatedly);
  }
  return "";
}

// Tensors of both captures whose bits differ: "o, lse".
std::string differing_bits(const Capture& a, const Capture& b) {
  std::string names;
  for (const TensorInfo& t : kTensors)
    if (a.has(t.id) && b.has(t.id) && a[t.id].bytes != b[t.id].bytes)
      names += (names.empty() ? "" : ", ") + std::string(t.name);
  return names;
}

// How many cells of each tensor are the same to the last bit: no verdict, but worth knowing.
void print_alike(const Capture& gpu, const Capture& host) {
  for (const TensorInfo& t : kTensors) {
    if (!gpu.has(t.id) || !host.has(t.id)) continue;
    const TensorData &a = gpu[t.id], &b = host[t.id];
    const std::size_t size = size_of(a.dtype);
    std::int64_t alike = 0;
    for (std::size_t i = 0; i + size <= a.bytes.size(); i += size)
      alike += std::memcmp(a.bytes.data() + i, b.bytes.data() + i, size) == 0;
    Json line;
    line["section"] = "alike";
    line["tensor"] = std::string(t.name);
    line["cells"] = a.size();
    line["alike"] = alike;
    std::fputs(report::dump_json(line).c_str(), stdout);
  }
}

std::string stages_trouble(const Capture& gpu, const Capture& host) {
  std::string why = disagreement(compare_with_reference(gpu, {}), "the reference");
  if (why.empty()) why = coverage_trouble(gpu);
  if (why.empty()) why = disagreement(compare_captures(gpu, host, {}), "the host's");
  return why;
}

std::string repetition_trouble(const Kernel& kernel, const Problem& p, const InputData& inputs,
                               const RunOptions& options, const Capture& production) {
  for (int i = 1; i < kRepetitions; ++i) {
    const Capture again = run_kernel({kernel, p, inputs, options});
    const std::string names = differing_bits(production, again);
    if (!names.empty()) return fmt::format("{} moved in run {}", names, i + 1);
    if (again.repetition.moved()) return "two runs differ";
  }
  return "";
}

void run_case(const Kernel& gpu, const Kernel& host, const AgreementCase& c) {
  const Problem& p = c.problem;
  RunOptions options;
  if (gpu.info().takes_num_splits) options.num_splits = c.num_splits;
  std::string what = gpu.spec() + " " + report::problem_text(p);
  const char* section = "stages";
  try {
    Geometry geometry;
    try {
      geometry = plan_geometry(gpu, p, options);
    } catch (const Error& e) {
      print(section, what, "skipped", e.what());
      return;
    }
    options.tile = geometry.tile;
    if (gpu.info().takes_num_splits) {
      options.num_splits = geometry.num_splits;
      what += fmt::format(", {}", report::plural(geometry.num_splits, "split"));
    }
    const InputData inputs = make_inputs(p, "randn", 1, 1.0);
    const Capture tapped = run_kernel({gpu, p, inputs, options});
    const Capture on_host = run_kernel({host, p, inputs, options});
    print_alike(tapped, on_host);
    judge(section, what, stages_trouble(tapped, on_host));

    section = "taps";
    options.taps = false;
    const Capture production = run_kernel({gpu, p, inputs, options});
    const std::string names = differing_bits(production, tapped);
    judge(section, what, names.empty() ? "" : names + " of the production kernel differ");

    section = "repeat";
    std::string moved = production.repetition.moved() || tapped.repetition.moved()
                            ? "two runs differ"
                            : repetition_trouble(gpu, p, inputs, options, production);
    judge(section, what, moved);
  } catch (const Error& e) {
    judge(section, what, e.what());
  }
}

}  // namespace

void agreement_worker(const std::string& kernel, bool quick) {
  const Kernel gpu = Kernel::load(kernel, "cuda");
  const Kernel host = Kernel::load(kernel, "host");
  for (const AgreementCase& c : cases())
    if (c.quick || !quick) run_case(gpu, host, c);
}

}  // namespace attn_diag::gpu_check
