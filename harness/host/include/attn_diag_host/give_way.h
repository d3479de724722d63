// For threads that spin: lets the block's other threads run, and other blocks.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// The calling thread waits for something that another thread will store (__nanosleep, polling of a volatile
// or atomic). It comes back when every thread that does not wait or poll has run as far as it could.
void give_way(const char* file, int line);

// An atomic operation changed nothing: a load, a failed exchange. After some in a row the thread is taken to
// be polling.
void changed_nothing();

}  // namespace attn_diag::host
