// Kernels that go wrong at an element of an array of known extents.
#pragma once

#include <cuda_runtime.h>

namespace attn_diag::host::checked {

enum class Wrong {
  kRaceInRows,      // int sRows[30][33]: two warps store to sRows[3][5]
  kRaceInStructs,   // of structs of 8 bytes: to the second member of sPairs[3]
  kRaceInVariable,  // of the device: g_table[2][1] of [4][8]
  kRowPast,         // by a pointer: one row past the end of g_table
  kInnerIndex,      // sRows[3][33]
  kIndexBefore,     // sRows[-1][2]
  kOuterIndex,      // sRows[30][0]
  kFlatIndex,  // *(*sRows + 989), *(sRows[3] + 40), sRows[0][989]: the last there is, or of another row
  kFlatPast,        // *(*sRows + 991)
  kFlatRowPast,     // sRows[0][990]
  kMemberIndex,     // an array within a struct
  kLocalIndex,      // int rSums[4][8]: rSums[2][8]
  kFlatPointer,     // of a parameter int (*rows)[8]: *(*rows + 31)
  kLocalFlat,       // *(*rSums + 31), *(rSums[1] + 9)
  kSecondOfName,    // ... in the second variable of the function called rSame
  kReferenceIndex,  // of a parameter int (&row)[8]
  kPointerIndex,    // of a parameter int (*rows)[8]
  kLocalPointer,    // past the end of rSums by a pointer
  kLocalLoop,       // in the last iteration of a loop whose count the compiler knows
  kLocalUnset,      // rSums[1][2] is read that was not set
  kMatrixIndex,  // lane 9 passes ldmatrix.x2 the row at sTile[1][24] of [8][16], as lanes 24 to 31 do,
  kIgnoredIndex,  // ... which do so alone
};
cudaError_t goes_wrong(Wrong wrong, int* out, int one);

}  // namespace attn_diag::host::checked
