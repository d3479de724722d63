// Reading q, k, v and what a kernel made of them from files of any framework (HDF5, .npy, .npz and
// safetensors) or from memory. docs/files.md has the names and shapes that are understood.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/reference/counterfactual.h"

namespace attn_diag {

// What an array of a file can be. kBias is added to the scaled scores before the mask.
enum class ForeignRole : std::uint8_t { kQ, kK, kV, kO, kLse, kBias };
inline constexpr std::size_t kNumForeignRoles = 6;
std::string_view name(ForeignRole role);  // "q", "lse"

// What the user says; it goes before what a file says, and that before what is assumed.
struct ForeignHints {
  std::optional<Layout> layout;  // of q, k, v and o
  // What the kernel computed with, where the file holds wider numbers: they have to be exact in it.
  // Also how 16-bit integers are to be read (bf16, for which numpy has no type).
  std::optional<DType> dtype;
  std::optional<float> softmax_scale;
  std::optional<std::string> mask;  // "none", "causal", ... as docs/conventions.md has it
  std::optional<double> softcap;
  std::optional<std::vector<std::int32_t>> kv_lens;  // keys of each batch entry, the first of them
  // Which array is q, k, ...: a file of one array ("q.npy"), an array of a given file ("attn/query"), or
  // both ("x.h5:attn/query"). Empty: by its name.
  std::array<std::string, kNumForeignRoles> source;
};

// One array of a case in memory. Cell (i, j, ...) is at data + i*strides[0] + j*strides[1] + ..., counted in
// elements; no strides: dense row-major.
struct ForeignArray {
  ForeignRole role = ForeignRole::kQ;
  DType dtype = DType::kFp32;
  std::vector<std::int64_t> shape, strides;
  const void* data = nullptr;
};

// One case as read, and what about it is not known.
struct ForeignCase {
  // q, k, v, o and lse where it is there. geometry and arithmetic are guesses unless known below.
  Capture capture;
  reference::Extras extras;           // bias, softcap
  std::vector<std::int32_t> kv_lens;  // keys of each batch entry; empty: all of them
  bool geometry_known = false;        // tile sizes and splits
  bool arithmetic_known = false;
  std::vector<std::string> found;    // "q: query of x.npz, float16 [2, 8, 512, 64]"
  std::vector<std::string> assumed;  // "softmax_scale 0.125 (1/sqrt(head_dim))": each a phrase
};

// Reads one case. `paths` are files, or folders of .npy files; a dump of attn-diag's own is read whole,
// with everything known. A mask is none unless said; o is needed, lse and bias are not.
// Throws Error, saying what was expected, what was found and what to do, for files that cannot be read
// and arrays that are missing, ambiguous, of a type or of shapes that do not fit.
ForeignCase read_foreign(const std::vector<std::string>& paths, const ForeignHints& hints);

// As read_foreign(), from arrays in memory, which are copied. `hints.source` is not looked at.
ForeignCase take_foreign(const std::vector<ForeignArray>& arrays, const ForeignHints& hints);

// Writes a safetensors file that read_foreign() reads as this very case without any hint. Throws Error where it
// cannot be written, or exists and `force` is false.
void write_foreign(const std::string& path, const ForeignCase& from, bool force);

// What is assumed of an unknown kernel: one split, tiles of 64x64, and the arithmetic of tensor cores, since nothing
// is less exact.
Geometry unknown_geometry(const Problem& problem);
Arithmetic unknown_arithmetic(const Problem& problem);

}  // namespace attn_diag
