// Host side of a launch and of a kernel's plan: what every adapter needs.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "attn_diag/kernels/adapter.h"
#include "common/compiled.h"

namespace attn_diag {

// Writes the message that goes with a status and returns the status.
__attribute__((format(printf, 4, 5))) inline Status fail(Status status, char* error,
                                                         std::size_t capacity, const char* format,
                                                         ...) {
  if (error == nullptr || capacity == 0) return status;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error, capacity, format, arguments);
  va_end(arguments);
  return status;
}

// Launches kernel(args...) and reports what the runtime says; with request.synchronize, also what
// the kernel ended with.
template <class... Params, class... Args>
Status launch(const RunRequest& request, const char* name, void (*kernel)(Params...), dim3 grid,
              dim3 block, std::size_t shared_bytes, const Args&... args) {
  const auto failed = [&](const char* what, cudaError_t error) {
    return fail(Status::kLaunchFailed, request.error, request.error_capacity,
                "%s, gate %s (grid %ux%ux%u, block %ux%ux%u, %zu bytes of dynamic shared memory): "
                "%s: %s",
                name, kGateNames[static_cast<std::size_t>(request.gate)].data(), grid.x, grid.y,
                grid.z, block.x, block.y, block.z, shared_bytes, what, cudaGetErrorString(error));
  };
  // More dynamic shared memory than every device gives has to be asked for.
  constexpr std::size_t kAlwaysGiven = 48 * 1024;
  cudaGetLastError();  // of an earlier launch that was refused
  cudaError_t result = cudaSuccess;
  if (shared_bytes > kAlwaysGiven) {
    result = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes));
    if (result != cudaSuccess)
      return failed(
          "the device does not give a block that much: choose a smaller --tile or --head-dim",
          result);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(request.stream);
  result = cudaLaunchKernelEx(&config, kernel, args...);
  if (result == cudaSuccess) result = cudaGetLastError();
  if (result != cudaSuccess) return failed("launch failed", result);
  if (request.synchronize) result = cudaStreamSynchronize(config.stream);
  return result == cudaSuccess ? Status::kOk : failed("failed while it ran", result);
}

// What with_traits() and with_tap() gave, with the reason if that is kUnsupported.
inline Status explain_unsupported(Status status, const RunRequest& request) {
  if (status != Status::kUnsupported) return status;
  return fail(status, request.error, request.error_capacity,
              "this tile or gate is not compiled into this library");
}

// Calls f(std::type_identity<Element>{}) for the element type of the request; returns what f does,
// or kUnsupported if the type is not compiled.
template <class F>
Status with_element(const RunRequest& request, F&& f) {
  switch (request.problem.dtype) {
    case DType::kFp16:
      if constexpr (is_compiled(DType::kFp16)) return f(std::type_identity<__half>{});
      break;
    case DType::kBf16:
      if constexpr (is_compiled(DType::kBf16)) return f(std::type_identity<__nv_bfloat16>{});
      break;
    case DType::kFp32:
      if constexpr (is_compiled(DType::kFp32)) return f(std::type_identity<float>{});
      break;
    case DType::kFp64:
      break;
  }
  return fail(Status::kUnsupported, request.error, request.error_capacity,
              "dtype %s is not compiled into this library", name(request.problem.dtype).data());
}

// Refuses what no kernel of ours does: element types and tiles that are not compiled, head
// dimensions past the kernel's largest, grids past CUDA's limits.
inline Status check_supported(const Problem& problem, TileShape tile, int max_head_dim, char* error,
                              std::size_t capacity) {
  if (!is_compiled(problem.dtype)) {
    char compiled[32] = "";
    for (DType type : {DType::kFp16, DType::kBf16, DType::kFp32})
      if (is_compiled(type)) {
        if (compiled[0] != '\0') std::strcat(compiled, ", ");
        std::strcat(compiled, name(type).data());
      }
    return fail(Status::kUnsupported, error, capacity,
                "dtype %s is not compiled into this library; compiled: %s",
                name(problem.dtype).data(), compiled);
  }
  if (problem.head_dim < 1 || problem.head_dim > max_head_dim || problem.head_dim_v < 1 ||
      problem.head_dim_v > max_head_dim)
    return fail(Status::kUnsupported, error, capacity,
                "head_dim %d and head_dim_v %d: this kernel takes 1 to %d", problem.head_dim,
                problem.head_dim_v, max_head_dim);
  if (!is_compiled(tile)) {
    char compiled[96] = "";
    std::size_t used = 0;
    for (const TileShape& t : kCompiledTiles)
      used += std::snprintf(compiled + used, sizeof compiled - used, "%s%dx%d", used ? ", " : "",
                            t.block_m, t.block_n);
    return fail(Status::kUnsupported, error, capacity,
                "tile %dx%d is not compiled into this library; compiled: %s", tile.block_m,
                tile.block_n, compiled);
  }
  if (problem.batch > 65535 || problem.heads > 65535)
    return fail(Status::kUnsupported, error, capacity,
                "batch %d and heads %d: a CUDA grid takes up to 65535 of each", problem.batch,
                problem.heads);
  return Status::kOk;
}

// What is the same for all kernels of ours: fp32 everywhere but in memory, the scale on the
// finished dot product, exp by __expf, log by logf.
inline Arithmetic fp32_arithmetic(const Problem& problem) {
  Arithmetic arithmetic;
  arithmetic.output = problem.dtype;
  return arithmetic;
}

}  // namespace attn_diag
