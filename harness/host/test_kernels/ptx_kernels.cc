#include "harness/host/test_kernels/ptx_kernels.h"

#include <cuda_pipeline.h>

#include "attn_diag_host/give_way.h"
#include "attn_diag_host/mbarrier.h"
#include "attn_diag_host/named_barrier.h"
#include "attn_diag_host/shared_address.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

using namespace attn_diag::host;

#define HERE __FILE__, __LINE__

cudaLaunchConfig_t one_block(int threads, std::size_t dynamic_bytes = 0) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = dynamic_bytes;
  return config;
}

__device__ unsigned thread() { return threadIdx.x; }

__global__ void shared_addresses_kernel(SeenAddresses* out) {
  __shared__ float values[32];
  auto* dynamic = static_cast<char*>(dynamic_shared_memory());
  int own = 0;
  out->static_address = shared_address(values);
  out->dynamic_address = shared_address(dynamic);
  out->end_address = shared_address(dynamic + 64);
  out->static_pointer = reinterpret_cast<std::uintptr_t>(values);
  out->dynamic_pointer = reinterpret_cast<std::uintptr_t>(dynamic);
  out->same_static = shared_pointer(shared_address(&values[5])) == &values[5];
  out->same_dynamic = shared_pointer(shared_address(dynamic + 63)) == dynamic + 63;
  out->shared = is_shared(values) && is_shared(dynamic);
  out->global_shared = is_shared(out);
  out->local = is_local(&own);
  out->shared_local = is_local(values);
}

__global__ void bad_address_kernel(BadAddress what, float* global) {
  int own = 0;
  switch (what) {
    case BadAddress::kGlobal:
      shared_address(global);
      break;
    case BadAddress::kLocal:
      shared_address(&own);
      break;
    case BadAddress::kNull:
      shared_address(nullptr);
      break;
    case BadAddress::kZero:
      shared_pointer(0);
      break;
    case BadAddress::kPastTheEnd:
      shared_pointer(shared_address(static_cast<char*>(dynamic_shared_memory()) + 64));
      break;
  }
}

// Warp 0 fills two buffers in turn; warps 1 and 2 read them. Barriers 1, 2: full; 3, 4: empty.
__global__ void named_pipeline_kernel(int tiles, int* out) {
  __shared__ int buffer[2][32];
  const unsigned lane = thread() % 32;
  if (thread() < 32) {
    for (int tile = 0; tile < tiles; ++tile) {
      const auto slot = static_cast<unsigned>(tile % 2);
      if (tile >= 2) named_barrier_sync(3 + slot, 96, HERE);
      buffer[slot][lane] = tile * 100 + static_cast<int>(lane);
      named_barrier_arrive(1 + slot, 96, HERE);
    }
    return;
  }
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const auto slot = static_cast<unsigned>(tile % 2);
    named_barrier_sync(1 + slot, 96, HERE);
    sum += buffer[slot][31 - lane];
    if (tile + 2 < tiles) named_barrier_arrive(3 + slot, 96, HERE);
  }
  out[thread()] = sum;
}

__global__ void named_whole_block_kernel(int staying, int* out) {
  __shared__ int values[128];
  const int t = static_cast<int>(thread());
  if (t >= staying) return;
  values[t] = t;
  named_barrier_sync(0, 0, HERE);
  const int got = values[staying - 1 - t];
  named_barrier_sync(5, 0, HERE);
  values[t] = got;
  named_barrier_sync(5, 0, HERE);
  out[t] = values[staying - 1 - t];
}

__global__ void unfinished_arrival_kernel() {
  if (thread() < 32) named_barrier_arrive(7, 64, HERE);
}

__global__ void bad_named_barrier_kernel(BadNamedBarrier what) {
  const bool first = thread() < 32;
  switch (what) {
    case BadNamedBarrier::kNumber:
      return named_barrier_sync(16, 64, HERE);
    case BadNamedBarrier::kOddCount:
      return named_barrier_sync(1, 48, HERE);
    case BadNamedBarrier::kTooManyThreads:
      return named_barrier_sync(1, 96, HERE);
    case BadNamedBarrier::kArriveWithoutCount:
      return named_barrier_arrive(1, 0, HERE);
    case BadNamedBarrier::kDifferentCounts:
      return named_barrier_sync(1, first ? 32 + 32 * (thread() % 2) : 64, HERE);
    case BadNamedBarrier::kTwice:
      named_barrier_arrive(1, 64, HERE);
      return named_barrier_arrive(1, 64, HERE);
    case BadNamedBarrier::kZeroAgainstSyncthreads:
      if (first) return __syncthreads();
      return named_barrier_sync(0, 32, HERE);
    case BadNamedBarrier::kSyncthreadsAgainstZero:
      if (first) {
        named_barrier_arrive(0, 64, HERE);
        __syncwarp();
      }
      return __syncthreads();
    case BadNamedBarrier::kTooFew:
      if (first) named_barrier_sync(1, 64, HERE);
      return;
  }
}

// As named_pipeline, with two pairs of mbarriers.
__global__ void mbarrier_pipeline_kernel(int tiles, int* out) {
  __shared__ std::uint64_t full[2], empty[2];
  __shared__ int buffer[2][32];
  const unsigned lane = thread() % 32;
  if (thread() == 0)
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(&full[i], 32, HERE);
      mbarrier_init(&empty[i], 64, HERE);
    }
  __syncthreads();
  int sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const unsigned slot = static_cast<unsigned>(tile) % 2, phase = static_cast<unsigned>(tile) / 2;
    if (thread() < 32) {
      while (!mbarrier_test_wait_parity(&empty[slot], (phase + 1) % 2, HERE)) {
      }
      buffer[slot][lane] = tile * 100 + static_cast<int>(lane);
      mbarrier_arrive(&full[slot], 1, HERE);
    } else {
      while (!mbarrier_test_wait_parity(&full[slot], phase % 2, HERE)) {
      }
      sum += buffer[slot][31 - lane];
      mbarrier_arrive(&empty[slot], 1, HERE);
    }
  }
  out[thread()] = sum;
}

// 64 bytes are announced by thread 0 and copied, in parts, by warp 1.
__global__ void mbarrier_bytes_kernel(int* out) {
  __shared__ std::uint64_t barrier;
  __shared__ int values[32];
  if (thread() == 0) mbarrier_init(&barrier, 1, HERE);
  __syncthreads();
  if (thread() == 0) mbarrier_arrive_expect_tx(&barrier, 32 * sizeof(int), HERE);
  if (thread() >= 32) {
    values[thread() - 32] = static_cast<int>(thread());
    mbarrier_complete_tx(&barrier, sizeof(int), HERE);
  }
  while (!mbarrier_test_wait_parity(&barrier, 0, HERE)) {
  }
  out[thread()] = values[31 - thread() % 32];
}

__global__ void mbarrier_states_kernel(std::uint64_t* out) {
  __shared__ std::uint64_t barrier;
  mbarrier_init(&barrier, 3, HERE);
  const std::uint64_t first = mbarrier_arrive(&barrier, 1, HERE);
  out[0] = mbarrier_pending_count(first);
  out[1] = mbarrier_test_wait(&barrier, first, HERE);
  out[2] = mbarrier_pending_count(mbarrier_arrive_drop(&barrier, 1, HERE));
  mbarrier_arrive(&barrier, 1, HERE);
  out[3] = mbarrier_test_wait(&barrier, first, HERE);
  const std::uint64_t second = mbarrier_arrive(&barrier, 1, HERE);
  out[4] = mbarrier_pending_count(second);
  out[5] = mbarrier_test_wait_parity(&barrier, 1, HERE);
  mbarrier_expect_tx(&barrier, 16, HERE);
  mbarrier_arrive(&barrier, 1, HERE);
  out[6] = mbarrier_test_wait_parity(&barrier, 1, HERE);
  mbarrier_complete_tx(&barrier, 16, HERE);
  out[7] = mbarrier_test_wait_parity(&barrier, 1, HERE);
}

__global__ void mbarrier_copies_kernel(bool noinc, bool wait, const float* in, float* out) {
  __shared__ std::uint64_t barrier;
  __shared__ float values[64];
  if (thread() == 0) mbarrier_init(&barrier, 64, HERE);
  __syncthreads();
  __pipeline_memcpy_async(&values[thread()], &in[thread()], sizeof(float));
  cp_async_mbarrier_arrive(&barrier, noinc, HERE);
  if (!noinc) mbarrier_arrive(&barrier, 1, HERE);
  while (wait && !mbarrier_test_wait_parity(&barrier, 0, HERE)) {
  }
  out[thread()] = values[63 - thread()];
  __syncthreads();
  __pipeline_wait_prior(0);
}

__global__ void bad_mbarrier_kernel(BadMbarrier what, std::uint64_t* global) {
  __shared__ std::uint64_t barriers[2];
  std::uint64_t* barrier = what == BadMbarrier::kGlobal ? global : barriers;
  if (what == BadMbarrier::kMisaligned)
    barrier = reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(barrier) + 4);
  if (what == BadMbarrier::kZeroed) *barrier = 0;
  if (what != BadMbarrier::kNotInitialised && what != BadMbarrier::kZeroed)
    mbarrier_init(barrier, what == BadMbarrier::kNoArrivals ? 0 : 2, HERE);
  if (what == BadMbarrier::kInvalidated) mbarrier_inval(barrier, HERE);
  if (what == BadMbarrier::kBytesNeverCome) mbarrier_expect_tx(barrier, 4096, HERE);
  const bool never = what == BadMbarrier::kNeverComplete;
  mbarrier_arrive(barrier, what == BadMbarrier::kTooManyArrivals ? 3 : never ? 1 : 2, HERE);
  while (!mbarrier_test_wait_parity(barrier, 0, HERE)) {
  }
}

__global__ void load_matrices_kernel(int count, bool transposed, const std::uint16_t* in,
                                     std::uint32_t* out) {
  __shared__ __align__(16) std::uint16_t values[32][8];
  for (unsigned i = 0; i < 8; ++i) values[thread()][i] = in[thread() * 8 + i];
  __syncwarp();
  std::uint32_t registers[4] = {};
  const void* row = static_cast<int>(thread()) < 8 * count ? &values[thread()] : nullptr;
  ldmatrix(registers, count, transposed, row, HERE);
  for (int m = 0; m < count; ++m) out[static_cast<int>(thread()) * count + m] = registers[m];
}

__global__ void store_matrices_kernel(int count, bool transposed, const std::uint32_t* in,
                                      std::uint16_t* out) {
  __shared__ __align__(16) std::uint16_t values[32][8];
  std::uint32_t registers[4] = {};
  for (int m = 0; m < count; ++m) registers[m] = in[static_cast<int>(thread()) * count + m];
  stmatrix(&values[thread()], registers, count, transposed, HERE);
  __syncwarp();
  if (static_cast<int>(thread()) < 8 * count)
    for (unsigned i = 0; i < 8; ++i) out[thread() * 8 + i] = values[thread()][i];
}

__global__ void write_then_load_matrix_kernel(bool synchronize, std::uint32_t* out) {
  __shared__ __align__(16) std::uint32_t values[8][4];
  values[7 - thread() / 4][3 - thread() % 4] = 31 - thread();
  if (synchronize) __syncwarp();
  ldmatrix(&out[thread()], 1, false, &values[thread() % 8], HERE);
}

__global__ void bad_row_kernel(BadRow what, std::uint16_t* global) {
  __shared__ __align__(16) std::uint16_t values[33][8];
  std::uint32_t registers[4] = {};
  if (what == BadRow::kReturnedLanes && thread() > 3) return;
  if (what == BadRow::kGlobal)
    ldmatrix(registers, 1, false, global + thread() * 8, HERE);
  else if (what == BadRow::kMisaligned)
    stmatrix(&values[thread()][4], registers, 1, false, HERE);
  else
    ldmatrix(registers, what == BadRow::kDifferentKinds && thread() == 9 ? 2 : 4, false,
             &values[thread()], HERE);
}

// The layouts as the PTX ISA's pictures state them, written out apart from the executor's.
__device__ unsigned row_of_a(bool wide, unsigned i) {
  const unsigned group = thread() / 4;
  return wide ? (i == 0 || i == 2 ? group : group + 8)
              : (i < 2 || (i >= 4 && i < 6) ? group : group + 8);
}
__device__ unsigned column_of_a(bool wide, unsigned i) {
  const unsigned in_group = thread() % 4;
  if (wide) return i < 2 ? in_group : in_group + 4;
  return i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
}
__device__ unsigned row_of_b(bool wide, unsigned i) {
  const unsigned in_group = thread() % 4;
  if (wide) return i == 0 ? in_group : in_group + 4;
  return i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
}
__device__ unsigned row_of_c(unsigned i) { return i < 2 ? thread() / 4 : thread() / 4 + 8; }
__device__ unsigned column_of_c(unsigned i) { return thread() % 4 * 2 + (i & 1); }

__device__ void put(std::uint32_t* registers, bool wide, unsigned i, std::uint32_t value) {
  if (wide)
    registers[i] = value;
  else
    registers[i / 2] |= value << (i % 2 * 16);
}

__global__ void multiply_by_registers_kernel(MmaKind kind, MmaOperands x) {
  const unsigned depth = kind.shape == MmaShape::kM16N8K16  ? 16
                         : kind.shape == MmaShape::kM16N8K8 ? 8
                                                            : 4;
  const bool wide = kind.input == MmaInput::kTf32;
  std::uint32_t a[4] = {}, b[2] = {}, c[4] = {}, d[4] = {};
  for (unsigned i = 0; i < depth / 2; ++i)
    put(a, wide, i, x.a[row_of_a(wide, i) * depth + column_of_a(wide, i)]);
  for (unsigned i = 0; i < depth / 4; ++i)
    put(b, wide, i, x.b[row_of_b(wide, i) * 8 + thread() / 4]);
  for (unsigned i = 0; i < 4; ++i) put(c, !kind.half_c, i, x.c[row_of_c(i) * 8 + column_of_c(i)]);
  mma_sync(kind, d, a, b, c, HERE);
  for (unsigned i = 0; i < 4; ++i)
    x.d[row_of_c(i) * 8 + column_of_c(i)] = kind.half_d ? d[i / 2] >> (i % 2 * 16) & 0xFFFFu : d[i];
}

}  // namespace

cudaError_t shared_addresses(SeenAddresses* out) {
  const auto config = one_block(1, 64);
  return cudaLaunchKernelEx(&config, shared_addresses_kernel, out);
}
cudaError_t bad_address(BadAddress what, float* global) {
  const auto config = one_block(1, 64);
  return cudaLaunchKernelEx(&config, bad_address_kernel, what, global);
}
cudaError_t named_pipeline(int tiles, int* out) {
  const auto config = one_block(96);
  return cudaLaunchKernelEx(&config, named_pipeline_kernel, tiles, out);
}
cudaError_t named_whole_block(int threads, int staying, int* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, named_whole_block_kernel, staying, out);
}
cudaError_t unfinished_arrival() {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, unfinished_arrival_kernel);
}
cudaError_t bad_named_barrier(BadNamedBarrier what) {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, bad_named_barrier_kernel, what);
}
cudaError_t mbarrier_pipeline(int tiles, int* out) {
  const auto config = one_block(96);
  return cudaLaunchKernelEx(&config, mbarrier_pipeline_kernel, tiles, out);
}
cudaError_t mbarrier_bytes(int* out) {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, mbarrier_bytes_kernel, out);
}
cudaError_t mbarrier_states(std::uint64_t* out) {
  const auto config = one_block(1);
  return cudaLaunchKernelEx(&config, mbarrier_states_kernel, out);
}
cudaError_t mbarrier_copies(bool noinc, bool wait, const float* in, float* out) {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, mbarrier_copies_kernel, noinc, wait, in, out);
}
cudaError_t bad_mbarrier(BadMbarrier what, std::uint64_t* global) {
  const auto config = one_block(1);
  return cudaLaunchKernelEx(&config, bad_mbarrier_kernel, what, global);
}
cudaError_t load_matrices(int count, bool transposed, const std::uint16_t* in, std::uint32_t* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, load_matrices_kernel, count, transposed, in, out);
}
cudaError_t store_matrices(int count, bool transposed, const std::uint32_t* in,
                           std::uint16_t* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, store_matrices_kernel, count, transposed, in, out);
}
cudaError_t write_then_load_matrix(bool synchronize, std::uint32_t* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, write_then_load_matrix_kernel, synchronize, out);
}
cudaError_t bad_row(BadRow what, std::uint16_t* global) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, bad_row_kernel, what, global);
}
cudaError_t multiply_by_registers(MmaKind kind, const MmaOperands& x) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, multiply_by_registers_kernel, kind, x);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
