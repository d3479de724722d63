#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <type_traits>
#include <utility>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/numerics.h"
#include "harness/capture/capture_fields.h"

namespace attn_diag {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "attn-diag-numerics-baseline/1";

constexpr std::int64_t Census::*kCounts[] = {
    &Census::nan,       &Census::plus_inf, &Census::minus_inf,  &Census::overflow,
    &Census::subnormal, &Census::flushed,  &Census::underflowed};
constexpr const char* kCountNames[] = {"nan",       "plus_inf", "minus_inf",  "overflow",
                                       "subnormal", "flushed",  "underflowed"};
constexpr std::size_t kNumCounts = std::size(kCounts);

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// The largest distance of the two distributions.
double distance(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const double all_a = static_cast<double>(sum(a)), all_b = static_cast<double>(sum(b));
  if (all_a == 0 || all_b == 0) return all_a == all_b ? 0 : 1;
  double below_a = 0, below_b = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    below_a += static_cast<double>(a[i]) / all_a;
    below_b += static_cast<double>(b[i]) / all_b;
    most = std::max(most, std::fabs(below_a - below_b));
  }
  return most;
}

// The distance that two samples of one distribution exceed once in 10^6 times.
double chance(std::int64_t a, std::int64_t b) {
  const double n = static_cast<double>(a), m = static_cast<double>(b);
  return a == 0 || b == 0 ? 0 : std::sqrt(std::log(2 / 1e-6) / 2 * (n + m) / (n * m));
}

constexpr double kMoved = 1.25;

void compare_ratios(const BaselineTensor& before, const BaselineTensor& now, DriftReport& out) {
  if (distance(before.ratios, now.ratios) <= chance(sum(before.ratios), sum(now.ratios))) return;
  for (const auto& [q, words] : {std::pair{0.5, "half of the cells"},
                                 {0.9, "90 % of the cells"},
                                 {0.99, "99 % of the cells"}}) {
    const double was = quantile(before.ratios, q), is = quantile(now.ratios, q);
    if (is <= was * kMoved && was <= is * kMoved) continue;
    out.drifted.push_back(
        {now.name, fmt::format("{} are within {:.3g}x of the bound, were within {:.3g}x: {}", words,
                               is, was, is > was ? "larger errors" : "smaller errors")});
    return;
  }
}

void compare_counts(const BaselineTensor& before, const BaselineTensor& now, DriftReport& out) {
  for (std::size_t i = 0; i < kNumCounts; ++i) {
    const std::int64_t was = before.census.*kCounts[i], is = now.census.*kCounts[i];
    if ((was == 0) != (is == 0))
      out.drifted.push_back(
          {now.name, fmt::format("{}: {} cells, were {}", kCountNames[i], is, was)});
  }
}

// "batch=1 heads=2 ..." of every field.
struct FieldWords {
  std::string words;
  template <class T>
  void operator()(const char* field, const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
      words += fmt::format("{}={} ", field, value);
    else
      words += fmt::format("{}={} ", field, text(value));
  }
};

std::vector<std::int64_t> counts_of(const Json& j, std::size_t size) {
  auto counts = j.get<std::vector<std::int64_t>>();
  if (counts.size() != size ||
      std::any_of(counts.begin(), counts.end(), [](std::int64_t n) { return n < 0; }))
    throw Error(
        fmt::format("a histogram has {} counts, expected {} of 0 or more", counts.size(), size));
  return counts;
}

}  // namespace

Baseline baseline_of(const Capture& capture, const Numerics& numerics) {
  Baseline b;
  FieldWords fields;
  visit_problem(capture.problem, fields);
  visit_geometry(capture.geometry, fields);
  const Provenance& p = capture.provenance;
  b.of = fmt::format("{}inputs={} seed={} input_scale={} stage={}", fields.words, p.inputs, p.seed,
                     p.input_scale, p.gate);
  const auto& [origin, extent] = capture.region;
  for (std::size_t i = 0; i < 3; ++i)
    b.of += fmt::format(" {}={}+{}", kAxisNames[i], origin[i], extent[i]);
  b.kernel = p.kernel;
  b.created = capture.provenance.created;
  b.build_id = capture.provenance.build_id;
  for (const TensorNumerics& t : numerics.tensors)
    b.tensors.push_back(
        {std::string(name(t.tensor)), {t.ulps.begin(), t.ulps.end()}, t.ratios, t.census});
  return b;
}

std::string baseline_text(const Baseline& b) {
  Json j;
  j["schema"] = kSchema;
  j["of"] = b.of;
  j["kernel"] = b.kernel;
  j["created"] = b.created;
  j["build_id"] = b.build_id;
  j["tensors"] = Json::array();
  for (const BaselineTensor& t : b.tensors) {
    Json census;
    for (std::size_t i = 0; i < kNumCounts; ++i) census[kCountNames[i]] = t.census.*kCounts[i];
    j["tensors"].push_back(
        {{"name", t.name}, {"ulps", t.ulps}, {"err_over_bound", t.ratios}, {"census", census}});
  }
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Baseline read_baseline(const std::string& text, const std::string& path) {
  try {
    const Json j = Json::parse(text);
    if (j.at("schema") != kSchema)
      throw Error(fmt::format("its schema is {}, expected {}", j.at("schema").dump(), kSchema));
    Baseline b;
    b.of = j.at("of").get<std::string>();
    b.kernel = j.at("kernel").get<std::string>();
    b.created = j.at("created").get<std::string>();
    b.build_id = j.at("build_id").get<std::string>();
    for (const Json& t : j.at("tensors")) {
      BaselineTensor tensor;
      tensor.name = t.at("name").get<std::string>();
      tensor.ulps = counts_of(t.at("ulps"), kUlpBins);
      tensor.ratios = counts_of(t.at("err_over_bound"), kRatioBins);
      for (std::size_t i = 0; i < kNumCounts; ++i)
        tensor.census.*kCounts[i] = t.at("census").at(kCountNames[i]).get<std::int64_t>();
      b.tensors.push_back(std::move(tensor));
    }
    return b;
  } catch (const std::exception& e) {
    throw Error(fmt::format(
        "{} is no baseline of attn-diag numerics: {}. Write one with --write-baseline FILE.", path,
        e.what()));
  }
}

DriftReport find_drift(const Baseline& before, const Baseline& now) {
  if (before.of != now.of)
    throw Error(fmt::format(
        "The baseline is of another case and cannot be compared: it is of {}, and this run of {}. "
        "Run the same case, or write a baseline of this one with --write-baseline FILE.",
        before.of, now.of));
  DriftReport out;
  out.identical = before.tensors.size() == now.tensors.size();
  for (const BaselineTensor& t : now.tensors) {
    const auto was = std::find_if(before.tensors.begin(), before.tensors.end(),
                                  [&](const BaselineTensor& o) { return o.name == t.name; });
    if (was == before.tensors.end()) {
      out.identical = false;
      out.drifted.push_back({t.name, "it is recorded now, and was not"});
      continue;
    }
    out.identical = out.identical && was->ulps == t.ulps && was->ratios == t.ratios;
    compare_ratios(*was, t, out);
    compare_counts(*was, t, out);
  }
  for (const BaselineTensor& was : before.tensors)
    if (std::none_of(now.tensors.begin(), now.tensors.end(),
                     [&](const BaselineTensor& t) { return t.name == was.name; }))
      out.drifted.push_back({was.name, "it is not recorded any more"});
  return out;
}

}  // namespace attn_diag
