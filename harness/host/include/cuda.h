// Stand-in for CUDA's header of this name: the types that code for the runtime takes from it. There is no
// driver API.
#pragma once

#include "cuda_runtime.h"

#ifndef CUDA_VERSION
#define CUDA_VERSION 12040
#endif

using CUstream = cudaStream_t;
using CUevent = cudaEvent_t;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
