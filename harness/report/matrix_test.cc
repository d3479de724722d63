#include "harness/report/matrix.h"

#include "harness/catch_for_tests.h"

namespace attn_diag::report {
namespace {

MatrixRow moved_row(bool within_bounds) {
  MatrixRow row;
  row.kernel = "toy";
  row.backend = "cuda";
  row.verdict = RowVerdict::kDiverges;
  row.runs = 2;
  row.moved_cells = 7;
  row.moved_within_bounds = within_bounds;
  return row;
}

}  // namespace

TEST_CASE("a row whose two runs differ is a race, unless both are within their bounds") {
  const std::string race = comparison_headline(moved_row(false), {});
  CHECK(race == "DIVERGES: a race: 2 runs differ in 7 cells");
  const std::string order = comparison_headline(moved_row(true), {});
  CHECK_THAT(order, contains("DIVERGES: 2 runs differ in 7 cells, all within the bounds") &&
                        contains("the order in which threads or blocks arrive"));
  CHECK_THAT(matrix_text({moved_row(true), moved_row(false)}, {}, false),
             contains("all within the bounds") && contains("a race: 2 runs differ"));
}

TEST_CASE("JSON of a row says whether what moved is within its bounds") {
  const CommandContext context = {"run", "again", "0.1"};
  for (const bool within : {true, false})
    CHECK(matrix_json({moved_row(within)}, 1, context)["cases"][0]["moved_within_bounds"] ==
          within);
}

}  // namespace attn_diag::report
