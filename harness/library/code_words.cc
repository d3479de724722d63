#include "harness/library/code_words.h"

#include <fmt/format.h>

#include <array>

namespace attn_diag {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"q", "k", "v"};

std::string_view text(ScalePer per) {
  switch (per) {
    case ScalePer::kTensor:
    case ScalePer::kNone:
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

}  // namespace

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

std::vector<std::string> code_words(const KernelInfo& kernel) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Codes& codes = kernel.codes[i];
    if (codes.type == CodeType::kNone) continue;
    const std::string scales = codes.per == ScalePer::kNone
                                   ? "without a scale"
                                   : fmt::format("with a scale per {}", text(codes.per));
    words.push_back(fmt::format("{} as {} codes {}", kNames[i], text(codes.type), scales));
  }
  return words;
}

}  // namespace attn_diag
