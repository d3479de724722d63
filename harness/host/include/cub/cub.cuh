// Stand-in for CUDA's header of this name, as much of it as attention kernels use: WarpReduce and BlockReduce.
#pragma once

#include "block/block_reduce.cuh"
#include "thread/thread_operators.cuh"
#include "version.cuh"
#include "warp/warp_reduce.cuh"
