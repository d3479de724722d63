// Stand-in for CUDA's header of this name.
#pragma once

#include "attn_diag_host/half.h"
#include "cuda_runtime.h"
