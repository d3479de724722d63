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

void make_coded(const Codes& codes, int input, const Problem& p, std::vector<std::byte>& elements) {
  const CodedShape shape = coded_shape(p, input);
  const CodedTensor coded = encode(codes, input, shape, [&](std::int64_t i) {
    return static_cast<float>(load_element(elements.data(), p.dtype, i));
  });
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

}  // namespace attn_diag
