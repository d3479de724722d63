// How much of q.k and of P.V cancels: sum |ab| / |sum ab|, which is what multiplies relative rounding errors.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/numerics.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

class CancellationFinder {
 public:
  explicit CancellationFinder(const Capture& capture);
  // Adds a block with S and lse, and the capture's tensors with bounds. Thread-safe.
  void add(const reference::RowBlock& block);
  std::vector<Cancellation> finish() const;

 private:
  static constexpr int kBinsPerDigit = 32, kDigits = 17;
  struct Found {
    Cancellation result;
    std::vector<std::int64_t> digits = std::vector<std::int64_t>(kBinsPerDigit * kDigits + 1);
    double largest_relative = 0;
    void add(const CancelledDot& dot, double expected, bool judged);
    void keep(const CancelledDot& dot);
    void keep_largest(const CancelledDot& dot, double relative);
    void merge(const Found& other);
    double quantile(double q) const;
  };
  void add_scores(const reference::RowBlock& block, Found& found) const;
  void add_output(const reference::RowBlock& block, Found& found) const;

  const Capture& x_capture;
  std::array<Found, 2> x_found;  // of S and of o
  std::mutex x_mutex;
};

}  // namespace attn_diag
