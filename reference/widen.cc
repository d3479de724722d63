#include "reference/widen.h"

#include <Eigen/Core>
#include <bit>
#include <cmath>

namespace attn_diag::reference {
namespace {

template <class T>
void widen(const void* data, std::int64_t first, std::int64_t stride, std::int32_t rows,
           std::int32_t dim, double* out) {
  const T* in = static_cast<const T*>(data) + first;
  for (std::int32_t r = 0; r < rows; ++r, in += stride, out += dim)
    for (std::int32_t d = 0; d < dim; ++d) out[d] = static_cast<double>(in[d]);
}

// By a float that is odd where it is not exact, so that it is not rounded twice.
template <class T>
T round_once(double x) {
  float narrow = static_cast<float>(x);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != x) {
    if (std::fabs(static_cast<double>(narrow)) > std::fabs(x))
      narrow = std::nextafter(narrow, 0.0f);
    auto bits = std::bit_cast<std::uint32_t>(narrow);
    narrow = std::bit_cast<float>(bits | 1u);
  }
  return T(narrow);
}

}  // namespace

void widen_rows(const void* data, DType dtype, Layout layout, std::int32_t heads,
                std::int32_t seqlen, std::int32_t dim, std::int32_t batch, std::int32_t head,
                std::int32_t begin, std::int32_t end, double* out) {
  // The row of (batch, head, position), counted in rows of `dim` elements.
  const bool by_head = layout == Layout::kBHSD;
  const std::int64_t row = by_head ? (std::int64_t{batch} * heads + head) * seqlen + begin
                                   : (std::int64_t{batch} * seqlen + begin) * heads + head;
  const std::int64_t stride = by_head ? dim : std::int64_t{heads} * dim;
  const std::int32_t rows = end - begin;
  switch (dtype) {
    case DType::kFp16:
      return widen<Eigen::half>(data, row * dim, stride, rows, dim, out);
    case DType::kBf16:
      return widen<Eigen::bfloat16>(data, row * dim, stride, rows, dim, out);
    case DType::kFp32:
      return widen<float>(data, row * dim, stride, rows, dim, out);
    case DType::kFp64:
      return widen<double>(data, row * dim, stride, rows, dim, out);
  }
}

double narrowed(DType type, double x) {
  switch (type) {
    case DType::kFp16:
      return static_cast<double>(round_once<Eigen::half>(x));
    case DType::kBf16:
      return static_cast<double>(round_once<Eigen::bfloat16>(x));
    case DType::kFp32:
      return static_cast<double>(static_cast<float>(x));
    case DType::kFp64:
      break;
  }
  return x;
}

}  // namespace attn_diag::reference
