#include "harness/capture/consistency.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/capture/capture_fields.h"

namespace attn_diag {
namespace {

// Every visited field as "name = value" pairs.
class FieldList {
 public:
  template <class T>
  void operator()(const char* field, const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      x_fields.emplace_back(field, fmt::format("{}", value));
    else
      x_fields.emplace_back(field, text(value));
  }

  // "seqlen_k 128 and 64, mask none and causal:top_left"; empty if all are equal.
  std::string differences(const FieldList& other) const {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < x_fields.size(); ++i)
      if (x_fields[i].second != other.x_fields[i].second)
        found.push_back(fmt::format("{} {} and {}", x_fields[i].first, x_fields[i].second,
                                    other.x_fields[i].second));
    return fmt::format("{}", fmt::join(found, ", "));
  }

 private:
  std::vector<std::pair<std::string, std::string>> x_fields;
};

std::string path_of(Tensor t) { return fmt::format("/stages/{}/{}", name(stage_of(t)), name(t)); }

bool depends_on_tiles(Tensor t) { return t != Tensor::kS && t != Tensor::kLse && t != Tensor::kO; }

}  // namespace

std::vector<std::int64_t> recorded_shape(Tensor t, const Capture& capture) {
  std::vector<std::int64_t> shape = tensor_shape(t, capture.problem, capture.geometry);
  std::copy_n(capture.region.extent.begin(), 3, shape.begin());
  return shape;
}

std::vector<std::int64_t> recorded_origin(Tensor t, const Capture& capture) {
  std::vector<std::int64_t> origin(static_cast<std::size_t>(info(t).rank), 0);
  std::copy_n(capture.region.origin.begin(), 3, origin.begin());
  return origin;
}

void check_tensor(const Capture& capture, const TensorData& data) {
  const std::vector<std::int64_t> shape = recorded_shape(data.id, capture);
  const std::vector<std::int64_t> origin = recorded_origin(data.id, capture);
  if (data.shape != shape || data.origin != origin)
    throw Error(fmt::format(
        "Tensor {} has shape {} from {} on, but its problem and region ask for {} from {} on.",
        name(data.id), data.shape, data.origin, shape, origin));
  const auto expected_bytes = static_cast<std::size_t>(data.size()) * size_of(data.dtype);
  if (data.bytes.size() != expected_bytes)
    throw Error(fmt::format("Tensor {} of shape {} and type {} needs {} bytes, but has {}.",
                            name(data.id), data.shape, text(data.dtype), expected_bytes,
                            data.bytes.size()));
}

bool same_case(const Capture& a, const Capture& b) {
  const auto fields = [](const Capture& c) {
    FieldList all;
    visit_problem(c.problem, all);
    visit_geometry(c.geometry, all);
    visit_arithmetic(c.arithmetic, all);
    return all;
  };
  return fields(a).differences(fields(b)).empty() && a.q == b.q && a.k == b.k && a.v == b.v;
}

void check_comparable(const Capture& actual, const Capture& expected,
                      const std::string& actual_name, const std::string& expected_name) {
  FieldList a, b;
  visit_problem(actual.problem, a);
  visit_problem(expected.problem, b);
  if (const std::string d = a.differences(b); !d.empty())
    throw Error(fmt::format("{} and {} are of different problems: {}. Run both on the same one.",
                            actual_name, expected_name, d));
  if (actual.region.origin != expected.region.origin ||
      actual.region.extent != expected.region.extent)
    throw Error(fmt::format(
        "{} and {} record different regions: batch, head, query from {} on, {} of them, and from "
        "{} on, {} of them. Record the same region in both.",
        actual_name, expected_name, actual.region.origin, actual.region.extent,
        expected.region.origin, expected.region.extent));
  FieldList ga, gb;
  visit_geometry(actual.geometry, ga);
  visit_geometry(expected.geometry, gb);
  const std::string geometry = ga.differences(gb);
  for (const TensorInfo& t : kTensors) {
    if (actual.has(t.id) != expected.has(t.id))
      throw Error(fmt::format(
          "{} has no {}, which {} has. Record both up to the same stage, from kernels that expose "
          "the same tensors.",
          actual.has(t.id) ? expected_name : actual_name, path_of(t.id),
          actual.has(t.id) ? actual_name : expected_name));
    if (actual.has(t.id) && depends_on_tiles(t.id) && !geometry.empty())
      throw Error(fmt::format(
          "{} cannot be compared: {} and {} cut the problem differently: {}. Choose the same tile "
          "and number of splits, or record o and lse alone (gate full).",
          path_of(t.id), actual_name, expected_name, geometry));
  }
}

}  // namespace attn_diag
