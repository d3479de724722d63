// What fused_wmma is compiled for, unless the build says otherwise; to be included before anything
// of common/.
#pragma once

#ifndef ATTN_DIAG_COMPILED_DTYPES
#define ATTN_DIAG_COMPILED_DTYPES 0x3  // fp16, bf16: what tensor cores multiply with an fp32 sum
#endif
#ifndef ATTN_DIAG_COMPILED_TILES
#define ATTN_DIAG_COMPILED_TILES \
  {64, 64}, {128, 64}, { 16, 16 }
#endif

#include "common/compiled.h"
