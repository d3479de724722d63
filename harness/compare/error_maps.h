// Pictures of errors: heat maps of error over limit, histograms, and the values of the cells that tell most.
//
// One more pass of the reference, after a comparison has said where to look. Memory does not grow with the tensors:
// maps are reduced to a few bins, the worst cell of each, and single values are kept of a window around the first
// and the worst wrong cell alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/histogram.h"

namespace attn_diag {

// Over the judged cells of a tensor.
struct ErrorHistogram {
  Tensor tensor = Tensor::kO;
  DType storage =
      DType::kFp32;  // what the kernel rounds it to, as declared: the type that ULPs are of
  // By err/limit: 0; up to 10^-3; half decades up to 10^6; more; no finite multiple of the limit.
  static constexpr int kFirstExponent = -3, kLastExponent = 6;
  static constexpr int kEdges = 2 * (kLastExponent - kFirstExponent) + 1;
  std::array<std::int64_t, kEdges + 3> by_limit{};
  // By ulp_bin(), where ULPs mean something: in other cells the bound leaves fewer than half of the digits.
  std::array<std::int64_t, kUlpBins> by_ulp{};
};

// One (batch, head) of a tensor, queries down and `across` to the right; along an axis between the two the worst is
// taken (KV tile or split, where `across` is dim).
struct ErrorMap {
  Tensor tensor = Tensor::kO;
  std::int64_t batch = 0, head = 0;
  Axis across = Axis::kDim;
  std::int64_t first_query = 0, queries = 0, columns = 0;  // cells
  std::int64_t by_query = 1, by_column = 1;                // cells of a bin
  // Row-major over the bins: the largest err/limit; +inf where no multiple of it would do; -1 where nothing was judged
  // or all is masked.
  std::vector<float> worst;

  std::int64_t down() const { return (queries + by_query - 1) / by_query; }
  std::int64_t wide() const { return (columns + by_column - 1) / by_column; }
};

// A rectangle of cells, queries down and the tensor's last axis to the right.
struct CellWindow {
  Tensor tensor = Tensor::kO;
  std::array<std::int64_t, 5>
      first{};  // absolute index of its first cell; the first info(tensor).rank are valid
  std::int64_t rows = 0, columns = 0;
  std::vector<double> actual, expected, limit;  // row-major
};

struct ErrorMaps {
  std::vector<ErrorHistogram> histograms;  // a tensor each, in pipeline order
  std::vector<ErrorMap> maps;
  std::vector<CellWindow> windows;
  // The heads that have maps, the one to look at first in front.
  std::vector<std::array<std::int64_t, 2>> heads;  // (batch, head)
};

// `comparison`: of this capture, by this tolerance. Maps of every tensor of the head in which the first wrong tensor
// is wrong first, or of the first one recorded where all agrees; for some more wrong heads, maps of the first wrong
// tensor and of o. A window each around the first and the worst wrong cell of the first wrong tensor, and one of o.
ErrorMaps map_errors(const Capture& capture, const Comparison& comparison,
                     const Tolerance& tolerance, int threads = 0);

}  // namespace attn_diag
