#include "harness/report/bench_report.h"

#include <fstream>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag::report {
namespace {

using Catch::Matchers::WithinRel;

BenchRow row(const std::string& kernel, int seqlen, double median_us) {
  BenchRow r;
  r.kernel = kernel;
  r.problem.heads = r.problem.kv_heads = 8;
  r.problem.seqlen_q = r.problem.seqlen_k = seqlen;
  r.problem.head_dim = r.problem.head_dim_v = 64;
  r.verdict = BenchVerdict::kTimed;
  r.timing = summarise_samples({median_us * 1e-6});
  r.timing.graph = true;
  r.rows = r.rows_compared = 8 * seqlen;
  return r;
}

BenchReport made_up() {
  BenchReport report;
  report.peaks.device = "Made-up GPU";
  report.peaks.compute_major = 9;
  report.peaks.sm_count = 100;
  report.peaks.clock_hz = 1e9;
  report.peaks.copy_bytes_per_second = 1e12;
  report.rows = {row("fa1", 512, 60), row("split_k", 512, 20), row("fused_wmma", 512, 10),
                 row("fused_wmma", 2048, 100)};
  return report;
}

class PytorchFile {
 public:
  explicit PytorchFile(const std::string& text) : x_path(x_folder / "torch.json") {
    std::ofstream(x_path) << text;
  }
  std::string path() const { return x_path; }

 private:
  testing::TemporaryDirectory x_folder;
  std::string x_path;
};

constexpr const char* kTimes = R"({"schema": "attn-diag-pytorch/1", "device": "Made-up GPU",
  "torch": "2.11.0", "rows": [
  {"backend": "default", "seconds": {"median": 8e-6},
   "problem": {"batch": 1, "heads": 8, "seqlen_q": 512, "seqlen_k": 512, "head_dim": 64,
               "dtype": "fp16", "mask": "none"}},
  {"backend": "cudnn", "seconds": {"median": 5e-6},
   "problem": {"batch": 1, "heads": 8, "seqlen_q": 512, "seqlen_k": 512, "head_dim": 64,
               "dtype": "fp16", "mask": "none"}},
  {"backend": "flash", "seconds": null, "why": "no kernel",
   "problem": {"batch": 1, "heads": 8, "seqlen_q": 512, "seqlen_k": 512, "head_dim": 64,
               "dtype": "fp16", "mask": "none"}},
  {"backend": "default", "seconds": {"median": 1e-6},
   "problem": {"batch": 1, "heads": 8, "seqlen_q": 512, "seqlen_k": 512, "head_dim": 64,
               "dtype": "fp16", "mask": "causal"}}]})";

TEST_CASE("ratios are taken within one problem") {
  const BenchReport report = made_up();
  const BenchRatios split_k = bench_ratios(report, report.rows[1]);
  CHECK_THAT(split_k.to_fastest, WithinRel(2, 1e-9));
  REQUIRE(split_k.faster_than_fa1.has_value());
  CHECK_THAT(*split_k.faster_than_fa1, WithinRel(3, 1e-9));
  CHECK_THAT(split_k.tflops, WithinRel(4.0 * 8 * 512 * 512 * 64 / 20e-6 / 1e12, 1e-9));
  // Floor: (4 * 8 * 512 * 64 * 2 + 8 * 512 * 4) bytes at 1 TB/s.
  CHECK_THAT(split_k.to_floor, WithinRel(20 / 2.113536, 1e-9));
  const BenchRatios alone = bench_ratios(report, report.rows[3]);
  CHECK(alone.to_fastest == 1);
  CHECK_FALSE(alone.faster_than_fa1.has_value());
  CHECK_FALSE(alone.to_pytorch.has_value());
}

TEST_CASE("a kernel that was not timed is nobody's fastest") {
  BenchReport report = made_up();
  report.rows[2].verdict = BenchVerdict::kDiverges;
  CHECK(bench_ratios(report, report.rows[1]).to_fastest == 1);
  report.rows[0].verdict = BenchVerdict::kFailed;
  CHECK_FALSE(bench_ratios(report, report.rows[1]).faster_than_fa1.has_value());
}

TEST_CASE("times of PyTorch are those of the same problem only") {
  BenchReport report = made_up();
  report.pytorch = read_pytorch_times(PytorchFile(kTimes).path());
  const BenchRatios r = bench_ratios(report, report.rows[2]);
  REQUIRE(r.to_pytorch.has_value());
  CHECK_THAT(*r.to_pytorch, WithinRel(10.0 / 8, 1e-9));
  CHECK_THAT(*r.to_fastest_pytorch, WithinRel(2, 1e-9));
  CHECK(r.fastest_pytorch == "cudnn");
  CHECK_FALSE(bench_ratios(report, report.rows[3]).to_pytorch.has_value());
}

TEST_CASE("a file that PyTorch's script did not write is refused with its name") {
  CHECK_THROWS_AS(read_pytorch_times("/nonexistent/x.json"), Error);
  for (const char* text : {"", "[]", "{}", R"({"schema": "attn-diag-pytorch/2"})",
                           R"({"schema": "attn-diag-pytorch/1"})", R"({"schema": 7})",
                           R"({"schema": "attn-diag-pytorch/1", "device": "x", "torch": "2",
                               "rows": [{"seconds": {}}]})"}) {
    const PytorchFile file(text);
    INFO(text);
    try {
      read_pytorch_times(file.path());
      FAIL("accepted");
    } catch (const Error& e) {
      CHECK(std::string(e.what()).find(file.path()) != std::string::npos);
    }
  }
}

TEST_CASE("the text shows each problem with its floors, ratios and what was compared") {
  BenchReport report = made_up();
  report.rows[3].rows_compared = 1536;
  report.rows.push_back(row("fa1", 2048, 1));
  report.rows.back().verdict = BenchVerdict::kDiverges;
  report.rows.back().why = "o diverges at row 7";
  Style wide;
  wide.width = 1000;
  const std::string text = bench_text(report, wide, false);
  INFO(text);
  CHECK(text.find("4 cases timed, 1 not timed: the output diverges") == 0);
  CHECK(text.find("B=1 H=8 S=512") != std::string::npos);
  CHECK(text.find("floors 2.11 us (bytes), 1.31 us (flops)") != std::string::npos);
  CHECK(text.find("3.00x") != std::string::npos);  // fa1 against split_k
  CHECK(text.find("1,536 of 16,384") != std::string::npos);
  CHECK(text.find("fa1: o diverges at row 7") != std::string::npos);
  CHECK(text.find("nominal: SMs x highest clock x 4096 a clock for fp16 on sm_90") !=
        std::string::npos);
  CHECK(bench_text(report, {}, true).find('\n') == bench_text(report, {}, true).size() - 1);
}

TEST_CASE("the JSON of a row that was not timed has no figures") {
  BenchReport report = made_up();
  report.rows[0].verdict = BenchVerdict::kDiverges;
  report.rows[0].why = "diverges";
  const Json j = bench_json(report, 1, {"bench", "attn-diag bench", "0.1.0"});
  CHECK(j["cases"][0]["verdict"] == "diverges");
  CHECK_FALSE(j["cases"][0].contains("seconds"));
  CHECK_THAT(j["cases"][1]["seconds"]["median"].get<double>(), WithinRel(20e-6, 1e-9));
  CHECK(j["cases"][1]["faster_than_fa1"].is_null());
  CHECK(j["cases"][2]["of_fastest"] == 1.0);
  CHECK(j["exit_code"] == 1);
}

}  // namespace
}  // namespace attn_diag::report
