// Taps: points in a kernel at which a stage tensor can be recorded, replaced, or the kernel ended.
//
// A tap is a policy type passed to the kernel as its last template and function argument. NoTap,
// the default, compiles to nothing: that build is the production kernel. A tap never changes tile
// shape, predicates or arithmetic of the kernel it sits in.
//
// In a kernel, every tap statement begins its line with `tap.`, `if (tap.` or `if constexpr (Tap::`, so
// that a build without them can be made by deleting these statements (kernels/machine_code_test does
// so and compares the machine code).
//
//     tap.template visit<Tensor::kS>(s[j], b, h, q, key);             // record, maybe replace
//     tap.template visit<Tensor::kM>(m, owner, b, h, q, kv_tile, 0);  // only the owner records
//     if (tap.ends_after(Stage::kQk)) continue;            // gate
#pragma once

#include <cstdint>
#if defined(__cpp_concepts)
#include <concepts>
#endif

#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"

#if defined(__CUDACC__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
#define ATTN_DIAG_DEVICE __device__ __forceinline__
#else
#define ATTN_DIAG_DEVICE inline
#endif

namespace attn_diag {

// One tensor's tap buffers. All arrays are dense row-major fp32 (writes: uint8) over
// [extent[0]][extent[1]][extent[2]][inner0][inner1]; cells outside the region are not touched.
struct TapView {
  float* record = nullptr;         // null: not recorded
  const float* replace = nullptr;  // null: not replaced
  // Null: not counted; else +1 for every visit of a cell, up to 255. On a GPU 4-byte aligned, with
  // memory up to a multiple of 4 bytes.
  std::uint8_t* writes = nullptr;
  std::int64_t origin[3] = {0, 0, 0};  // first batch, head, query of the region (absolute)
  std::int64_t extent[3] = {0, 0, 0};
  std::int64_t inner0 = 1;  // extent of the 4th axis (1 if none)
  std::int64_t inner1 = 1;  // extent of the 5th axis (1 if none)
};

struct TapTable {
  TapView view[kNumTensors];
};

struct NoTap {
  static constexpr bool kEnabled = false;
  static constexpr ATTN_DIAG_HD bool ends_after(Stage) { return false; }
  static constexpr ATTN_DIAG_HD bool ends_before(Stage) { return false; }
  template <Tensor kTensor>
  ATTN_DIAG_DEVICE void visit(float&, int, int, int, int = 0, int = 0) const {}
  template <Tensor kTensor>
  ATTN_DIAG_DEVICE void visit(float&, bool, int, int, int, int, int) const {}
};

// One build serves every gate but full, which is built with NoTap: a kernel compiled for each would take several times
// as long to build.
struct StageTap {
  static constexpr bool kEnabled = true;

  // Before the table: g++ 12 spoils the first bytes of a temporary that ends in padding behind a long array, where
  // locals are initialised (-ftrivial-auto-var-init), as they are in builds for the host.
  Gate gate;  // the same for all threads of a launch
  TapTable table;

  // True if the kernel must not go beyond `stage`. Never true for reduce.
  constexpr ATTN_DIAG_HD bool ends_after(Stage stage) const {
    return stage == last_stage(gate) && stage != Stage::kReduce;
  }
  // True if the kernel never reaches `stage`.
  constexpr ATTN_DIAG_HD bool ends_before(Stage stage) const { return last_stage(gate) < stage; }

  // Records x at the given coordinates, then overwrites it where a replacement is given. `i0` and
  // `i1` are the indices on the axes that follow (batch, head, query).
  template <Tensor kTensor>
  ATTN_DIAG_DEVICE void visit(float& x, int b, int h, int q, int i0 = 0, int i1 = 0) const {
    visit<kTensor>(x, true, b, h, q, i0, i1);
  }

  // For a value that several threads hold: only the owner records, all take the replacement.
  template <Tensor kTensor>
  ATTN_DIAG_DEVICE void visit(float& x, bool owner, int b, int h, int q, int i0, int i1) const {
    const TapView& v = table.view[static_cast<int>(kTensor)];
    const std::int64_t rb = b - v.origin[0], rh = h - v.origin[1], rq = q - v.origin[2];
    if (rb < 0 || rh < 0 || rq < 0 || rb >= v.extent[0] || rh >= v.extent[1] || rq >= v.extent[2])
      return;
    if (i0 < 0 || i1 < 0 || i0 >= v.inner0 || i1 >= v.inner1) return;
    const std::int64_t at =
        (((rb * v.extent[1] + rh) * v.extent[2] + rq) * v.inner0 + i0) * v.inner1 + i1;
    if (owner) {
      if (v.record != nullptr) v.record[at] = x;
      if (v.writes != nullptr) count(v.writes, at);
    }
    if (v.replace != nullptr) x = v.replace[at];
  }

 private:
  // Threads that visit a cell at the same time are all counted.
  static ATTN_DIAG_DEVICE void count(std::uint8_t* writes, std::int64_t at) {
#if defined(__CUDA_ARCH__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
    unsigned* const word = reinterpret_cast<unsigned*>(writes + (at & ~std::int64_t{3}));
    const unsigned shift = 8u * static_cast<unsigned>(at & 3);
    unsigned found = *word, expected;
    do {
      expected = found;
      if ((expected >> shift & 255u) == 255u) return;
      found = atomicCAS(word, expected, expected + (1u << shift));
    } while (found != expected);
#else
    if (writes[at] < 255) ++writes[at];
#endif
  }
};

#if defined(__cpp_concepts)  // not in C++17
// What a kernel may ask of its Tap parameter.
template <class T>
concept TapPolicy = requires(const T tap, float x) {
  { T::kEnabled } -> std::convertible_to<bool>;
  { tap.ends_after(Stage::kQk) } -> std::convertible_to<bool>;
  { tap.ends_before(Stage::kReduce) } -> std::convertible_to<bool>;
  tap.template visit<Tensor::kS>(x, 0, 0, 0, 0, 0);
};
#endif

}  // namespace attn_diag
