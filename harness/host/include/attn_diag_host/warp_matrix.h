// PTX's matrix instructions: ldmatrix, stmatrix and mma.sync. All 32 lanes make the same call; a lane's
// registers and memory are read when it arrives, and written when it goes on.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// `count` 8x8 matrices of 16-bit elements: 1, 2 or 4. Lane 8 i + r passes the address of row r of
// matrix i: 16 bytes in shared memory, aligned to 16; further lanes' addresses are not used. Lane l gets
// elements (l / 4, 2 (l mod 4)) and the next of each matrix, or of its transpose. Findings as of wmma.
void ldmatrix(std::uint32_t* out, int count, bool transposed, const void* row, const char* file,
              int line);
void stmatrix(void* row, const std::uint32_t* in, int count, bool transposed, const char* file,
              int line);

enum class MmaShape : std::uint8_t { kM16N8K16, kM16N8K8, kM16N8K4 };
enum class MmaInput : std::uint8_t { kF16, kBf16, kTf32 };
struct MmaKind {
  MmaShape shape;  // m16n8k16: f16, bf16; m16n8k8: f16, bf16, tf32; m16n8k4: tf32
  MmaInput input;
  bool half_c;  // the accumulator read, and the one written, are f16; else f32
  bool half_d;
};

// d = a b + c, in PTX's registers: d and c are 4 registers of f32 or 2 of f16 pairs. a and b are, for
// m16n8k16, 4 and 2; for m16n8k8, 2 and 1 (tf32: 4 and 2); for m16n8k4, 2 and 1. The low 13 bits of a tf32
// are ignored. `d` may be `c`.
void mma_sync(MmaKind kind, std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
              const std::uint32_t* c, const char* file, int line);

}  // namespace attn_diag::host
