// Sums over the cells of a capture, gathered while the reference passes by. What they sum up to does not depend on the
// order in which blocks come: counts are whole numbers, and sums of errors are kept row by row.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/numerics.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

class Statistics {
 public:
  explicit Statistics(const Capture& capture);
  // Adds a block with S and the capture's tensors with bounds. Thread-safe.
  void add(const reference::RowBlock& block);
  std::vector<TensorNumerics> finish() const;

 private:
  static constexpr int kScoreBins = 12;
  struct Cells {
    double err = 0, outward = 0, squares = 0, ratio_squares = 0, max_ratio = 0;
    std::int64_t judged = 0;
    void add(double error, double expected, double ratio);
    void add(const Cells& other);
  };
  struct OfTensor {
    TensorNumerics counts;
    std::vector<Cells> rows;
    std::vector<std::array<Cells, kScoreBins>> by_score;  // of S and P: of each row
  };

  static int score_bin(double size);
  void add_rows(OfTensor& to, const reference::RowBlock& block, TensorNumerics& counts);
  void positions(const OfTensor& from, TensorNumerics& out) const;

  const Capture& x_capture;
  std::vector<OfTensor> x_tensors;
  std::vector<double> x_largest_score;  // of each row; 0: it sees no key
  std::mutex x_mutex;
};

}  // namespace attn_diag
