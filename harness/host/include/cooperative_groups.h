// Stand-in for CUDA's header of this name.
#pragma once

#include "attn_diag_host/grid_group.h"
#include "attn_diag_host/thread_groups.h"
#include "cuda_runtime.h"

#undef ATTN_DIAG_HOST_SITE
