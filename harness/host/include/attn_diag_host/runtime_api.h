// The part of the CUDA runtime API that kernels' host code needs. There is one device, its memory is host
// memory, and every call is done when it returns.
#pragma once

#include "attn_diag_host/device_api.h"
#include "attn_diag_host/function_api.h"
#include "attn_diag_host/memory_api.h"
#include "attn_diag_host/runtime_errors.h"
#include "attn_diag_host/stream_api.h"
#include "attn_diag_host/vector_types.h"

#ifndef CUDART_VERSION
#define CUDART_VERSION 12040
#endif
#define CUDART_CB
