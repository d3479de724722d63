#include "attn_diag/harness/numerics.h"

#include "harness/compare/compare_and_visit.h"
#include "harness/numerics/cancellation.h"
#include "harness/numerics/contributions.h"
#include "harness/numerics/origin.h"
#include "harness/numerics/range.h"
#include "harness/numerics/statistics.h"

namespace attn_diag {

Numerics analyse_numerics(const Capture& capture, const NumericsOptions& options) {
  Statistics statistics(capture);
  CancellationFinder cancellation(capture);
  RangeFinder range(capture);
  const auto visit = [&](const reference::RowBlock& block) {
    statistics.add(block);
    cancellation.add(block);
    range.add(block);
  };
  Numerics out;
  out.comparison = compare_and_visit(
      capture, Tolerance{}, options.threads,
      {.every = visit,
       .wrong = {},
       .tensors = tensor_bit(Tensor::kS) | tensor_bit(Tensor::kP) | tensor_bit(Tensor::kLse)});
  out.tensors = statistics.finish();
  out.origins = find_origins(capture);
  out.cancellation = cancellation.finish();
  out.ranges = range.finish();
  out.contributions = find_contributions(capture, options.twin_rows);
  return out;
}

}  // namespace attn_diag
