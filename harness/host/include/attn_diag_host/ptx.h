// What the source pass makes of inline PTX.
#pragma once

#include "attn_diag_host/ptx_arithmetic.h"
#include "attn_diag_host/ptx_bits.h"
#include "attn_diag_host/ptx_convert.h"
#include "attn_diag_host/ptx_fp8.h"
#include "attn_diag_host/ptx_memory.h"
#include "attn_diag_host/ptx_warp.h"
