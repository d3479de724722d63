// What code names that only shares a header with products by cuBLAS: its types, and handles, which do nothing. What
// multiplies is not there on the host executor: code that calls it does not compile.
#pragma once

#include <cuda_runtime.h>

using cublasHandle_t = struct cublasContext*;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
};
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14
};
using cudaDataType = cudaDataType_t;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "an error of cuBLAS";
}
inline const char* cublasGetStatusName(cublasStatus_t status) {
  return cublasGetStatusString(status);
}

#define ATTN_DIAG_NO_CUBLAS(name)                                                              \
  template <class... Arguments>                                                                \
  [[gnu::error(                                                                                \
      "cuBLAS is not there on the host executor: write the product as a kernel, or build for " \
      "--backend cuda")]] cublasStatus_t                                                       \
  name(const Arguments&...);
ATTN_DIAG_NO_CUBLAS(cublasSgemm)
ATTN_DIAG_NO_CUBLAS(cublasHgemm)
ATTN_DIAG_NO_CUBLAS(cublasDgemm)
ATTN_DIAG_NO_CUBLAS(cublasGemmEx)
ATTN_DIAG_NO_CUBLAS(cublasSgemmEx)
ATTN_DIAG_NO_CUBLAS(cublasSgemmBatched)
ATTN_DIAG_NO_CUBLAS(cublasHgemmBatched)
ATTN_DIAG_NO_CUBLAS(cublasGemmBatchedEx)
ATTN_DIAG_NO_CUBLAS(cublasSgemmStridedBatched)
ATTN_DIAG_NO_CUBLAS(cublasHgemmStridedBatched)
ATTN_DIAG_NO_CUBLAS(cublasGemmStridedBatchedEx)
ATTN_DIAG_NO_CUBLAS(cublasSgemv)
ATTN_DIAG_NO_CUBLAS(cublasSgeam)
ATTN_DIAG_NO_CUBLAS(cublasSaxpy)
ATTN_DIAG_NO_CUBLAS(cublasSscal)
ATTN_DIAG_NO_CUBLAS(cublasSdot)
#undef ATTN_DIAG_NO_CUBLAS
