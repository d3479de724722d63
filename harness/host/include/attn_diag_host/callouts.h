// What instrumented code calls before it touches memory. Shared by the compiler plugin, which inserts the
// calls, and the host executor, which has the functions.
#pragma once

#include <cstdint>

namespace attn_diag::callouts {

// The word that describes an access: its size (0: in an argument of its own), log2 of the alignment that
// the type asks for, whether it writes or updates, and flags.
inline constexpr std::uint32_t kSizeMask = 0xFFFFu;
inline constexpr std::uint32_t kWrites = 1u << 16;
inline constexpr std::uint32_t kUpdates = 1u << 17;  // reads, then writes
inline constexpr std::uint32_t kIsAtomic = 1u << 18;
inline constexpr std::uint32_t kIsVolatile = 1u << 19;
inline constexpr std::uint32_t kReleases = 1u << 20;  // and is a fence for what came before
inline constexpr std::uint32_t kNotPlainRead =
    kWrites | kUpdates | kIsAtomic | kIsVolatile | kReleases;
inline constexpr unsigned kAlignmentShift = 24;

inline constexpr const char* kAccess = "attn_diag_access";              // (address, word)
inline constexpr const char* kAccessRange = "attn_diag_access_range";   // (address, bytes, word)
inline constexpr const char* kAccessMasked = "attn_diag_access_lanes";  // (address, lanes, word)
inline constexpr const char* kFence = "attn_diag_fence";                // ()
inline constexpr const char* kUnseen = "attn_diag_unseen";              // (what)
// Past the end of a local variable: (name, offset, bytes, bytes of the variable, word) -> where the access is
// made instead.
inline constexpr const char* kLocalOutside = "attn_diag_local_outside";
// Which variable this thread's next report is about: (name, shape, offset, dimension). For a report about an index:
// `dimension` indices precede it, and together they select the part of the variable at `offset`.
//   name    as the symbol has it; may be empty
//   shape   of an array: number of extents, bytes of an element, the extents, 64 bits each; null: not known
inline constexpr const char* kAbout = "attn_diag_about";
inline constexpr const char* kLocalArray = "9attn_diag4host11local_arrayE";  // in the mangled name
// Where a thread of a kernel begins: a pointer that the kernel was given: (name, pointer).
inline constexpr const char* kArgument = "attn_diag_argument";
inline constexpr const char* kEnter = "attn_diag_enter";  // (region)
inline constexpr const char* kJoin = "attn_diag_join";    // (region)

// Behind each global variable: bytes that nobody may use, and what their symbol's name begins with.
inline constexpr unsigned kGuardBytes = 128;
inline constexpr const char* kGuardPrefix = "attn_diag_guard.";

// Beside each global variable that is an array, at its address: a symbol "attn_diag_shape.30x32x4.NAME" of
// `float name[30][32]`.
inline constexpr const char* kShapePrefix = "attn_diag_shape.";

// As the call-out for an access, and stores its return address at a site: (address, word, site).
inline constexpr const char* kAccessAtSite = "attn_diag_access_at_site";

// All loads and stores of a loop at once, before it: (shape, values, sites) -> 1: all of them are known to be
// right and have been noted, the loop may run without calls; 0: each is to be announced by itself.
//
// Loops within it count too; number 0 is the outermost. A form is a number that is affine in the iterations
// of the loops: base + sum of factor[loop] * iteration, 64 bits each.
//   shape    a constant: loops, accesses, tests, steps; a word an access; a word a test; the steps
//   values   by loop how often it goes round again; by access the form of its address; by test two forms
//   sites    by access where kAccessAtSite has left an address; 0: nowhere yet
inline constexpr const char* kLoop = "attn_diag_loop";
// What makes up an iteration, in order.
inline constexpr std::uint32_t kStepBegin = 0u << 16;   // | number of a loop
inline constexpr std::uint32_t kStepEnd = 1u << 16;     // | number of a loop
inline constexpr std::uint32_t kStepAccess = 2u << 16;  // | number of an access
inline constexpr std::uint32_t kStepMask = 0xFFFFu;
// What must hold in all iterations for the loop to compute what its source does.
// Numbers are signed; the low 8 bits of a test are their width.
enum class LoopTest : std::uint32_t {
  kFits,          // the number is what its form says
  kFitsUnsigned,  // and not negative
  kAdd,           // a + b fits
  kSubtract,
  kMultiply,
  kLess,      // a < b
  kNotMore,   // a <= b
  kBelow,     // 0 <= a < b
  kNotAbove,  // 0 <= a <= b
};
inline constexpr unsigned kTestShift = 8;  // of the test; below: the bits
// Stand where announced loops begin and end; the plugin takes them out again.
inline constexpr const char* kLoopBegin = "attn_diag_loop_begin";
inline constexpr const char* kLoopEnd = "attn_diag_loop_end";
inline constexpr unsigned kMostLoops = 4;      // of one nest
inline constexpr unsigned kMostAccesses = 32;  // announced at once

// Kernels that a module is compiled for, where it is not for all: a constant of their mangled names with blanks between
// them. Of the others nothing is left but a call of the second, which does not return.
inline constexpr const char* kOnlyKernels = "attn_diag_only_kernels";
inline constexpr const char* kLeftOut = "attn_diag_left_out";  // ()

}  // namespace attn_diag::callouts
