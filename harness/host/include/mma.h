// Stand-in for CUDA's header of this name.
#pragma once

#include "attn_diag_host/mma.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
