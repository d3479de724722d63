#include "attn_diag/harness/dump.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "attn_diag/harness/compare.h"
#include "harness/capture/capture_fields.h"
#include "harness/run/repetition.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

Problem odd_problem() {
  Problem p;
  p.batch = 2, p.heads = 4, p.kv_heads = 2, p.seqlen_q = 21, p.seqlen_k = 19;
  p.head_dim = 6, p.head_dim_v = 5;
  p.layout = Layout::kBSHD;
  p.mask.kind = MaskKind::kCausal;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.softmax_scale = 0.1f;
  return p;
}

Geometry odd_geometry() {
  Geometry g;
  g.tile = {8, 4};
  g.num_splits = 3, g.tiles_per_split = 2;
  g.has_split_merge = true;
  g.skips_masked_tiles = true;
  return g;
}

Capture recorded(DType dtype = DType::kFp16) {
  Problem p = odd_problem();
  p.dtype = dtype;
  Capture c = testing::reference_capture(p, odd_geometry(), 5, Region{{1, 1, 3}, {1, 3, 11}});
  c.tensors[static_cast<std::size_t>(Tensor::kRunningM)].reset();
  c.exempt[static_cast<std::size_t>(Tensor::kRunningM)] = "lives in a register of the producer";
  c.coverage[0].never = 3;
  c.coverage[0].first_never = CoverageFault{Tensor::kS, {1, 2, 5, 7}, 0};
  c.coverage[1].repeatedly = 2;
  c.coverage[1].first_repeated = CoverageFault{Tensor::kM, {1, 1, 3, 2}, 4};
  c.repetition.runs = 2;
  c.repetition.differing[static_cast<std::size_t>(Tensor::kP)] = 7;
  c.repetition.first = Repetition::Cell{Tensor::kP, {1, 2, 5, 7}, 0.25, 0.3};
  c.repetition.within_rounding = true;
  c.arithmetic.exp_flush = 1e-40;
  c.arithmetic.l_from_rounded_probs = true;
  c.isolated = true;
  return c;
}

// Fields by name and value, one a line.
struct Lines {
  std::string text;
  template <class T>
  void operator()(const char* field, const T& value) {
    if constexpr (std::is_same_v<T, std::string>)
      text += field + (": " + value) + "\n";
    else if constexpr (std::is_arithmetic_v<T>)
      text += field + (": " + std::to_string(value)) + "\n";
    else
      text += field + (": " + attn_diag::text(value)) + "\n";
  }
};

std::string header_lines(const Capture& c) {
  Lines lines;
  visit_problem(c.problem, lines);
  visit_geometry(c.geometry, lines);
  visit_arithmetic(c.arithmetic, lines);
  visit_provenance(c.provenance, lines);
  for (const SourceState& s : c.provenance.sources)
    lines.text += s.path + std::to_string(s.built_hash) + std::to_string(s.disk_hash) +
                  std::to_string(s.found) + "\n";
  for (const std::string& note : c.notes) lines.text += note + "\n";
  for (const std::string& reason : c.exempt) lines.text += reason + "\n";
  lines.text += std::to_string(c.repetition.runs) + repetition_text(c.repetition);
  lines.text += c.repetition.unsound() ? "unsound" : "sound";
  return lines.text;
}

void check_same(const Capture& a, const Capture& b) {
  CHECK(header_lines(a) == header_lines(b));
  CHECK(a.arithmetic.exp_flush == b.arithmetic.exp_flush);
  CHECK(a.problem.softmax_scale == b.problem.softmax_scale);
  CHECK(a.region.origin == b.region.origin);
  CHECK(a.region.extent == b.region.extent);
  CHECK(a.isolated == b.isolated);
  CHECK(a.q == b.q);
  CHECK(a.k == b.k);
  CHECK(a.v == b.v);
  for (std::size_t i = 0; i < kNumTensors; ++i) {
    REQUIRE(a.tensors[i].has_value() == b.tensors[i].has_value());
    if (!a.tensors[i]) continue;
    CHECK(a.tensors[i]->id == b.tensors[i]->id);
    CHECK(a.tensors[i]->dtype == b.tensors[i]->dtype);
    CHECK(a.tensors[i]->shape == b.tensors[i]->shape);
    CHECK(a.tensors[i]->origin == b.tensors[i]->origin);
    CHECK(a.tensors[i]->bytes == b.tensors[i]->bytes);
    CHECK(a.coverage[i].never == b.coverage[i].never);
    CHECK(a.coverage[i].repeatedly == b.coverage[i].repeatedly);
    REQUIRE(a.coverage[i].first_never.has_value() == b.coverage[i].first_never.has_value());
    if (a.coverage[i].first_never)
      CHECK(a.coverage[i].first_never->index == b.coverage[i].first_never->index);
    REQUIRE(a.coverage[i].first_repeated.has_value() == b.coverage[i].first_repeated.has_value());
    if (a.coverage[i].first_repeated) {
      CHECK(a.coverage[i].first_repeated->index == b.coverage[i].first_repeated->index);
      CHECK(a.coverage[i].first_repeated->writes == b.coverage[i].first_repeated->writes);
    }
  }
}

}  // namespace

TEST_CASE("a dump holds what was found of the line, or says that it does not") {
  const testing::TemporaryDirectory folder;
  DumpOptions options;
  write_dump(folder / "none.h5", recorded(), options);
  CHECK(read_dump_lines(folder / "none.h5") == std::nullopt);
  options.lines = "{\"what\": \"" + std::string(200'000, 'x') + "\"}";
  write_dump(folder / "some.h5", recorded(), options);
  CHECK(read_dump_lines(folder / "some.h5") == options.lines);
  CHECK(header_lines(read_dump(folder / "some.h5")) == header_lines(read_dump(folder / "none.h5")));
}

TEST_CASE("a capture read back from a dump is the one that was written") {
  const testing::TemporaryDirectory directory;
  for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32})
    for (const int deflate : {0, 4}) {
      const Capture written = recorded(dtype);
      DumpOptions options;
      options.force = true;
      options.deflate = deflate;
      options.with_reference = deflate != 0;
      write_dump(directory / "x.h5", written, options);
      check_same(read_dump(directory / "x.h5"), written);
      CHECK(directory.files() == std::vector<std::string>{"x.h5"});
    }
}

TEST_CASE("a dump of a run that recorded nothing but o reads back") {
  const testing::TemporaryDirectory directory;
  Capture c = recorded();
  for (std::size_t i = 0; i < kNumTensors; ++i)
    if (static_cast<Tensor>(i) != Tensor::kO) {
      c.tensors[i].reset();
      c.coverage[i] = {};
      c.repetition = {};
    }
  c.notes.clear();
  c.provenance.sources.clear();
  write_dump(directory / "x.h5", c, {});
  check_same(read_dump(directory / "x.h5"), c);
}

TEST_CASE("every spelling of a mask reads back") {
  for (const std::string spelling :
       {"none", "causal:top_left", "causal:bottom_right", "window:3,0", "window:0,12"}) {
    Mask mask;
    CHECK(from_text(spelling, mask));
    CHECK(text(mask) == spelling);
  }
  Mask mask;
  for (const std::string wrong : {"", "causal", "window:", "window:3", "window:3,", "window:-1,2",
                                  "window:1,2,3", "window:1, 2"})
    CHECK_FALSE(from_text(wrong, mask));
}

namespace {

// The output of a command, or "" if it failed.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    output.append(buffer, n);
  return pclose(pipe) == 0 ? output : "";
}

std::string python_with_h5py() {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (output_of(python + " -c 'import h5py; print(1)'") == "1\n") return python;
  return "";
}

}  // namespace

TEST_CASE("h5py sees labelled axes, absolute scales, names and 16-bit floats") {
  const std::string python = python_with_h5py();
  if (python.empty()) {
    WARN("SKIP: no python3 with h5py (apt install python3-h5py)");
    return;
  }
  const testing::TemporaryDirectory directory;
  for (const DType dtype : {DType::kFp16, DType::kBf16}) {
    const Capture c = recorded(dtype);
    DumpOptions options;
    options.force = true;
    options.with_reference = true;
    write_dump(directory / "x.h5", c, options);
    const std::string seen = output_of(
        python + " " + ATTN_DIAG_SOURCE_DIR "/harness/testing/read_with_h5py.py " +
        (directory / "x.h5") +
        " stages/qk/S stages/pv/partial_o stages/reduce/merged_l stages/reduce/o inputs/q inputs/k"
        " reference/reduce/o bound/softmax/m");
    INFO(seen);
    const auto sees = [&](const std::string& line) {
      return ("\n" + seen).find("\n" + line + "\n") != std::string::npos;
    };
    CHECK(sees("schema attn-diag/1"));
    CHECK(sees("notes a note and another"));
    CHECK(sees("mask causal:bottom_right"));
    CHECK(sees("layout BSHD"));
    CHECK(sees("dtype " + text(dtype)));
    CHECK(sees("frame running"));
    CHECK(sees("seqlen_q 21"));
    CHECK(sees("block_m 8"));
    CHECK(sees("num_splits 3"));
    CHECK(sees("command_line attn-diag dump --\xc3\xa9"));
    CHECK(sees("seed 18364758544493064720"));
    CHECK(sees("exempt lives in a register of the producer"));
    CHECK(sees("first_never_written 1 2 5 7"));
    CHECK(sees("runs 2"));
    CHECK(sees("first_moved 1 2 5 7"));

    CHECK(sees("stages/qk/S dtype float32"));
    CHECK(sees("stages/qk/S labels batch head query key"));
    CHECK(sees("stages/qk/S scales batch head query key"));
    CHECK(sees("stages/qk/S from 1 1 3 0"));
    CHECK(sees("stages/qk/S to 1 3 13 18"));
    CHECK(sees("stages/pv/partial_o labels batch head query kv_tile dim"));
    CHECK(sees("stages/pv/partial_o to 1 3 13 4 4"));
    CHECK(sees("stages/reduce/merged_l labels batch head query split"));
    CHECK(sees("stages/reduce/o labels batch head query dim"));
    CHECK(sees("inputs/q labels batch query head qk_dim"));
    CHECK(sees("inputs/q from 0 0 0 0"));
    CHECK(sees("inputs/q to 1 20 3 5"));
    CHECK(sees("inputs/k labels batch key kv_head qk_dim"));
    CHECK(sees("reference/reduce/o dtype float64"));
    CHECK(sees("bound/softmax/m dtype float64"));
    // h5py has no 16-bit brain float and widens it by itself, exactly.
    const std::string half = dtype == DType::kFp16 ? "float16" : "float32";
    CHECK(sees("stages/reduce/o dtype " + half));
    CHECK(sees("inputs/q dtype " + half));
    char last[64];
    const TensorData& o = c[Tensor::kO];
    std::snprintf(last, sizeof last, "stages/reduce/o last %.17g", o.at(o.size() - 1));
    CHECK(sees(last));
    const auto elements = static_cast<std::int64_t>(c.q.size() / 2);
    std::snprintf(last, sizeof last, "inputs/q last %.17g",
                  load_element(c.q.data(), dtype, elements - 1));
    CHECK(sees(last));
  }
}

}  // namespace attn_diag
