#include "harness/report/matrix.h"

#include <fmt/format.h>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

MatrixRow moved_row(bool within_bounds) {
  MatrixRow row;
  row.kernel = "toy";
  row.backend = "cuda";
  row.verdict = within_bounds ? RowVerdict::kAgrees : RowVerdict::kDiverges;
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
  CHECK_THAT(order, contains("AGREES") &&
                        contains("bits depend on the order of arrival, within rounding"));
  CHECK_THAT(matrix_text({moved_row(true), moved_row(false)}, {}, false),
             contains("all within the bounds") && contains("a race: 2 runs differ"));
}

TEST_CASE("what many rows say is said once, with how many say it") {
  std::vector<MatrixRow> rows(3);
  for (int i = 0; i < 3; ++i) {
    MatrixRow& row = rows[static_cast<std::size_t>(i)];
    row.kernel = "toy";
    row.seed = static_cast<std::uint64_t>(i);
    row.verdict = RowVerdict::kFailed;
    row.why = fmt::format("Block {} did not come to its end: {}.", i, std::string(90, 'x'));
  }
  const std::string text = matrix_text(rows, {}, false);
  const std::string first = "[1] 3 rows, the first: Block 0 did not come to its end";
  CHECK_THAT(text, contains(first) && !contains("Block 1") && !contains("Block 2"));
  rows.resize(1);  // whose remark is its own
  CHECK_THAT(matrix_text(rows, {}, false), contains("Block 0 did not") && !contains("[1]"));
}

TEST_CASE("a latent row is neither right nor wrong today, and JUnit fails it") {
  MatrixRow row = moved_row(true);
  row.moved_cells = 0;
  row.verdict = RowVerdict::kLatent;
  row.sanity.finding = SanityFinding::kDependsOnOrder;
  row.sanity.on_gpu = OnGpu::kRight;
  row.sanity.calm = Sanity::Calm{"lockstep", {}, true, "in lockstep"};
  CHECK_THAT(comparison_headline(row, {}), contains("LATENT: the result depends on the order") &&
                                               contains("most likely on a GPU today"));
  const std::string text = matrix_text({row, row}, {}, false);
  CHECK_THAT(text, contains("2 cases: 2 latent") && contains("LATENT"));
  const CommandContext context = {"run", "again", "0.1"};
  CHECK(matrix_json({row}, 1, context)["cases"][0]["verdict"] == "latent");
  CHECK(junit_of_rows({row})[0].kind == JunitCase::Kind::kFailed);
  CHECK_THAT(junit_of_rows({row})[0].message, contains("LATENT: "));
}

TEST_CASE("JSON of a row says whether what moved is within its bounds") {
  const CommandContext context = {"run", "again", "0.1"};
  for (const bool within : {true, false})
    CHECK(matrix_json({moved_row(within)}, 1, context)["cases"][0]["moved_within_bounds"] ==
          within);
}

}  // namespace attn_diag::report
