#include "attn_diag/harness/capture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "harness/capture/element.h"

namespace attn_diag {
namespace {

// Rounds to a 16-bit format with the given explicit mantissa bits and smallest normal exponent.
// The value is scaled so that one unit in the last place is 1 and rounded once, from double: going
// through float first would round twice. A mantissa that rounds up to the next power of two carries
// into the exponent, and from the largest one into infinity, by the addition alone.
std::uint16_t round_to_16_bit(double value, int mantissa_bits, int min_exponent) {
  const int exponent_bits = 15 - mantissa_bits;
  const auto infinity = static_cast<std::uint16_t>(((1u << exponent_bits) - 1) << mantissa_bits);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | infinity | static_cast<std::uint16_t>(1u << (mantissa_bits - 1));
  const double magnitude = std::fabs(value);
  if (magnitude == 0.0) return sign;
  const int exponent = std::isinf(value) ? 1024 : std::max(std::ilogb(magnitude), min_exponent);
  if (exponent > 1 - min_exponent) return sign | infinity;
  const auto mantissa =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
  const auto biased = static_cast<std::uint32_t>(exponent - min_exponent) << mantissa_bits;
  return sign | static_cast<std::uint16_t>(biased + mantissa);
}

}  // namespace

Region whole(const Problem& problem) {
  return {{0, 0, 0}, {problem.batch, problem.heads, problem.seqlen_q}};
}

std::span<const Tensor> outputs_of(Part part) {
  static constexpr std::array<Tensor, 2> kOutputs = {Tensor::kO, Tensor::kLse};
  static constexpr std::array<Tensor, 1> kS = {Tensor::kS};
  if (part == Part::kScores) return kS;
  return kOutputs;
}

bool is_output(Tensor t, Part part) {
  const std::span<const Tensor> outputs = outputs_of(part);
  return std::find(outputs.begin(), outputs.end(), t) != outputs.end();
}

std::int64_t TensorData::size() const {
  std::int64_t cells = 1;
  for (const std::int64_t extent : shape) cells *= extent;
  return cells;
}

double TensorData::at(std::int64_t index) const { return load_element(bytes.data(), dtype, index); }

bool Provenance::stale() const {
  for (const SourceState& s : sources)
    if (s.found && s.disk_hash != s.built_hash) return true;
  return false;
}

bool Provenance::sources_missing() const {
  for (const SourceState& s : sources)
    if (!s.found) return true;
  return false;
}

SameOutput::Why SameOutput::why() const {
  if (build_id_then.empty() || build_id_now.empty()) return Why::kUnknown;
  if (build_id_then == build_id_now) return Why::kNotRebuilt;
  return stale ? Why::kRebuiltTooSoon : Why::kEditIsElsewhere;
}

std::vector<std::int64_t> tensor_shape(Tensor t, const Problem& problem, const Geometry& geometry) {
  const TensorInfo& tensor = info(t);
  std::vector<std::int64_t> shape;
  for (int i = 0; i < tensor.rank; ++i)
    shape.push_back(axis_extent(tensor.axes[static_cast<std::size_t>(i)], problem, geometry));
  return shape;
}

double load_element(const void* data, DType dtype, std::int64_t index) {
  const auto* bytes =
      static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype));
  switch (dtype) {
    case DType::kFp16: {
      std::uint16_t bits;
      std::memcpy(&bits, bytes, sizeof bits);
      return widen_fp16(bits);
    }
    case DType::kBf16: {
      std::uint16_t bits;
      std::memcpy(&bits, bytes, sizeof bits);
      return widen_bf16(bits);
    }
    case DType::kFp32: {
      float value;
      std::memcpy(&value, bytes, sizeof value);
      return value;
    }
    case DType::kFp64:
      break;
  }
  double value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void store_element(void* data, DType dtype, std::int64_t index, double value) {
  auto* bytes = static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype));
  switch (dtype) {
    case DType::kFp16: {
      const std::uint16_t bits = round_to_16_bit(value, 10, -14);
      std::memcpy(bytes, &bits, sizeof bits);
      return;
    }
    case DType::kBf16: {
      const std::uint16_t bits = round_to_16_bit(value, 7, -126);
      std::memcpy(bytes, &bits, sizeof bits);
      return;
    }
    case DType::kFp32: {
      const float rounded = static_cast<float>(value);
      std::memcpy(bytes, &rounded, sizeof rounded);
      return;
    }
    case DType::kFp64:
      std::memcpy(bytes, &value, sizeof value);
      return;
  }
}

}  // namespace attn_diag
