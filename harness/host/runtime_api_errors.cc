// The last error of each thread.
#include "attn_diag_host/runtime_errors.h"
#include "harness/host/last_error.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

struct LastError {
  cudaError_t code = cudaSuccess;
  cudaError_t described = cudaSuccess;
  std::string message;
};
thread_local LastError g_last;

const char* words_of(cudaError_t error) {
  switch (error) {
#define ATTN_DIAG_HOST_ERROR(name, value, text) \
  case name:                                    \
    return text;
    ATTN_DIAG_HOST_CUDA_ERRORS(ATTN_DIAG_HOST_ERROR)
#undef ATTN_DIAG_HOST_ERROR
  }
  return "unrecognized error code";
}

}  // namespace

cudaError_t set_last_error(cudaError_t error, std::string message) {
  g_last = {error, error, std::move(message)};
  return error;
}

cudaError_t refuse(cudaError_t error, const char* call, const std::string& why) {
  return set_last_error(error, concat(words_of(error), ": ", call, ": ", why));
}

}  // namespace attn_diag::host

using attn_diag::host::g_last;

cudaError_t cudaGetLastError() {
  const cudaError_t error = g_last.code;
  g_last.code = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return g_last.code; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define ATTN_DIAG_HOST_ERROR(name, value, text) \
  case name:                                    \
    return #name;
    ATTN_DIAG_HOST_CUDA_ERRORS(ATTN_DIAG_HOST_ERROR)
#undef ATTN_DIAG_HOST_ERROR
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess || error != g_last.described) return attn_diag::host::words_of(error);
  return g_last.message.c_str();
}
