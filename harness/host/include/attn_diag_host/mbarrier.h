// PTX's mbarrier: a 64-bit object in shared memory that counts arrivals and bytes. A phase ends when the
// arrivals it was initialised for have come and as many bytes have been copied as were announced. Findings:
// an object that is not initialised, not in shared memory or not aligned to 8 bytes, more arrivals than are
// missing, and waits that nobody can end.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

inline constexpr unsigned kMostMbarrierArrivals = (1u << 20) - 1;

// `count`: arrivals that end a phase, 1 to kMostMbarrierArrivals.
void mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file, int line);
void mbarrier_inval(std::uint64_t* barrier, const char* file, int line);
// Those that arrive return the state before, for mbarrier_test_wait.
std::uint64_t mbarrier_arrive(std::uint64_t* barrier, unsigned count, const char* file, int line);
// Every later phase expects `count` arrivals less, too.
std::uint64_t mbarrier_arrive_drop(std::uint64_t* barrier, unsigned count, const char* file,
                                   int line);
// `bytes` more must be copied before the phase ends; then one arrival.
std::uint64_t mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes, const char* file,
                                        int line);
void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes, const char* file, int line);
void mbarrier_complete_tx(std::uint64_t* barrier, unsigned bytes, const char* file, int line);
// Whether the phase of this parity (0 for the first), or of this state, has ended. If not, other threads
// run first.
bool mbarrier_test_wait_parity(std::uint64_t* barrier, unsigned parity, const char* file, int line);
bool mbarrier_test_wait(std::uint64_t* barrier, std::uint64_t state, const char* file, int line);
// Arrivals still missing in a state.
unsigned mbarrier_pending_count(std::uint64_t state);
// An arrival that comes when all asynchronous copies of this thread so far have landed. Without `noinc`
// the phase is made to expect it.
void cp_async_mbarrier_arrive(std::uint64_t* barrier, bool noinc, const char* file, int line);

}  // namespace attn_diag::host
