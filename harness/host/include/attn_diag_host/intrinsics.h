// Mathematical functions and intrinsics of one thread.
#pragma once

#include "attn_diag_host/cached_access.h"
#include "attn_diag_host/float_intrinsics.h"
#include "attn_diag_host/integer_intrinsics.h"
#include "attn_diag_host/packed_integers.h"

// A debugger's business.
inline void __brkpt() {}

// Host compilers have their own: __builtin_expect, __builtin_unreachable, __builtin_assume_aligned.
#if !defined(__clang__)
#define __builtin_assume(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
#define __assume(condition) __builtin_assume(condition)
