#include "harness/host/check/loop_kernels.h"

#include "attn_diag_host/check_hooks.h"

namespace attn_diag::host::checked {
namespace {

constexpr int kThreads = 64, kRow = 16, kLong = 32;

struct Three {
  int x, y, z;
};

// Unsigned: a test for overflow of what was loaded is for each round, and no loop with one is told as a whole.
__device__ inline unsigned value(char x) { return static_cast<unsigned char>(x); }
__device__ inline unsigned value(short x) { return static_cast<unsigned short>(x); }
__device__ inline unsigned value(int x) { return static_cast<unsigned>(x); }
__device__ inline unsigned value(int2 x) { return value(x.x) + 3 * value(x.y); }
__device__ inline unsigned value(Three x) { return value(x.x) + 3 * value(x.y) + 5 * value(x.z); }
__device__ inline unsigned value(float4 x) {
  return static_cast<unsigned>(x.x + 3 * x.y + 5 * x.z + 7 * x.w);
}

template <class T>
__device__ inline T made(int i) {
  return static_cast<T>(i);
}
template <>
__device__ inline int2 made<int2>(int i) {
  return int2{i, i + 1};
}
template <>
__device__ inline Three made<Three>(int i) {
  return Three{i, i + 1, i + 2};
}
template <>
__device__ inline float4 made<float4>(int i) {
  const auto x = static_cast<float>(i);
  return float4{x, x + 1, x + 2, x + 3};
}

template <class... Parameters, class... Arguments>
cudaError_t run(void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kThreads);
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <class Act>
cudaError_t with_element(LoopElement element, const Act& act) {
  switch (element) {
    case LoopElement::kChar:
      return act(static_cast<char*>(nullptr));
    case LoopElement::kShort:
      return act(static_cast<short*>(nullptr));
    case LoopElement::kInt:
      return act(static_cast<int*>(nullptr));
    case LoopElement::kInt2:
      return act(static_cast<int2*>(nullptr));
    case LoopElement::kStruct12:
      return act(static_cast<Three*>(nullptr));
    case LoopElement::kFloat4:
      break;
  }
  return act(static_cast<float4*>(nullptr));
}

template <class T>
__global__ void read_row(Flaw flaw, int count, int stride, int* out) {
  __shared__ T sRow[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  if (flaw != Flaw::kUninitialised || t != kThreads / 2) sRow[t] = made<T>(t);
  __syncthreads();
  if (flaw == Flaw::kRace && t == 40) sRow[8] = made<T>(100);
  unsigned sum = 0;
  if (stride > 0)
    for (int i = 0; i < count; ++i) sum += value(sRow[i * stride]);
  else
    for (int i = count - 1; i >= 0; --i) sum += value(sRow[-i * stride]);
  out[t] = static_cast<int>(sum);
}

template <class T>
__global__ void read_global(const T* from, int rows, int count, int pitch, int* out) {
  unsigned sum = 0;
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < count; ++i) sum += value(from[row * pitch + i]);
  out[threadIdx.x] = static_cast<int>(sum);
}

template <class T>
__device__ void store_row(T* rows, Rows which, int* out) {
  const int t = static_cast<int>(threadIdx.x);
  const int row = which == Rows::kOwn ? t : which == Rows::kOfNeighbourLanes ? t / 2 : t % 32;
  const int what = which == Rows::kSharedEqual ? t % 32 : t;
  for (int i = 0; i < kRow; ++i) rows[row * kRow + i] = made<T>(what + i);
  __syncthreads();
  unsigned sum = 0;
  for (int i = 0; i < kRow; ++i) sum += value(rows[row * kRow + i]);
  out[t] = static_cast<int>(sum);
}

template <class T>
__global__ void store_shared_rows(Rows which, int* out) {
  __shared__ T sRows[kThreads * kRow];
  store_row(sRows, which, out);
}

template <class T>
__global__ void store_global_rows(T* rows, Rows which, int* out) {
  store_row(rows, which, out);
}

// Not inlined: what the pointers are is not known.
__attribute__((noinline)) __device__ void copy_row(int* to, const int* from, int count) {
  for (int i = 0; i < count; ++i) to[i] = from[i];
}

__global__ void work_on_rows(Shape shape, int* rows, int limit, int* out) {
  const int t = static_cast<int>(threadIdx.x);
  int* const row = rows + t * kLong;
  unsigned sum = 0;
  switch (shape) {
    case Shape::kInPlace:
      for (int i = 0; i < kLong; ++i) row[i] = static_cast<int>(2 * value(row[i]));
      break;
    case Shape::kShifted:
      for (int i = 0; i + 1 < kLong; ++i) row[i + 1] = row[i];
      break;
    case Shape::kAliased:
      copy_row(row + 1, row, kLong - 1);
      break;
    case Shape::kPairs:
      for (int i = 0; i < kLong / 2; ++i) {
        row[2 * i] = i;
        row[2 * i + 1] = -i;
      }
      break;
    case Shape::kSums:
      for (int i = 0; i < kLong; ++i)
        row[0] = static_cast<int>(value(row[0]) + static_cast<unsigned>(i * (limit & 63)));
      break;
    case Shape::kCondition:
    case Shape::kLimited:
      for (int i = 0; i < kLong; ++i)
        if (i < limit) row[i] = i;
      break;
    case Shape::kLocal:
    case Shape::kLocalUnset: {
      int local[kLong];
      local_array(local, sizeof local, "local", __FILE__, __LINE__);
      for (int i = 0; i < kLong; ++i)
        if (shape == Shape::kLocal || i != 20) local[i] = row[i];
      for (int i = 0; i < kLong; ++i) sum += value(local[i]);
      break;
    }
    case Shape::kOverflow:
      for (int i = 0; i < kLong; ++i) sum += value(row[(i * limit) & 31]);
      break;
  }
  for (int i = 0; i < kLong; ++i) sum += value(row[i]);
  out[t] = static_cast<int>(sum);
}

__global__ void store_after(Before before, int* out) {
  __shared__ int sRow[kThreads];
  const int t = static_cast<int>(threadIdx.x), other = (t + 32) % kThreads;
  if (before != Before::kUnset) sRow[t] = t;
  __syncthreads();
  int sum = 0;
  if (before == Before::kVolatile) sum = *static_cast<volatile int*>(&sRow[other]);
  if (before == Before::kAtomic) atomicAdd(&sRow[other], 1);
  if (before != Before::kVolatile && before != Before::kAtomic) sum = sRow[other];
  out[t] = sum;
  if (before == Before::kTwoLines) out[t] = sRow[other] + 1;
  if (before == Before::kBarrier) __syncthreads();
  if (t % kRow == 0)
    for (int i = 0; i < kRow; ++i) sRow[t + i] = i;
  __syncthreads();
  out[t] += sRow[t];
}

}  // namespace

cudaError_t reads_row(LoopElement element, Flaw flaw, int count, int stride, int* out) {
  const int rounds = flaw == Flaw::kOverrun ? count + 1 : count;
  return with_element(element,
                      [&]<class T>(T*) { return run(read_row<T>, flaw, rounds, stride, out); });
}

cudaError_t reads_global(LoopElement element, const void* from, int rows, int count, int pitch,
                         int* out) {
  return with_element(element, [&]<class T>(T*) {
    return run(read_global<T>, static_cast<const T*>(from), rows, count, pitch, out);
  });
}

cudaError_t stores_rows(LoopElement element, Rows rows, bool shared, void* to, int* out) {
  return with_element(element, [&]<class T>(T*) {
    return shared ? run(store_shared_rows<T>, rows, out)
                  : run(store_global_rows<T>, static_cast<T*>(to), rows, out);
  });
}

cudaError_t stores_after(Before before, int* out) { return run(store_after, before, out); }

cudaError_t works_on_rows(Shape shape, int* rows, int limit, int* out) {
  return run(work_on_rows, shape, rows, limit, out);
}

}  // namespace attn_diag::host::checked
