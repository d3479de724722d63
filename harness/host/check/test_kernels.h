// Kernels that check_test launches: what each does wrong is in its name. Lines that findings name are
// marked in test_kernels.cc by comments like "// [first]".
#pragma once

#include <cuda_runtime.h>

namespace attn_diag::host::checked {

// Shared memory, one block of 64 threads unless it says otherwise. `out` has 64 ints.
cudaError_t barrier_right(int* out);
cudaError_t barrier_missing(int* out);
cudaError_t same_value(int* out);
cudaError_t warp_right(int* out);
cudaError_t warp_latent(int* out);
cudaError_t one_store_of_a_warp(int* out);
// Two warps store to one element, with nothing between: floats, from lines of their own or from one.
cudaError_t two_stores(int* out, float first, float second, bool one_line);
// 128 threads load 32 elements each; one then stores to one of these.
cudaError_t reads_of_four_warps(int* out, unsigned who_stores);
cudaError_t shuffle_between(int* out);
enum class EightLanes { kAll, kActive, kOneMissing, kSomeReturn };
cudaError_t eight_lanes(int* out, EightLanes lanes);
cudaError_t half_warps(int* out, bool right);
cudaError_t uninitialised_shared(int* out);
// `threads` of 64 store an element each and load another; the others have returned.
cudaError_t returned_early(int* out, int threads);
cudaError_t bytes_of_neighbours(int* out);
cudaError_t past_static_array(int* out);
cudaError_t past_dynamic(int* out);
cudaError_t barrier_object(int* out, bool waits);
cudaError_t named(int* out, bool waits);
// A warp reads what the other stores, with a named barrier between that only its own warp comes to.
cudaError_t two_named(int* out);
// The first warp waits for the second at a named barrier, within a helper, and the second does not come.
// Without a barrier between who initialises a cuda::barrier, or an mbarrier, and who arrives at it.
cudaError_t unpublished(int* out, bool object, bool publishes);
cudaError_t waits_in_vain(int* out, bool called);  // else the helper is inlined
// Each of two warps waits for the other, within the helper, at a barrier to which the other does not come.
cudaError_t wait_for_each_other(int* out);
cudaError_t async_copy(int* out, const int* from, int left_in_flight);
cudaError_t copied_over(int* out, const int* from, int apart);
cudaError_t wide_async_copy(int* out, const int* from);
cudaError_t waited_copy(int* out, const int* from, int missing);

// Global memory, several blocks.
cudaError_t blocks_race(int* out);
cudaError_t blocks_add(int* out);
cudaError_t locked(int* lock, int* owner, int taken, bool by_sub);
enum class Fence { kByEach, kByLast, kByOneTooEarly, kNone };
cudaError_t last_block_done(int* partial, unsigned* count, int* out, Fence fence);
cudaError_t flag(volatile int* flag, int* data, int* out, bool fenced);
cudaError_t warp_flag(volatile int* flag, int* data, int* out, bool fenced);
cudaError_t two_launches(int* data, int* out);
cudaError_t read_through(const int* from, int* out, int offset);
cudaError_t read_as_vector(const int* from, int* out, int offset);
cudaError_t read_local_as_vector(int* out, int offset);
cudaError_t overflow(const int* from, int* out, int factor);
cudaError_t local_array_partly_set(int* out, bool right);

}  // namespace attn_diag::host::checked
