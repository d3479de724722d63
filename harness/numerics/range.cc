#include "harness/numerics/range.h"

#include <algorithm>
#include <cmath>

#include "harness/compare/ulps.h"

namespace attn_diag {
namespace {

double largest_of(DType type) {
  return type == DType::kFp16 ? 65504.0 : type == DType::kBf16 ? 0x1.fep127 : 0x1.fffffep127;
}

void count(double size, RangeInType& r) {
  const UlpScale scale = ulp_scale(r.type);
  const double half_of_least = scale.smallest_normal / scale.per_power_of_two / 2;
  ++r.cells;
  r.largest = std::max(r.largest, size);
  if (size > 0) r.smallest = r.smallest == 0 ? size : std::min(r.smallest, size);
  r.overflows += size > r.type_largest ? 1 : 0;
  const bool vanishes = size <= half_of_least && (size > 0 || r.tensor == Tensor::kP);
  r.vanishes += vanishes ? 1 : 0;
  r.subnormal += size > half_of_least && size < scale.smallest_normal ? 1 : 0;
}

void merge(const RangeInType& from, RangeInType& to) {
  to.cells += from.cells;
  to.largest = std::max(to.largest, from.largest);
  if (from.smallest > 0)
    to.smallest = to.smallest == 0 ? from.smallest : std::min(to.smallest, from.smallest);
  to.overflows += from.overflows;
  to.subnormal += from.subnormal;
  to.vanishes += from.vanishes;
  to.lost_of_row = std::max(to.lost_of_row, from.lost_of_row);
}

}  // namespace

RangeFinder::RangeFinder(const Capture& capture) : x_capture(capture) {
  for (std::size_t i = 0; i < 2; ++i) {
    RangeInType& r = x_found[i];
    r.tensor = i == 0 ? Tensor::kS : Tensor::kP;
    r.type = storage_of(r.tensor, capture);
    r.type_smallest_normal = ulp_scale(r.type).smallest_normal;
    r.type_largest = largest_of(r.type);
  }
}

void RangeFinder::add_row(const double* s, const double* p,
                          std::array<RangeInType, 2>& found) const {
  const std::int32_t keys = x_capture.problem.seqlen_k, width = x_capture.geometry.tile.block_n;
  const UlpScale scale = ulp_scale(found[1].type);
  const double half_of_least = scale.smallest_normal / scale.per_power_of_two / 2;
  for (std::int32_t begin = 0; begin < keys; begin += width) {
    double sum = 0, lost = 0;
    for (std::int32_t j = begin; j < std::min(begin + width, keys); ++j) {
      if (!std::isfinite(s[j])) continue;
      count(std::fabs(s[j]), found[0]);
      if (p == nullptr || !std::isfinite(p[j])) continue;
      count(p[j], found[1]);
      sum += p[j];
      lost += p[j] <= half_of_least ? p[j] : 0;
    }
    if (sum > 0) found[1].lost_of_row = std::max(found[1].lost_of_row, lost / sum);
  }
}

void RangeFinder::add(const reference::RowBlock& block) {
  const double* s = block.value[static_cast<std::size_t>(Tensor::kS)];
  const double* p = block.value[static_cast<std::size_t>(Tensor::kP)];
  if (s == nullptr) return;
  std::array<RangeInType, 2> found;
  for (std::size_t i = 0; i < 2; ++i) {
    found[i].tensor = x_found[i].tensor;
    found[i].type = x_found[i].type;
    found[i].type_largest = x_found[i].type_largest;
  }
  const std::int64_t keys = x_capture.problem.seqlen_k;
  for (std::int64_t r = 0; r < block.rows; ++r)
    add_row(s + r * keys, p == nullptr ? nullptr : p + r * keys, found);
  const std::lock_guard lock(x_mutex);
  for (std::size_t i = 0; i < 2; ++i) merge(found[i], x_found[i]);
}

std::vector<RangeInType> RangeFinder::finish() const {
  std::vector<RangeInType> out;
  for (RangeInType r : x_found) {
    if (r.cells == 0) continue;
    if (r.tensor == Tensor::kS && r.largest > 0)
      r.error_of_largest =
          std::ldexp(1.0, std::ilogb(r.largest)) / ulp_scale(r.type).per_power_of_two / 2;
    out.push_back(r);
  }
  return out;
}

}  // namespace attn_diag
