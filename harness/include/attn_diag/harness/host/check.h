// Checking launches: races, uninitialised reads, bounds, alignment, overflow. What `attn-diag check` shows.
//
// A LaunchScope whose options ask for it watches every load and store of instrumented libraries (the
// lockstep builds). Launches then run on one worker, so that the findings do not depend on timing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attn_diag::host {

struct CheckOptions {
  int max_findings = 100;  // kept of each kind; others are only counted
};

enum class CheckKind : std::uint8_t {
  kRace,               // two accesses to one byte, one a write, that nothing orders
  kMissingFence,       // ordered by a flag or counter, but no __threadfence() before it
  kUninitialisedRead,  // of memory that nothing has written
  kOutOfBounds,        // outside every array
  kUseAfterFree,       // of memory that cudaFree has taken back
  kMisaligned,         // a vector access whose address is no multiple of its size
  kAsyncCopy,          // memory that an asynchronous copy still reads or writes
  kIntOverflow,        // a signed index expression that left the range of its type
  kInputWrite,         // a store to q, k or v
  kUnwrittenOutput,    // cells of o or lse that nobody has stored
  kLaunch,  // the launch did not complete: a barrier, a collective, a fragment (see LaunchFinding)
};
inline constexpr int kNumCheckKinds = 11;
// "race", "missing-fence", "uninitialised-read", ...: as suppressions and JSON name them.
const char* name(CheckKind kind);

enum class Severity : std::uint8_t {
  kError,   // wrong today
  kLatent,  // right only as long as a warp stays converged, or orders memory where CUDA does not
            // promise it
  kBenign,  // harmless as far as was seen: equal values, or values that reach no output
};
const char* name(Severity severity);

struct SourcePlace {
  std::string file;  // empty: not known (no debug information)
  int line = 0;
  std::string function;
};

struct CheckAccess {
  std::array<unsigned, 3> block{}, thread{};
  std::uint32_t interval = 0;  // block barriers that the block had passed
  unsigned bytes = 0;
  bool write = false, atomic = false, is_volatile = false, async = false;
  bool tile = false;  // a part of a matrix load that the warp makes as one
  // The line, then the lines of the calls that were inlined around it, innermost first.
  std::vector<SourcePlace> places;
  std::string symbol;  // "libx.so+0x1234", where there are no places
};

struct CheckFinding {
  CheckKind kind = CheckKind::kRace;
  Severity severity = Severity::kError;
  std::string kernel;
  std::string space;        // "shared", "global", "local"; empty where it means nothing
  std::string array;        // "sK", "the workspace", "dynamic shared memory"; empty: not known
  std::int64_t offset = 0;  // bytes from the start of the array
  // Where the array's extents are known: "sQ[30][32]", which may be outside of what is declared. For an index past
  // the end: the indices up to it.
  std::string element;
  unsigned byte_of_element = 0;
  std::string extents;  // "[30][32]", as declared
  CheckAccess access;   // the later one
  bool has_other = false;
  CheckAccess other;         // the earlier one
  std::uint64_t folded = 0;  // further occurrences of the same pair of lines
  // Of shared memory that nobody has written: the barrier before which threads of the block had returned. No line: none
  // had.
  SourcePlace returned_before;
  // Of what an asynchronous copy writes: where a thread has waited for its own copies, and no barrier behind that tells
  // others. No places: that is not so, or not known.
  CheckAccess wait;
  // Of global memory that nobody has written, in bytes from the start of the array: where what is written before it ends,
  // and where what is written behind it begins; -1: nothing is. And who wrote what is nearest; no places: not known.
  std::int64_t written_below = -1, written_above = -1;
  CheckAccess writer;
  // Of a block in which no thread can go on: where its threads wait, other than at `access`, each with the lines of the
  // calls around it, innermost first.
  std::vector<std::vector<SourcePlace>> others_wait;
  bool unending = false;  // a launch that did not come to its end, though threads went on
  std::string message;    // one sentence: what is wrong
  std::string advice;     // one sentence: what to do
};

// Whether it is a shuffle that reads a lane which takes no part in it.
bool reads_absent_lane(const CheckFinding& finding);

struct CheckSummary {
  std::uint64_t launches = 0, blocks = 0;
  std::uint64_t loads = 0, stores = 0;  // of shared and global memory, by instrumented code
  std::uint64_t local = 0;              // loads and stores of threads' own stacks
  std::uint64_t block_barriers = 0, warp_syncs = 0, atomics = 0, fences = 0, async_copies = 0;
  std::uint64_t unknown = 0;    // accesses to memory the checker knows nothing of
  std::uint64_t dropped = 0;    // findings beyond the limits
  std::string symbolizer_note;  // why lines are missing; empty: they are not
};

// A call from kernel code to what has no call-outs and was given memory that is watched: a function of a
// library, inline assembly. What it loads and stores was not checked.
struct UnseenCall {
  std::string what;
  CheckAccess from;  // places and symbol alone
};

struct CheckReport {
  std::vector<CheckFinding> findings;  // errors first, then latent ones, then benign ones
  std::vector<UnseenCall> unseen;
  CheckSummary summary;
};

// Adds what another run of the same kernel has found: findings that are not there yet, and counts.
void add_report(CheckReport& to, const CheckReport& from);

// Tells the checker of the scope in force, if there is one, of memory that kernels may use, with what it
// is called in findings, and whether its contents mean something. Bytes outside registered memory are
// out of bounds.
void register_memory(const void* memory, std::size_t bytes, const std::string& name,
                     bool initialised);
// Stores to this registered memory are findings. It must share no page with other memory.
void mark_input(const void* memory, std::size_t bytes);

}  // namespace attn_diag::host
