// Stand-in for CUDA's header of this name.
#pragma once

#include "attn_diag_host/bfloat16.h"
#include "cuda_runtime.h"
