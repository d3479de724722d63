// All of the stand-in for PyTorch's C++ interface. It is enough for the host code of an extension's
// kernels: tensors as memory with a shape, not their mathematics.
#pragma once

#include "attn_diag_torch/bindings.h"
#include "attn_diag_torch/cuda_context.h"
#include "attn_diag_torch/dispatch.h"
#include "attn_diag_torch/tensor.h"

// Code can ask whether it is compiled against this instead of PyTorch.
#define ATTN_DIAG_TORCH_STAND_IN 1

#define TORCH_API
#define C10_API
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 4

namespace at {
using namespace c10;  // NOLINT: as PyTorch's own
}
namespace torch {
using namespace at;  // NOLINT: as PyTorch's own
namespace cuda = ::c10::cuda;
struct NoGradGuard {};
struct InferenceMode {
  explicit InferenceMode(bool = true) {}
};
}  // namespace torch
