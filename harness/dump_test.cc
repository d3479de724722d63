#include "attn_diag/harness/dump.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "attn_diag/harness/compare.h"
#include "harness/capture_fields.h"
#include "harness/catch_for_tests.h"
#include "harness/testing/captures.h"
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

}  // namespace attn_diag
