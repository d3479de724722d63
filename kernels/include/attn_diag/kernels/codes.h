// Inputs that a kernel takes as 8-bit codes with scales: value = scale * (code - zero). The case's q, k or v
// are then what codes mean, exactly, so that nothing but the kernel's own error is judged (coding.h).
#pragma once

#include <cstdint>

namespace attn_diag {

enum class CodeType : std::uint8_t {
  kNone,   // the input is what it is: the problem's dtype
  kInt8,   // -127 to 127, zero is 0
  kUint8,  // 0 to 255, with a zero of its own for every scale
  kE4m3,   // fp8
  kE5m2,   // fp8
};

// What has a scale of its own.
enum class ScalePer : std::uint8_t {
  kTensor,
  kHead,       // [heads], the same in every batch entry
  kBatchHead,  // [batch][heads]
  kToken,      // [batch][heads][seqlen], or with layout BSHD [batch][seqlen][heads]
  // The last, so that libraries that are built already mean what they did.
  kNone,  // every scale is 1, and the kernel is given none, as of fp8 that was never scaled
};

struct Codes {
  CodeType type = CodeType::kNone;
  ScalePer per = ScalePer::kTensor;
};

}  // namespace attn_diag
