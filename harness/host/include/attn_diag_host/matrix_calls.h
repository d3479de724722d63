// What the functions of mma.h ask of the executor. All are warp collectives of all 32 lanes, and each
// lane passes its own part of the matrix: a fragment's elements and whether they were ever set.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

enum class MatrixUse : std::uint8_t { kA, kB, kAccumulator };
enum class MatrixType : std::uint8_t { kHalf, kBfloat16, kFloat };
enum class MatrixShape : std::uint8_t { k16x16x16, k32x8x16, k8x32x16 };  // M x N x K

struct FragmentKind {
  MatrixUse use;
  MatrixShape shape;
  MatrixType type;
};

// One lane's fragment. `elements` are those of CUDA's x[].
struct Fragment {
  FragmentKind kind;
  void* elements;
  bool* set;  // by a fill, a load or a product
};
struct ConstFragment {
  FragmentKind kind;
  const void* elements;
  const bool* set;
};

// A lane reads its own elements when it arrives, so that what other lanes have yet to store is not seen.
// `stride` is in elements, between rows, or columns if `column_major`.
void matrix_load(const Fragment& to, const void* memory, unsigned stride, bool column_major,
                 const char* file, int line);
// A lane writes its own elements when it goes on, after all have arrived.
void matrix_store(void* memory, const ConstFragment& from, unsigned stride, bool column_major,
                  const char* file, int line);
// d = a b + c. `d` may be `c`.
void matrix_multiply(const Fragment& d, const ConstFragment& a, const ConstFragment& b,
                     const ConstFragment& c, const char* file, int line);

[[noreturn]] void fragment_index_out_of_range(long long index, int elements, const char* file,
                                              int line);

}  // namespace attn_diag::host
