#include "harness/testing/captures.h"

#include <random>

#include "attn_diag/reference/reference.h"
#include "harness/capture/consistency.h"
#include "harness/capture/reference_rows.h"

namespace attn_diag::testing {
namespace {

std::vector<std::byte> random_elements(std::size_t n, DType dtype, std::mt19937& random) {
  std::vector<std::byte> elements(n * size_of(dtype));
  for (std::size_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(random() % 4096) / 1024.0 - 2.0;
    store_element(elements.data(), dtype, static_cast<std::int64_t>(i), value);
  }
  return elements;
}

}  // namespace

Capture empty_capture(const Problem& problem, const Geometry& geometry) {
  Capture c;
  c.problem = problem;
  c.geometry = geometry;
  c.region = whole(problem);
  const auto elements = [&](std::int32_t heads, std::int32_t seqlen, std::int32_t dim) {
    return static_cast<std::size_t>(problem.batch) * static_cast<std::size_t>(heads) *
           static_cast<std::size_t>(seqlen) * static_cast<std::size_t>(dim);
  };
  const std::size_t bytes = size_of(problem.dtype);
  c.q.edit().resize(elements(problem.heads, problem.seqlen_q, problem.head_dim) * bytes);
  c.k.edit().resize(elements(problem.kv_heads, problem.seqlen_k, problem.head_dim) * bytes);
  c.v.edit().resize(elements(problem.kv_heads, problem.seqlen_k, problem.head_dim_v) * bytes);
  return c;
}

void put(Capture& capture, Tensor t, DType dtype, const std::vector<double>& values) {
  TensorData d;
  d.id = t;
  d.dtype = dtype;
  d.shape = recorded_shape(t, capture);
  d.origin = recorded_origin(t, capture);
  d.bytes.resize(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(d.bytes.data(), dtype, static_cast<std::int64_t>(i), values[i]);
  capture.tensors[static_cast<std::size_t>(t)] = std::move(d);
}

Capture reference_capture(const Problem& problem, const Geometry& geometry, unsigned seed,
                          std::optional<Region> region) {
  Capture c = empty_capture(problem, geometry);
  std::mt19937 random(seed);
  for (SharedBytes* input : {&c.q, &c.k, &c.v})
    *input = random_elements(input->size() / size_of(problem.dtype), problem.dtype, random);
  if (region) c.region = *region;
  c.arithmetic.output = problem.dtype;

  reference::Options options = reference_options(c, 0, false);
  options.tensors = reference::Options{}.tensors;  // all: none is recorded yet
  const reference::Tensors tensors = reference::compute(
      problem, geometry, c.arithmetic, {c.q.data(), c.k.data(), c.v.data()}, options);
  for (int i = 0; i < kNumTensors; ++i) {
    const auto t = static_cast<Tensor>(i);
    const std::vector<double>& values = tensors.value[static_cast<std::size_t>(i)];
    if (!values.empty()) put(c, t, t == Tensor::kO ? problem.dtype : DType::kFp32, values);
  }

  c.provenance.kernel = "made-by-hand";
  c.provenance.backend = "host";
  c.provenance.gate = "reduce";
  c.provenance.command_line = "attn-diag dump --\xc3\xa9";
  c.provenance.seed = 0xfedcba9876543210u;
  c.provenance.sources = {{"/src/a.cu", 0xfedcba9876543210u, 0xfedcba9876543210u, true},
                          {"/src/b.h", 2, 0, false}};
  c.notes = {"a note", "and another"};
  return c;
}

}  // namespace attn_diag::testing
