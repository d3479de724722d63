// Which elements of a recorded run are wrong, and what is told of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/host/check.h"
#include "attn_diag/harness/lines.h"
#include "attn_diag/reference/counterfactual.h"
#include "harness/lines/causes.h"
#include "harness/lines/terms.h"
#include "harness/lines/watch.h"

namespace attn_diag::lines {

// What rows of o and lse should be. A row is (batch, head, query) as one number.
class ExpectedRows {
 public:
  // `of`: a capture of the case, which outlives this; what it recorded is not looked at.
  explicit ExpectedRows(const Capture& of, const reference::Extras& extras = {});

  bool is_wrong(std::uint32_t row, std::uint32_t column, double actual);
  bool is_wrong_lse(std::uint32_t row, double actual);
  double bound(std::uint32_t row, std::uint32_t column) { return row_of(row).bound[column]; }
  double bound_lse(std::uint32_t row) { return row_of(row).lse_bound; }

 private:
  struct Row {
    std::vector<double> value, bound;
    double lse = 0, lse_bound = 0;
  };
  const Row& row_of(std::uint32_t row);
  void compute_head(std::uint32_t head);
  void predict_head(std::uint32_t head);

  const Capture& x_of;
  std::optional<reference::PredictionInputs> x_case;  // where there is more than Problem has
  std::map<std::uint32_t, Row> x_rows;
};

double o_element(const WatchedRun& run, std::size_t i);

// A few wrong elements, of the first, a middle and the last of the wrong rows; and a right one. Of lse, if all of o
// is right.
struct Chosen {
  bool of_lse = false;
  std::vector<std::size_t> elements;
};
Chosen chosen_elements(const WatchedRun& run, const Attention& attention, ExpectedRows& expected);

// The elements of o, or of lse, that these blocks stored, and up to 4096 that nobody did.
std::vector<OutputElement> judged_elements(const WatchedRun& run, const Attention& attention,
                                           ExpectedRows& expected, bool of_lse,
                                           const std::vector<std::uint32_t>& blocks);

// For a whole graph, with every block that ran. `found`: accesses that are wrong by themselves.
LineDivergence tell_lines(const WatchedRun& run, const Capture& of, const reference::Extras& extras,
                          const host::CheckReport& found);

// Fills in what does not depend on who recorded the graph.
void finish(const WatchedRun& run, const Terms& terms, LineDivergence& out);

// Fills in `out` what stands at the lines that it names.
void add_source_text(LineDivergence& out);

}  // namespace attn_diag::lines
