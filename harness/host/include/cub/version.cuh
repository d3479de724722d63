// Stand-in for CUDA's header of this name: the version of CUB that comes with nvcc 12.4.
#pragma once

#define CUB_VERSION 200301
#define CUB_MAJOR_VERSION 2
#define CUB_MINOR_VERSION 3
#define CUB_SUBMINOR_VERSION 1
