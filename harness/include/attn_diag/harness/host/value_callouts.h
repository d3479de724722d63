// What a watch build calls as it computes: where each number comes from. Shared by the compiler plugin, which
// inserts the calls, and the host executor, which has the functions and keeps the graph.
//
// Every number that comes from the inputs has a label: the number of its node in the graph. 0: it is a constant,
// or not known. Labels go with numbers through registers, memory and the lanes of a warp.
#pragma once

#include <cstdint>

namespace attn_diag::value_callouts {

enum class Op : std::uint32_t {
  kInput,       // an element of q, k or v is loaded
  kLoad,        // bits from memory
  kLoadNumber,  // a number from memory
  kStore,       // to memory
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFma,
  kNegate,
  kAbsolute,
  kMaximum,
  kMinimum,
  kExp,
  kExp2,
  kLog,
  kLog2,
  kRound,     // to another floating-point type, or as itself
  kPick,      // by a condition: one of two numbers
  kBits,      // what integer operations made of a number's bits
  kFunction,  // some other function
  kAtomicAdd,
  kProduct,  // of matrices: a sum of products and an addend
};
inline constexpr unsigned kNumOps = 23;

// A place in the source, as the plugin lays it out. Strings are never null.
struct Site {
  std::uint32_t number;  // the executor's; 0: not met yet
  Op op;
  std::uint32_t line, column;
  const char* file;
  const char* function;
  const char* variable;  // what is stored to, loaded from or computed; empty: nothing with a name
  // Where conditions are that decide whether this runs, the innermost first, and the variables that they
  // test: "loop 12 n@9 n@11,if 30 row@4,". A variable stands once for each line that assigns to it.
  const char* conditions;
  // Variables that make up the address or the number, with what they depend on of blockIdx.x, .y, .z (x, y, z) and
  // threadIdx (t): "row@12:yt,row@14:yt,first@30:,".
  const char* uses;
  const char* callers;  // lines of calls around it in the user's code: "57,60,"
  // The file of lines in conditions, uses and callers. A line of another file is followed by its path:
  // "row@12~/src/a.h:yt,", in which '%' and two hexadecimal digits stand for characters that separate words.
  const char* home;
  std::uint32_t of_host;  // not 0: of code that runs on the host
};

// (site, address, bytes, bits) -> label; after the load. `bits`: what was loaded, of at most 8 bytes.
inline constexpr const char* kLoad = "attn_diag_value_load";
// (site, address, bytes, label, bits): after the store.
inline constexpr const char* kStore = "attn_diag_value_store";
// (site, result, label, number, label, number, label, number) -> label: up to three operands.
inline constexpr const char* kCompute = "attn_diag_value_compute";
// (site, chosen label, number, label of the other) -> label.
inline constexpr const char* kPick = "attn_diag_value_pick";
// (site, label, result as float, bytes of the result) -> label: a conversion or a function of one number.
inline constexpr const char* kConvert = "attn_diag_value_convert";
// (site, label, number, bytes of the number) -> label: an integer becomes a number, which is known where it was a code.
inline constexpr const char* kFromInteger = "attn_diag_value_from_integer";
// For integers that hold bits of numbers. A label stands for all bytes of its number.
inline constexpr const char* kResize =
    "attn_diag_value_resize";  // (label, bytes, new bytes) -> label
inline constexpr const char* kShift =
    "attn_diag_value_shift";  // (label, bytes, bits to the left) -> label
inline constexpr const char* kMask = "attn_diag_value_mask";  // (label, bytes, mask) -> label
inline constexpr const char* kMerge =
    "attn_diag_value_merge";  // (site, label, label, bytes) -> label
inline constexpr const char* kJoinParts =
    "attn_diag_value_join";  // (label, label, bytes of each) -> label
inline constexpr const char* kAsNumber =
    "attn_diag_value_as_number";  // (site, label, bytes, number) -> label
// (load, store, to, from, bytes), (to, bytes): copies and fills of memory, after them; `load` and `store` are sites.
inline constexpr const char* kCopy = "attn_diag_value_copy";
inline constexpr const char* kForget = "attn_diag_value_forget";
// (label, bits): before warp_collective(); (site, call, bits) -> label: after it.
inline constexpr const char* kOffer = "attn_diag_value_offer";
inline constexpr const char* kReceive = "attn_diag_value_receive";
// (site, address, label, number): before atomicAdd on floats.
inline constexpr const char* kAtomicAdd = "attn_diag_value_atomic_add";
// (site): which call the executor's own work belongs to: products of matrices, asynchronous copies,
// loads and stores of fragments.
inline constexpr const char* kAt = "attn_diag_value_at";

// (input, codes, how many): a library has made 8-bit codes of all of q (0), k (1) or v (2), in its order of elements.
inline constexpr const char* kCoded = "attn_diag_value_coded";

// (sites, how many), as the library is loaded and unloaded: all sites, also those that never run.
inline constexpr const char* kAddSites = "attn_diag_value_add_sites";
inline constexpr const char* kRemoveSites = "attn_diag_value_remove_sites";

}  // namespace attn_diag::value_callouts
