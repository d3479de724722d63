#include "harness/inputs/coded_inputs.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/kernels/coding.h"

namespace attn_diag {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"q", "k", "v"};

std::string_view text(CodeType type) {
  switch (type) {
    case CodeType::kNone:
      break;
    case CodeType::kInt8:
      return "int8";
    case CodeType::kUint8:
      return "uint8";
    case CodeType::kE4m3:
      return "fp8 e4m3";
    case CodeType::kE5m2:
      return "fp8 e5m2";
  }
  return "no";
}

std::string_view text(ScalePer per) {
  switch (per) {
    case ScalePer::kTensor:
      break;
    case ScalePer::kHead:
      return "head";
    case ScalePer::kBatchHead:
      return "batch and head";
    case ScalePer::kToken:
      return "token";
  }
  return "tensor";
}

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
    std::vector<std::byte>& elements = i == 0 ? out->q : i == 1 ? out->k : out->v;
    if (has_nonfinite(elements, problem.dtype))
      throw Error(
          fmt::format("{} holds NaN or infinity, but the kernel takes it as {} codes, which mean "
                      "neither. Choose other --inputs.",
                      kNames[static_cast<std::size_t>(i)], text(codes.type)));
    make_coded(codes, i, problem, elements);
  }
  return out;
}

std::vector<std::string> code_words(const KernelInfo& kernel) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Codes& codes = kernel.codes[i];
    if (codes.type == CodeType::kNone) continue;
    words.push_back(fmt::format("{} as {} codes with a scale per {}", kNames[i], text(codes.type),
                                text(codes.per)));
  }
  return words;
}

}  // namespace attn_diag
