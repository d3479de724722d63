#include "harness/host/check/access_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <unistd.h>

#include <cstring>

namespace attn_diag::host::checked {
namespace {

constexpr int kThreads = 64, kElements = 32;

template <int kBytes>
struct Bytes {
  char of[kBytes];
};
struct Struct12 {
  int x, y, z;
};
struct Struct16 {
  float x, y;
  double z;
};
struct Struct24 {
  double x;
  int y[4];
};

template <class... Parameters, class... Arguments>
cudaError_t run(void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kThreads);
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// Calls act with a null pointer of the element's type.
template <class Act>
cudaError_t with_element(Element element, const Act& act) {
  switch (element) {
    case Element::kChar:
      return act(static_cast<char*>(nullptr));
    case Element::kHalf:
      return act(static_cast<half*>(nullptr));
    case Element::kBfloat16:
      return act(static_cast<__nv_bfloat16*>(nullptr));
    case Element::kHalf2:
      return act(static_cast<half2*>(nullptr));
    case Element::kInt:
      return act(static_cast<int*>(nullptr));
    case Element::kInt2:
      return act(static_cast<int2*>(nullptr));
    case Element::kFloat4:
      return act(static_cast<float4*>(nullptr));
    case Element::kDouble:
      return act(static_cast<double*>(nullptr));
    case Element::kStruct3:
      return act(static_cast<Bytes<3>*>(nullptr));
    case Element::kStruct6:
      return act(static_cast<Bytes<6>*>(nullptr));
    case Element::kStruct12:
      return act(static_cast<Struct12*>(nullptr));
    case Element::kStruct16:
      return act(static_cast<Struct16*>(nullptr));
    case Element::kStruct24:
      break;
  }
  return act(static_cast<Struct24*>(nullptr));
}

template <class T>
__global__ void copy_kernel(const T* from, T* to, bool equal) {
  const unsigned t = threadIdx.x;
  to[t % kElements] = from[equal ? t % kElements : t];
}

template <class T>
__global__ void copy_shared_kernel(const T* from, bool equal) {
  __shared__ T sRow[kElements];
  const unsigned t = threadIdx.x;
  sRow[t % kElements] = from[equal ? t % kElements : t];
}

template <class T>
__device__ __noinline__ int first_byte(T value) {
  char byte;
  std::memcpy(&byte, &value, 1);
  return byte;
}

template <class T>
__global__ void by_value_kernel(const T* from, int* out, bool synchronised) {
  __shared__ T sRow[kThreads];
  const unsigned t = threadIdx.x;
  sRow[t] = from[t];
  if (synchronised) __syncthreads();
  out[t] = first_byte(sRow[(t + 32) % kThreads]);
}

__global__ void libc_kernel(Libc function, bool apart, int bytes, const char* from, char* to) {
  const auto n = static_cast<std::size_t>(bytes);
  const unsigned t = threadIdx.x;
  char* const mine = to + (apart ? t : t % kElements) * n;
  if (function == Libc::kMemcpy) std::memcpy(mine, from + t * n, n);
  if (function == Libc::kMemmove) std::memmove(mine, from + t * n, n);
  if (function == Libc::kMemset) std::memset(mine, static_cast<int>(t), n);
}

__global__ void unseen_kernel(char* from, char* to) {
  swab(from + 2 * threadIdx.x, to + 2 * threadIdx.x, 2);
}

__global__ void only_stores_kernel(int* out, bool overrun) {
  __shared__ int sUnread[kThreads - 1];
  const unsigned t = threadIdx.x;
  int* const row = sUnread;
  if (overrun || t < kThreads - 1) row[t] = 1;
  out[t] = 1;
}

__global__ void only_loads_kernel(int* out) {
  __shared__ int sUnset[kThreads];
  out[threadIdx.x] = sUnset[threadIdx.x];
}

__device__ int g_last;
__device__ int g_row[kThreads];
__constant__ int c_row[kThreads] = {1, 2, 3};

__global__ void device_variable_kernel(bool atomic) {
  if (atomic)
    atomicAdd(&g_last, 1);
  else
    g_last = static_cast<int>(threadIdx.x);
}

__global__ void device_array_kernel(int past) {
  int* const row = g_row;
  row[static_cast<int>(threadIdx.x) + past] = 1;
}
__global__ void constant_kernel(int* out, int past) {
  const int* const row = c_row;
  out[threadIdx.x] = row[static_cast<int>(threadIdx.x) + past];
}

__global__ void sum_kernel(const float* from, int count, float* out) {
  __shared__ float sRow[kThreads * 4];
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < count; i += kThreads) sRow[i] = from[i];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += sRow[i] * (i <= t ? 1.0f : 0.5f);
  out[t] = sum;
}

}  // namespace

cudaError_t copies_race(Element element, bool shared, bool equal, const void* from, void* to) {
  return with_element(element, [&](auto* of) {
    using T = std::remove_pointer_t<decltype(of)>;
    const auto* const typed = static_cast<const T*>(from);
    return shared ? run(copy_shared_kernel<T>, typed, equal)
                  : run(copy_kernel<T>, typed, static_cast<T*>(to), equal);
  });
}

cudaError_t passes_by_value(Element element, bool synchronised, const void* from, int* out) {
  return with_element(element, [&](auto* of) {
    using T = std::remove_pointer_t<decltype(of)>;
    return run(by_value_kernel<T>, static_cast<const T*>(from), out, synchronised);
  });
}

cudaError_t calls_libc(Libc function, bool apart, int bytes, const char* from, char* to) {
  return run(libc_kernel, function, apart, bytes, from, to);
}
cudaError_t calls_unseen(char* from, char* to) { return run(unseen_kernel, from, to); }
cudaError_t only_stores(int* out, bool overrun) { return run(only_stores_kernel, out, overrun); }
cudaError_t only_loads(int* out) { return run(only_loads_kernel, out); }
cudaError_t device_variable(bool atomic) { return run(device_variable_kernel, atomic); }
cudaError_t device_array(int past) { return run(device_array_kernel, past); }
cudaError_t constant_array(int* out, int past) { return run(constant_kernel, out, past); }
cudaError_t sums_rows(const float* from, int count, float* out) {
  return run(sum_kernel, from, count, out);
}

}  // namespace attn_diag::host::checked
