// Kernels that do nothing but synchronise. They are compiled once and linked into two modules: one runs on
// the executor, the other on the lean ring (lean_runtime.cc).
#pragma once

extern "C" {
// Each launches `blocks` blocks of 128 threads; returns a cudaError_t. Every thread passes `count`
// barriers or shuffles.
int bench_barriers(int blocks, int count);
int bench_shuffles(int blocks, int count, float* out);
int bench_empty_blocks(int blocks);
// Only the executor's module has this: one warp makes `count` products 16 x 16 x 16 of the 256 halves at
// `in`; both aligned to 32 bytes.
int bench_matrix_products(int count, const void* in, float* out);
// Only the lean ring's module has this; the executor's is told by a LaunchScope.
void lean_set_workers(int workers);
}
