#include "harness/inputs/coded_inputs.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/kernels/coding.h"
#include "harness/library/code_words.h"

namespace attn_diag {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"q", "k", "v"};

CodedTensor encoded(const Codes& codes, int input, const Problem& p, const std::byte* elements) {
  return encode(codes, input, coded_shape(p, input), [&](std::int64_t i) {
    return static_cast<float>(load_element(elements, p.dtype, i));
  });
}

void make_coded(const Codes& codes, int input, const Problem& p, std::vector<std::byte>& elements) {
  const CodedShape shape = coded_shape(p, input);
  const CodedTensor coded = encoded(codes, input, p, elements.data());
  for (std::size_t i = 0; i < coded.codes.size(); ++i)
    store_element(elements.data(), p.dtype, static_cast<std::int64_t>(i),
                  static_cast<double>(decode(codes, coded, shape.dim, i)));
}

}  // namespace

std::optional<InputData> coded_inputs(const Kernel& kernel, const Problem& problem,
                                      const InputData& inputs) {
  std::optional<InputData> out;
  for (int i = 0; i < 3; ++i) {
    const Codes& codes = kernel.info().codes[i];
    if (codes.type == CodeType::kNone) continue;
    if (!out) out = inputs;
    std::vector<std::byte>& elements = (i == 0 ? out->q : i == 1 ? out->k : out->v).edit();
    if (has_nonfinite(elements, problem.dtype))
      throw Error(
          fmt::format("{} holds NaN or infinity, but the kernel takes it as {} codes, which mean "
                      "neither. Choose other --inputs.",
                      kNames[static_cast<std::size_t>(i)], text(codes.type)));
    make_coded(codes, i, problem, elements);
  }
  return out;
}

std::vector<float> scales_of_rows(const Kernel& kernel, const Problem& problem,
                                  const InputData& inputs, int input) {
  const Codes& codes = kernel.info().codes[input];
  if (codes.type == CodeType::kNone) return {};
  const CodedShape shape = coded_shape(problem, input);
  const auto& elements = input == 0 ? inputs.q : input == 1 ? inputs.k : inputs.v;
  const CodedTensor coded = encoded(codes, input, problem, elements.data());
  std::vector<float> scales;
  for (std::int64_t b = 0; b < shape.batch; ++b)
    for (std::int64_t h = 0; h < shape.heads; ++h)
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        const auto group = static_cast<std::size_t>(coding::group_index(codes, shape, b, h, row));
        scales.push_back(coded.groups[group].scale);
      }
  return scales;
}

}  // namespace attn_diag
