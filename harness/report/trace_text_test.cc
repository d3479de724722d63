#include "harness/report/trace_text.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/report/json.h"
#include "harness/report/query_row.h"
#include "harness/report/summary.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A trace whose o is wrong at head 0, query 1, dim 2: 1 x 1 x 2 queries x 2 keys, head dim 4.
TraceResult wrong_o() {
  TraceResult r;
  Capture& c = r.capture;
  c.problem.seqlen_q = c.problem.seqlen_k = 2;
  c.problem.head_dim = c.problem.head_dim_v = 4;
  c.problem.dtype = DType::kFp32;
  c.region = whole(c.problem);
  c.provenance.kernel = "toy";
  c.provenance.backend = "host";
  const auto floats = [](std::initializer_list<float> x) {
    const auto* begin = reinterpret_cast<const std::byte*>(x.begin());
    return std::vector<std::byte>(begin, begin + x.size() * sizeof(float));
  };
  c.q = c.k = floats({0, 0, 0, 0, 0, 0, 0, 0});  // P is even: o is the mean of v
  c.v = floats({1, 2, 3, 4, 3, 4, 5, 6});
  TensorData o;
  o.id = Tensor::kO;
  o.dtype = DType::kFp32;
  o.shape = {1, 1, 2, 4};
  o.origin = {0, 0, 0, 0};
  o.bytes = floats({2, 3, 4, 5, 2, 3, 4.5f, 5});
  c.tensors[static_cast<std::size_t>(Tensor::kO)] = o;

  TensorComparison t;
  t.tensor = Tensor::kO;
  t.compared = 8, t.mismatched = 1;
  t.max_abs_err = 0.5, t.max_err_over_bound = 1e5, t.zeros_err_over_bound = 4e5;
  t.first = t.worst = Mismatch{{0, 0, 1, 2, 0}, 4.5, 4, 5e-6};
  t.max_abs_index = {0, 0, 1, 2, 0};
  t.picture_shape = {1, 1, 1, 1};
  t.picture = {{1e5, 1, 8}};
  for (int s = 0; s < kNumStages; ++s) {
    StageReport stage;
    stage.stage = static_cast<Stage>(s);
    stage.verdict = stage.isolated = Verdict::kAgrees;
    r.stages.push_back(stage);
  }
  r.stages[3].verdict = r.stages[3].isolated = Verdict::kDiverges;
  r.stages[3].prefix.tensors = {t};
  FirstDivergence first;
  first.stage = Stage::kReduce;
  first.tensor = Tensor::kO;
  first.query = 1;
  first.kv_tile = 0;
  first.dim = 2;
  first.expected = 4, first.actual = 4.5, first.bound = 5e-6;
  r.first = first;
  r.pattern = {{StatementKind::kExact, "query 0 is exact"}};
  return r;
}

TEST_CASE("where zeros would agree as well nothing is said to agree") {
  TraceResult r = wrong_o();
  r.first.reset();
  r.stages[3].verdict = r.stages[3].isolated = Verdict::kAgrees;
  TensorComparison& o = r.stages[3].prefix.tensors[0];
  o.mismatched = 0;
  o.max_err_over_bound = 0.01;
  CHECK(r.agrees());
  o.zeros_err_over_bound = 0.11;
  CHECK(r.answer() == Answer::kNotJudged);
  CHECK_THAT(trace_text(r, {}), contains("COULD NOT COMPARE: an all-zeros o would agree as well"));
}

TEST_CASE("the verdict is the first line and names stage, head, query and tiles") {
  const std::string text = trace_text(wrong_o(), {});
  CHECK(text.substr(0, text.find('\n')) ==
        "DIVERGES: reduce diverges first, head 0, query 1, query tile 0, kv tile 0, dim 2");
  CHECK_THAT(text, contains("what rounding can explain"));
  CHECK_THAT(text, contains("Mismatched elements: 1 / 8 (12.5%) of o"));
  CHECK_THAT(text, contains("Greatest absolute difference: 0.5 at index (0, 0, 1, 2)"));
  CHECK_THAT(text, contains("query 0 is exact"));
  CHECK_THAT(text, contains("The fault is in reduce itself"));
}

TEST_CASE("the window around the first mismatch has the kernel's value and the reference's") {
  const std::string text = trace_text(wrong_o(), {});
  CHECK_THAT(text, contains("->    2     4.5          4"));
  CHECK_THAT(text, contains("WRONG"));
}

TEST_CASE("a stale binary is said before the verdict") {
  TraceResult r = wrong_o();
  r.capture.provenance.sources = {{"/src/toy.cu", 1, 2, true}};
  const std::string text = trace_text(r, {});
  CHECK(text.rfind("STALE", 0) == 0);
  CHECK_THAT(text, contains("/src/toy.cu"));
}

TEST_CASE("a missing source is said, since staleness is then unknown") {
  TraceResult r = wrong_o();
  r.capture.provenance.sources = {{"/gone/toy.cu", 1, 0, false}};
  CHECK_THAT(trace_text(r, {}), contains("/gone/toy.cu is not there"));
}

TEST_CASE("no colour is used unless asked for") {
  CHECK(trace_text(wrong_o(), {}).find('\x1b') == std::string::npos);
  TraceTextOptions options;
  options.style.colour = true;
  CHECK_THAT(trace_text(wrong_o(), options), contains("\x1b["));
}

TEST_CASE(
    "a result that moves is the verdict, unless it moves within its bounds and a stage diverges") {
  TraceResult r = wrong_o();
  r.sanity.finding = SanityFinding::kDependsOnOrder;
  CHECK_THAT(trace_headline(r), contains("the result depends on the order"));
  r.observer_checked = true;
  CHECK_THAT(trace_text(r, {}), !contains("Pattern of"));
  CHECK_THAT(trace_text(r, {}), !contains("The taps disturb:"));
  r.sanity.within_bounds = true;
  CHECK_THAT(trace_headline(r), contains("reduce diverges first"));
  CHECK_THAT(trace_text(r, {}), contains("Pattern of"));
  r.first.reset();
  CHECK_THAT(trace_headline(r), !contains("the result depends on the order"));
}

TEST_CASE(
    "a latent flaw is said to be one in the first line, and what else is wrong, where it is seen") {
  TraceResult r = wrong_o();
  r.sanity.finding = SanityFinding::kDependsOnOrder;
  r.sanity.on_gpu = OnGpu::kRight;
  r.sanity.calm = Sanity::Calm{"lockstep", {}, true, "in lockstep"};
  CHECK(trace_headline(r) ==
        "LATENT: the result depends on the order in which threads run: a race, or a read of what "
        "nobody "
        "wrote; right in lockstep, "
        "and so most likely on a GPU today");
  CHECK_THAT(trace_text(r, {}), contains("Nothing else is wrong: in lockstep every stage agrees"));
  CHECK(trace_json(r, {"trace", "", ""})["verdict"] == "latent");
  r.sanity.on_gpu = OnGpu::kWrong;
  r.sanity.calm->right = false;
  r.calmly = "in lockstep";
  CHECK_THAT(trace_headline(r),
             contains("DIVERGES: the result depends on the order") &&
                 contains("in lockstep, where it holds still, reduce diverges first"));
  CHECK_THAT(trace_text(r, {}),
             contains("Pattern of") && contains("What follows was run in lockstep"));
  CHECK(trace_json(r, {"trace", "", ""})["shown"] == "in lockstep");
}

TEST_CASE("no line of a trace is wider than 100 columns") {
  TraceResult r = wrong_o();
  r.capture.notes = {std::string(40, 'x') + " " + std::string(70, 'y')};
  r.schedules = ScheduleFinding::kSame;
  r.schedules_detail = std::string(80, 'x') + " " + std::string(70, 'y');
  const std::string text = trace_text(r, {});
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    CHECK(display_width(text.substr(at, end - at)) <= 100);
}

TEST_CASE("trace JSON has the keys that scripts read") {
  const Json j = Json::parse(dump_json(trace_json(wrong_o(), {"trace", "again", "0.1"})));
  CHECK(j["verdict"] == "diverges");
  CHECK(j["stale"] == false);
  CHECK(j["stages"].size() == 4);
  const Json& reduce = j["stages"][3];
  CHECK(reduce["name"] == "reduce");
  CHECK(reduce["verdict"] == "diverges");
  CHECK(reduce["isolated_verdict"] == "diverges");
  CHECK(reduce["mismatched"] == 1);
  CHECK(reduce["compared"] == 8);
  CHECK(reduce["max_err_over_bound"] == 1e5);
  const Json& first = j["first_divergence"];
  CHECK(first["stage"] == "reduce");
  CHECK(first["tensor"] == "o");
  CHECK(first["query"] == 1);
  CHECK(first["kv_tile"] == 0);
  CHECK(first["dim"] == 2);
  CHECK(first["expected"] == 4);
  CHECK(first["actual"] == 4.5);
  CHECK(j["reproduce"] == "again");
}

TEST_CASE("first_divergence is null when nothing diverges") {
  TraceResult r = wrong_o();
  r.first.reset();
  CHECK(trace_json(r, {"trace", "", ""})["first_divergence"].is_null());
}

TEST_CASE("numbers that JSON cannot hold are strings") {
  CHECK(json_number(kInf) == "inf");
  CHECK(json_number(-kInf) == "-inf");
  CHECK(json_number(std::nan("")) == "nan");
  CHECK(json_number(0.5) == 0.5);
}

TEST_CASE("a row that was not recorded is refused with what there is") {
  const TraceResult r = wrong_o();
  CHECK_THROWS_WITH(row_of(r.capture, {}, 0, 0, 2), contains("query 2 was not recorded"));
}

}  // namespace
}  // namespace attn_diag::report
