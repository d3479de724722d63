#include "harness/run/repetition.h"

#include <cmath>
#include <cstring>
#include <string>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

// Head 1 to 2, query 4 to 6 of S with two keys, and lse of the same rows.
Capture capture() {
  Capture c;
  c.problem.heads = c.problem.kv_heads = 3;
  TensorData s;
  s.id = Tensor::kS;
  s.shape = {1, 2, 3, 2};
  s.origin = {0, 1, 4, 0};
  s.bytes.resize(12 * 4);
  for (int i = 0; i < 12; ++i) store_element(s.bytes.data(), DType::kFp32, i, 0.5 * i);
  TensorData lse;
  lse.id = Tensor::kLse;
  lse.shape = {1, 2, 3};
  lse.origin = {0, 1, 4};
  lse.bytes.resize(6 * 4);
  c.tensors[static_cast<std::size_t>(Tensor::kS)] = s;
  c.tensors[static_cast<std::size_t>(Tensor::kLse)] = lse;
  return c;
}

void set(Capture& c, Tensor t, std::int64_t cell, double value) {
  TensorData& data = *c.tensors[static_cast<std::size_t>(t)];
  store_element(data.bytes.data(), data.dtype, cell, value);
}

}  // namespace

TEST_CASE("two runs with the same bits have not moved") {
  Capture c = capture();
  add_repetition(c, capture());
  CHECK(c.repetition.runs == 2);
  CHECK_FALSE(c.repetition.moved());
  CHECK(repetition_text(c.repetition).empty());
}

TEST_CASE("one NaN is as good as another, but not as a cell that nobody wrote") {
  Capture c = capture(), second = capture();
  set(c, Tensor::kLse, 2, std::nan(""));
  set(second, Tensor::kLse, 2, -std::nan(""));
  add_repetition(c, second);
  CHECK_FALSE(c.repetition.moved());
  const std::uint32_t poison = 0x7FA5A5A5u;  // what o and lse hold before a run
  std::memcpy(second.tensors[static_cast<std::size_t>(Tensor::kLse)]->bytes.data() + 2 * 4, &poison,
              4);
  add_repetition(c, second);
  CHECK(c.repetition.moved());
}

TEST_CASE("cells whose bits differ are counted, and the first is named by its coordinates") {
  Capture c = capture(), second = capture();
  set(second, Tensor::kS, 9, 7.0);  // head 1 + 1, query 4 + 1, key 1
  set(second, Tensor::kS, 11, 8.0);
  set(second, Tensor::kLse, 0, -0.0);  // equal, but not the same bits
  add_repetition(c, second);
  REQUIRE(c.repetition.moved());
  REQUIRE(c.repetition.second);
  CHECK(c.repetition.second->has(Tensor::kS));
  CHECK((*c.repetition.second)[Tensor::kS].at(9) == 7.0);
  CHECK(c.repetition.moved_cells() == 3);
  CHECK(c.repetition.first->tensor == Tensor::kS);
  CHECK(c.repetition.first->index == std::array<std::int64_t, 5>{0, 2, 5, 1, 0});
  CHECK(repetition_text(c.repetition) ==
        "Two runs of the same case differ in 2 cells of S, 1 cell of lse; first S(0, 2, 5, 1): 4.5 "
        "in "
        "one, 7 in the other.");
}

TEST_CASE("a cell that only the second run leaves unwritten counts, too") {
  Capture c = capture(), second = capture();
  Coverage& coverage = second.coverage[static_cast<std::size_t>(Tensor::kS)];
  coverage.never = 1;
  coverage.first_never = CoverageFault{Tensor::kS, {0, 1, 4, 0, 0}, 0};
  add_repetition(c, second);
  CHECK(c.coverage[static_cast<std::size_t>(Tensor::kS)].never == 1);
  CHECK(c.coverage[static_cast<std::size_t>(Tensor::kS)].first_never.has_value());
}

}  // namespace attn_diag
