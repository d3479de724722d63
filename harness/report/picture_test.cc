#include "harness/report/picture.h"

#include <algorithm>
#include <limits>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

// One batch entry, two heads, 3 query tiles x 3 KV tiles of 64x64, all right.
struct Fixture {
  Problem problem;
  Geometry geometry;
  Region region;
  TensorComparison comparison;

  Fixture() {
    problem.heads = problem.kv_heads = 2;
    problem.seqlen_q = problem.seqlen_k = 192;
    region = whole(problem);
    comparison.tensor = Tensor::kP;
    comparison.picture_shape = {1, 2, 3, 3};
    comparison.picture.assign(18, TileError{0.1, 0, 64 * 64});
  }
  TileError& tile(std::size_t head, std::size_t row, std::size_t column) {
    return comparison.picture[(head * 3 + row) * 3 + column];
  }
  std::string draw(Style style = {}) const {
    return picture(comparison, problem, geometry, region, style);
  }
};

TEST_CASE("the picture shows each tile by the decade of its error") {
  Fixture f;
  f.tile(0, 0, 0) = {2, 1, 4096};
  f.tile(0, 0, 1) = {20, 1, 4096};
  f.tile(0, 0, 2) = {200, 1, 4096};
  f.tile(0, 1, 0) = {2000, 1, 4096};
  f.tile(0, 1, 1) = {std::numeric_limits<double>::infinity(), 1, 4096};
  const std::string text = f.draw();
  CHECK_THAT(text, contains("       0  -+*"));
  CHECK_THAT(text, contains("       1  #N."));
  CHECK_THAT(text, contains("       2  ..."));
  CHECK_THAT(text, contains("head 0"));
  CHECK_THAT(text, contains("head 1"));
}

TEST_CASE("a UTF-8 terminal gets shades, others ASCII only") {
  Fixture f;
  f.tile(1, 2, 2) = {2000, 1, 4096};
  Style unicode;
  unicode.unicode = true;
  CHECK_THAT(f.draw(unicode), contains("█"));
  for (const char c : f.draw()) CHECK(static_cast<unsigned char>(c) < 0x80);
}

TEST_CASE("fully masked tiles are blank, but not where something is wrong in them") {
  Fixture f;
  f.problem.mask.kind = MaskKind::kCausal;
  CHECK_THAT(f.draw(), contains("       0  .  "));
  CHECK_THAT(f.draw(), contains("       1  .. "));
  f.tile(0, 0, 2) = {5, 1, 4096};
  CHECK_THAT(f.draw(), contains("       0  . -"));
}

TEST_CASE("a large grid is reduced by taking the worst, and says so") {
  Fixture f;
  f.problem.seqlen_q = f.problem.seqlen_k = 64 * 640;
  f.region = whole(f.problem);
  f.comparison.picture_shape = {1, 2, 640, 640};
  f.comparison.picture.assign(std::size_t{2} * 640 * 640, TileError{0.1, 0, 4096});
  f.comparison.picture[640 * 639 + 639] = {2000, 1, 4096};  // head 0, the last tile
  const std::string text = f.draw();
  CHECK_THAT(text, contains("the worst of each"));
  CHECK_THAT(text, contains("#"));
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    CHECK(end - at <= 100);
  CHECK(std::count(text.begin(), text.end(), '\n') < 24);
}

TEST_CASE("of many heads the wrong ones are drawn") {
  Fixture f;
  f.problem.heads = f.problem.kv_heads = 9;
  f.region = whole(f.problem);
  f.comparison.picture_shape = {1, 9, 3, 3};
  f.comparison.picture.assign(81, TileError{0.1, 0, 4096});
  f.comparison.picture[8 * 9] = {20, 1, 4096};
  CHECK_THAT(f.draw(), contains("head 8"));
  CHECK_THAT(f.draw(), contains("5 heads more"));
}

}  // namespace
}  // namespace attn_diag::report
