// Compiled through the source pass: what launches mean, and where things are.
#include <cuda_runtime.h>

#include <string>

#include "harness/testing/catch_for_tests.h"

namespace {

extern __shared__ __align__(16) unsigned char outer[];

#define LAUNCH(kernel, ...) kernel<<<__VA_ARGS__>>>

template <int kAdd, class T = float>
__global__ void __launch_bounds__(64) add_kernel(T* x, int n, T extra = T(100)) {
  extern __shared__ T s[];
  __shared__ alignas(16) T t[64];
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
#pragma unroll
  for (int pass = 0; pass < 1; ++pass) s[threadIdx.x] = i < n ? x[i] : T(0);
  t[threadIdx.x] = T(kAdd);
  __syncthreads();
  if (i < n) x[i] = s[threadIdx.x] + t[threadIdx.x] + extra;
}

__global__ void set_kernel(float* x, float value) {
  if (x != nullptr) *x = value;
}
__global__ void set_kernel(int* x, float value) { *x = 2 * static_cast<int>(value); }

struct Size {
  int x, y;
};
__global__ void size_kernel(Size size, int* out) { *out = 10 * size.x + size.y; }

__device__ float twice_shared(int i) {
  const auto* floats = reinterpret_cast<const float*>(outer);
  return 2 * floats[i];
}
__global__ void outer_kernel(float* out) {
  reinterpret_cast<float*>(outer)[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = twice_shared(static_cast<int>(blockDim.x - 1 - threadIdx.x));
}

template <class F>
__global__ void apply_kernel(F f, float* x) {
  x[threadIdx.x] = f(x[threadIdx.x]);
}

struct Launcher {
  template <class T>
  static __global__ void member_kernel(T* x) {
    *x = T(7);
  }
  void (*x_kernel)(float*, float) = set_kernel;
  template <class T>
  void launch(T* x) const {
    member_kernel<T><<<1, 1>>>(x);
  }
  void launch_pointer(float* x) const { this->x_kernel<<<1, 1>>>(x, 4.0f); }
};

}  // namespace

TEST_CASE("deduced template arguments, defaults and dynamic shared memory arrive at the kernel") {
  float x[70] = {};
  add_kernel<1><<<2, 64, 64 * sizeof(float)>>>(x, 70);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(x[69] == 101.0f);
  add_kernel<2, float><<<dim3(2), {64}, 64 * sizeof(float), 0>>>(x, 70, 1.0f);
  CHECK(x[0] == 104.0f);
  int y[1] = {};
  LAUNCH(add_kernel<3>, 1, 64, 64 * sizeof(int))(y, 1, 0);
  CHECK(y[0] == 3);
}

TEST_CASE(
    "a launch with deduced arguments may use the shared memory that was asked for by another "
    "spelling") {
  float x[1] = {1.0f};
  constexpr int kBytes = 96 * 1024;
  add_kernel<5><<<1, 32, kBytes>>>(x, 1, 2.0f);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  REQUIRE(cudaFuncSetAttribute(add_kernel<5, float>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kBytes) == cudaSuccess);
  add_kernel<5><<<1, 32, kBytes>>>(x, 1, 2.0f);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(x[0] == 8.0f);
  add_kernel<5><<<1, 32, 2 * kBytes>>>(x, 1, 2.0f);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
}

TEST_CASE("arguments convert as in a call: 0 to a pointer, braces to a struct, overloads by type") {
  int out = 0;
  size_kernel<<<1, 1>>>({3, 4}, &out);
  CHECK(out == 34);
  void (*chosen)(float*, float) = set_kernel;
  chosen<<<1, 1>>>(0, 1);
  CHECK(cudaGetLastError() == cudaSuccess);
  float x = 0;
  set_kernel<<<1, 1>>>(&x, 3.0f);
  set_kernel<<<1, 1>>>(&out, 3.0f);
  CHECK(x == 3.0f);
  CHECK(out == 6);
}

TEST_CASE("kernels that are members, pointers and lambdas are launched") {
  float x = 0;
  const Launcher launcher;
  launcher.launch(&x);
  CHECK(x == 7.0f);
  launcher.launch_pointer(&x);
  CHECK(x == 4.0f);
  const float by = 3;
  apply_kernel<<<1, 1>>>([=] __device__(float v) { return v * by; }, &x);
  CHECK(x == 12.0f);
}

TEST_CASE("extern __shared__ at namespace scope is the block's memory in every function") {
  float out[4] = {};
  outer_kernel<<<1, 4, 4 * sizeof(float)>>>(out);
  CHECK(out[0] == 6.0f);
  CHECK(out[3] == 0.0f);
}

TEST_CASE("more threads than __launch_bounds__ are refused, with their line") {
  float x[1] = {};
  add_kernel<1><<<1, 96, 96 * sizeof(float)>>>(x, 1);
  const std::string error = cudaGetErrorString(cudaGetLastError());
  CHECK(error.find("has 96 threads") != std::string::npos);
  CHECK(error.find("launches_test.cu:15 allow 64") != std::string::npos);
}

TEST_CASE("lines behind what was translated are the user's") {
  float x = 0;
  // clang-format off
  constexpr int kHere = __LINE__;
  set_kernel<<<1,
               1>>>(&x,
                    1.0f);
  // clang-format on
  CHECK(__LINE__ == kHere + 5);
  CHECK(__builtin_LINE() == kHere + 6);
  CHECK(std::string(__builtin_FILE()).ends_with("launches_test.cu"));
}
