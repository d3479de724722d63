// Loads, stores and products of matrices that the lanes of a warp hold: of wmma's fragments
// (block_matrix.cc), and ldmatrix, stmatrix and mma.sync (block_warp_matrix.cc).
#pragma once

#include "attn_diag_host/matrix_calls.h"
#include "attn_diag_host/warp_matrix.h"
#include "harness/host/block_collectives.h"
#include "harness/host/values/copied_at.h"

namespace attn_diag::host {

// What a lane brings to an operation on fragments.
struct MatrixRequest {
  const void* memory = nullptr;
  unsigned stride = 0;
  bool column_major = false;
  Fragment d{};
  ConstFragment a{}, b{}, c{};
};

// Arguments of an operation on registers.
struct WarpMatrixRequest {
  // ldmatrix, stmatrix
  int count = 0;
  bool transposed = false;
  std::uint16_t row[8] = {};
  const void* memory = nullptr;  // of the row
  CopiedAt at;
  // mma.sync; the others use d and a
  MmaKind kind{};
  std::uint32_t* d = nullptr;
  const std::uint32_t *a = nullptr, *b = nullptr, *c = nullptr;
};

class __attribute__((visibility("hidden"))) WarpMatrices final : public WarpOperation {
 public:
  // The lanes meet in `collectives`.
  WarpMatrices(BlockContext& block, WarpCollectives& collectives)
      : x_block(block), x_collectives(collectives) {
    collectives.set_matrices(*this);
  }

  void load_fragment(const Fragment& to, const void* memory, unsigned stride, bool column_major,
                     const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void store_fragment(void* memory, const ConstFragment& from, unsigned stride, bool column_major,
                      const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void multiply_fragments(const MatrixRequest& request, const char* file, int line,
                          std::uintptr_t pc, std::uintptr_t frame);
  [[noreturn]] void report_fragment_index(long long index, int elements, const char* file,
                                          int line);
  void load_registers(std::uint32_t* out, int count, bool transposed, const void* row,
                      const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void store_registers(void* row, const std::uint32_t* in, int count, bool transposed,
                       const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  void multiply_registers(MmaKind kind, std::uint32_t* d, const std::uint32_t* a,
                          const std::uint32_t* b, const std::uint32_t* c, const char* file,
                          int line, std::uintptr_t pc, std::uintptr_t frame);

  void complete(unsigned warp, WarpOp op, std::uint32_t arrived) override;

 private:
  void complete_registers(const Fiber* fibers, WarpOp op);
  void check_memory(WarpOp op, MatrixType type, const void* memory, unsigned stride,
                    const char* file, int line);
  void check_row(WarpOp op, const void* row, const char* file, int line);
  void check_fragment_set(const ConstFragment& fragment, WarpOp op, const char* file, int line);
  void record_misuse(const std::string& what, const char* advice, const char* file, int line);
  [[noreturn]] void report_mismatch(WarpOp op, const Fiber& one, const Fiber& other,
                                    const char* what);
  [[noreturn]] void report_lanes_missing(unsigned warp, WarpOp op, std::uint32_t arrived);

  BlockContext& x_block;
  WarpCollectives& x_collectives;
};

}  // namespace attn_diag::host
