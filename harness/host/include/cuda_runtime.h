// Stand-in for CUDA's header of this name: compiles plain CUDA C++ with the host compiler, to run
// on the SIMT host executor.
#pragma once

#include <cassert>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "attn_diag_host/address_spaces.h"
#include "attn_diag_host/atomics.h"
#include "attn_diag_host/indices.h"
#include "attn_diag_host/intrinsics.h"
#include "attn_diag_host/kernel_limits.h"
#include "attn_diag_host/launch.h"
#include "attn_diag_host/launch_by_pointer.h"
#include "attn_diag_host/note_rounded.h"
#include "attn_diag_host/qualifiers.h"
#include "attn_diag_host/runtime_api.h"
#if defined(ATTN_DIAG_HOST_TRANSLATED)
#include "attn_diag_host/static_shared.h"
#endif
#include "attn_diag_host/synchronize.h"
#include "attn_diag_host/time.h"
#include "attn_diag_host/translated_launch.h"
#include "attn_diag_host/trap.h"
#include "attn_diag_host/vector_types.h"
#include "attn_diag_host/warp.h"
