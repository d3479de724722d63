// X-rays of kernels: right ones of all kinds, and wrong ones without taps.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/xray.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/shipped_kernels.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

Problem problem_of(DType dtype, std::int32_t seqlen_q, std::int32_t seqlen_k, MaskKind mask) {
  Problem p;
  p.heads = 2;
  p.kv_heads = 1;
  p.seqlen_q = seqlen_q;
  p.seqlen_k = seqlen_k;
  p.head_dim = p.head_dim_v = 32;
  p.dtype = dtype;
  p.mask.kind = mask;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.softmax_scale = static_cast<float>(1.0 / std::sqrt(32.0));
  return p;
}

XrayResult xray_of(const Kernel& kernel, const Problem& p, const std::string& inputs = "randn") {
  RunOptions run;
  if (kernel.info().takes_num_splits) run.num_splits = 3;
  return xray({kernel, p, make_inputs(p, inputs, 7, 1.0), run}, {});
}

Kernel flawed(const std::string& name) {
  return Kernel::load(std::string(ATTN_DIAG_FLAWED_KERNELS) + ":" + name, "host");
}
Problem flawed_problem() { return problem_of(DType::kFp32, 20, 40, MaskKind::kCausal); }

const TensorComparison& of(const XrayResult& r, Tensor t) {
  for (const TensorComparison& c : r.comparison.tensors)
    if (c.tensor == t) return c;
  FAIL("not compared");
  return r.comparison.tensors.front();
}

double cell(const TensorData& data, std::int64_t h, std::int64_t i, std::int64_t j) {
  return data.at((h * data.shape[2] + i) * data.shape[3] + j);
}

}  // namespace

TEST_CASE(
    "an x-ray of every right kernel agrees with the reference and with the kernel's own taps") {
  for (const std::string& name : testing::shipped_kernels()) {
    const Kernel kernel = Kernel::load(name, "host");
    for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
      if (dtype == DType::kFp32 && name.starts_with("fused")) continue;
      for (const MaskKind mask : {MaskKind::kNone, MaskKind::kCausal}) {
        for (const std::string inputs : {"randn", "probe"}) {
          const Problem p = problem_of(dtype, 70, 150, mask);
          const XrayResult r = xray_of(kernel, p, inputs);
          INFO(name << ", dtype " << static_cast<int>(dtype) << ", " << inputs << ", mask "
                    << static_cast<int>(mask));
          CHECK(r.agrees());
          CHECK(r.launches == 5);
          CHECK(r.rows_without_lse == 0);
          CHECK(r.unknown < r.seen / 20);
          CHECK(std::fabs(r.least_sum - 1.0) < 0.01);
          CHECK(std::fabs(r.largest_sum - 1.0) < 0.01);
          CHECK(r.median_uncertainty < (dtype == DType::kFp32   ? 1e-4
                                        : dtype == DType::kFp16 ? 0.004
                                                                : 0.03));

          RunOptions tapped;
          tapped.gate = Gate::kReduce;
          tapped.num_splits = kernel.info().takes_num_splits ? 3 : 0;
          const Capture own = run_kernel({kernel, p, make_inputs(p, inputs, 7, 1.0), tapped});
          const TensorData &seen = r.capture[Tensor::kS], &real = own[Tensor::kS];
          std::int64_t beyond = 0, close = 0;
          for (std::int64_t i = 0; i < seen.size(); ++i) {
            const auto limit = static_cast<double>(seen.uncertainty[static_cast<std::size_t>(i)]);
            if (std::isinf(real.at(i)) && seen.at(i) == real.at(i)) continue;
            const double error = std::fabs(seen.at(i) - real.at(i));
            if (!(error <= limit)) ++beyond;
            if (error <= 0.05) ++close;
          }
          CHECK(beyond == 0);
          CHECK(close > r.seen * 9 / 10);
        }
      }
    }
  }
}

TEST_CASE("a mask bug of one cell is seen in S at that cell, and nowhere else in S") {
  const XrayResult r = xray_of(flawed("masked-cell"), flawed_problem());
  CHECK_FALSE(r.agrees());
  const TensorComparison& s = of(r, Tensor::kS);
  CHECK(s.mismatched == 1);
  REQUIRE(s.first);
  CHECK(s.first->index == std::array<std::int64_t, 5>{0, 1, 5, 3, 0});
  CHECK(s.first->actual == -HUGE_VAL);

  const XrayResult leak = xray_of(flawed("leaking-cell"), flawed_problem());
  // Queries 0.. are aligned with keys 20..: key 9 is visible to all; nothing leaks.
  CHECK(leak.agrees());
  Problem square = flawed_problem();
  square.seqlen_k = 20;
  const XrayResult leaks = xray_of(flawed("leaking-cell"), square);
  const TensorComparison& t = of(leaks, Tensor::kS);
  CHECK(t.mismatched == 1);
  REQUIRE(t.first);
  CHECK(t.first->index == std::array<std::int64_t, 5>{0, 0, 5, 9, 0});
  CHECK(std::isfinite(t.first->actual));
  CHECK(t.first->expected == -HUGE_VAL);
}

TEST_CASE("a wrong temperature is seen in S with its factor") {
  const Problem p = flawed_problem();
  const XrayResult wrong = xray_of(flawed("scale-twice"), p);
  const XrayResult right = xray_of(flawed("right"), p);
  CHECK(right.agrees());
  CHECK(of(wrong, Tensor::kS).mismatched > 1000);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t j = 0; j < i + 20; ++j)
      CHECK(std::fabs(cell(wrong.capture[Tensor::kS], 1, i, j) -
                      cell(right.capture[Tensor::kS], 1, i, j) *
                          static_cast<double>(p.softmax_scale)) < 1e-4);
}

TEST_CASE("a wrong lse or division leaves S right, and is said to be what is wrong") {
  for (const std::string name : {"no-lse", "divides-twice"}) {
    const XrayResult r = xray_of(flawed(name), flawed_problem());
    INFO(name);
    CHECK_FALSE(r.agrees());
    CHECK(of(r, Tensor::kS).mismatched == 0);
    CHECK(of(r, Tensor::kP).mismatched == 0);
    CHECK(of(r, name == "no-lse" ? Tensor::kLse : Tensor::kO).mismatched > 0);
    CHECK(r.rows_without_lse > 30);
    CHECK((name == "no-lse" || r.least_sum < 0.5));
    std::string notes;
    for (const std::string& note : r.capture.notes) notes += note;
    CHECK_THAT(notes, contains("lse does not go with them"));
  }
}

TEST_CASE("weights too small for o's type are unknown, counted, and not judged") {
  const Kernel kernel = Kernel::load("fa1", "host");
  const Problem p = problem_of(DType::kFp16, 40, 64, MaskKind::kNone);
  const XrayResult r = xray_of(kernel, p, "large");
  CHECK(r.agrees());
  CHECK(r.unknown > r.seen);
  CHECK(r.seen + r.unknown + r.without_weight == 2 * 40 * 64);
  CHECK(of(r, Tensor::kS).unjudged > 0);
  // Weights below fp16's smallest number are seen, since v was not 1 but more.
  int small = 0;
  const TensorData &seen = r.capture[Tensor::kS], &lse = r.capture[Tensor::kLse];
  for (std::int64_t i = 0; i < seen.size(); ++i)
    small += std::isfinite(seen.uncertainty[static_cast<std::size_t>(i)]) &&
             std::isfinite(seen.at(i)) && seen.at(i) - lse.at(i / 64) < std::log(0x1p-25);
  CHECK(small > 10);
}

TEST_CASE("an x-ray's dump compares as the x-ray does, and keeps what is uncertain") {
  const testing::TemporaryDirectory directory;
  const Kernel kernel = Kernel::load("fa1", "host");
  const Problem p = problem_of(DType::kFp16, 33, 50, MaskKind::kCausal);
  const XrayResult r = xray_of(kernel, p);
  write_dump(directory / "x.h5", r.capture, {});
  const Capture read = read_dump(directory / "x.h5");
  CHECK(read[Tensor::kS].uncertainty == r.capture[Tensor::kS].uncertainty);
  CHECK(read[Tensor::kO].uncertainty.empty());
  CHECK(compare_with_reference(read, {}).agrees());
  Capture certain = read;
  for (auto& t : certain.tensors)
    if (t) t->uncertainty.clear();
  CHECK_FALSE(compare_with_reference(certain, {}).agrees());

  // Against a tapped run of the same case, in memory and as files.
  RunOptions tapped;
  tapped.gate = Gate::kSoftmax;
  Capture own = run_kernel({kernel, p, make_inputs(p, "randn", 7, 1.0), tapped});
  Capture mine = read;
  for (const Tensor t : {Tensor::kO, Tensor::kLse}) {
    mine.tensors[static_cast<std::size_t>(t)].reset();
    own.tensors[static_cast<std::size_t>(t)].reset();
  }
  CHECK(compare_captures(mine, own, {}).agrees());
  write_dump(directory / "mine.h5", mine, {});
  write_dump(directory / "own.h5", own, {});
  CHECK(compare_dumps(directory / "mine.h5", directory / "own.h5", {}).agrees());
  CHECK(compare_dumps(directory / "own.h5", directory / "mine.h5", {}).agrees());
}

TEST_CASE("a result that moves is said to, and does not agree") {
  const XrayResult steady = xray_of(flawed("right"), flawed_problem());
  CHECK_FALSE(steady.capture.repetition.moved());
  const XrayResult r = xray_of(flawed("moves"), flawed_problem());
  CHECK(r.capture.repetition.moved());
  CHECK(r.capture.repetition.moved_cells() == 2 * 20 * 32);
  CHECK_THAT(r.capture.notes.back(),
             contains("The result moves: 1280 cells of the outputs change"));
}

TEST_CASE("of right kernels nothing is wrong at numbers that overflow or underflow") {
  for (const std::string name : {"fa1", "split_k"}) {
    const Kernel kernel = Kernel::load(name, "host");
    for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32})
      for (const double scale : {1e-20, 1e-3, 1e4, 1e20}) {
        const Problem p = problem_of(dtype, 20, 40, MaskKind::kCausal);
        const XrayResult r = xray({kernel, p, make_inputs(p, "randn", 7, scale)}, {});
        for (const TensorComparison& t : r.comparison.tensors) {
          INFO(name << ' ' << static_cast<int>(dtype) << " x " << scale << ' '
                    << attn_diag::name(t.tensor));
          CHECK(t.mismatched == 0);
        }
      }
  }
}

}  // namespace attn_diag
