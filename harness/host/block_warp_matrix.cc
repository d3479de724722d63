// PTX's ldmatrix, stmatrix and mma.sync.
#include <bit>
#include <cstring>

#include "attn_diag_host/bfloat16.h"
#include "attn_diag_host/half.h"
#include "attn_diag_host/warp_matrix.h"
#include "harness/host/block_matrix.h"
#include "harness/host/register_layout.h"
#include "harness/host/text.h"
#include "harness/host/values/products.h"

namespace attn_diag::host {

namespace {

constexpr unsigned kMatrixRows = 8;

unsigned number_of(const MmaKind& kind) {
  return static_cast<unsigned>(kind.shape) * 16 + static_cast<unsigned>(kind.input) * 4 +
         (kind.half_c ? 2 : 0) + (kind.half_d ? 1 : 0);
}

std::uint16_t half_of(const std::uint32_t* registers, unsigned element) {
  return static_cast<std::uint16_t>(registers[element / 2] >> (element % 2 * 16));
}

float input_of(MmaInput input, const std::uint32_t* registers, unsigned element) {
  switch (input) {
    case MmaInput::kF16:
      return half_value(half_of(registers, element));
    case MmaInput::kBf16:
      return bfloat16_value(half_of(registers, element));
    case MmaInput::kTf32:
      break;
  }
  return std::bit_cast<float>(registers[element] & 0xFFFFE000u);
}

// The element (row, column) of each matrix that the first half of a lane's register holds; the second half
// holds the next column.
MatrixCell loaded_cell(unsigned lane) { return {lane / 4, 2 * (lane % 4)}; }

void load(WarpMatrixRequest* const* lanes) {
  const int count = lanes[0]->count;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (int m = 0; m < count; ++m) {
      WarpMatrixRequest* const* rows = lanes + static_cast<unsigned>(m) * kMatrixRows;
      const MatrixCell cell = loaded_cell(lane);
      const bool transposed = lanes[lane]->transposed;
      std::uint32_t value = 0;
      for (unsigned half = 0; half < 2; ++half)
        value |= std::uint32_t{transposed ? rows[cell.column + half]->row[cell.row]
                                          : rows[cell.row]->row[cell.column + half]}
                 << (16 * half);
      lanes[lane]->d[m] = value;
      if (follows_values()) [[unlikely]]
        for (unsigned half = 0; half < 2; ++half) {
          const WarpMatrixRequest& row = *rows[transposed ? cell.column + half : cell.row];
          const unsigned column = transposed ? cell.row : cell.column + half;
          note_copied(reinterpret_cast<std::byte*>(&lanes[lane]->d[m]) + 2 * half,
                      static_cast<const std::byte*>(row.memory) + 2 * column, 2, lanes[lane]->at);
        }
    }
}

void store(WarpMatrixRequest* const* lanes) {
  const int count = lanes[0]->count;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (int m = 0; m < count; ++m) {
      WarpMatrixRequest* const* rows = lanes + static_cast<unsigned>(m) * kMatrixRows;
      const MatrixCell cell = loaded_cell(lane);
      for (unsigned half = 0; half < 2; ++half) {
        const std::uint16_t value = half_of(lanes[lane]->a, static_cast<unsigned>(m) * 2 + half);
        const bool transposed = lanes[lane]->transposed;
        WarpMatrixRequest& row = *rows[transposed ? cell.column + half : cell.row];
        const unsigned column = transposed ? cell.row : cell.column + half;
        row.row[column] = value;
        if (follows_values()) [[unlikely]]
          note_copied(static_cast<std::byte*>(const_cast<void*>(row.memory)) + 2 * column,
                      reinterpret_cast<const std::byte*>(&lanes[lane]->a[m]) + 2 * half, 2,
                      lanes[lane]->at);
      }
    }
}

void note_product(WarpMatrixRequest* const* lanes, const float* a, const float* b, const float* c,
                  MatrixProduct& product) {
  const MmaKind kind = lanes[0]->kind;
  const bool wide = kind.input == MmaInput::kTf32;
  const unsigned bytes = wide ? 4 : 2;
  const auto place = [](const std::uint32_t* registers, unsigned element, unsigned size,
                        unsigned lane) {
    return NumberPlace{reinterpret_cast<const std::byte*>(registers) + std::size_t{element} * size,
                       size, lane};
  };
  product.set_size(kMmaRows, kMmaColumns, kMmaDepth);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const WarpMatrixRequest& request = *lanes[lane];
    for (unsigned e = 0; e < elements_of_a(kind.shape); ++e) {
      const MatrixCell cell = cell_of_a(wide, lane, e);
      product.a[cell.row * kMmaDepth + cell.column] = place(request.a, e, bytes, lane);
    }
    for (unsigned e = 0; e < elements_of_b(kind.shape); ++e) {
      const MatrixCell cell = cell_of_b(wide, lane, e);
      product.b[cell.row * kMmaColumns + cell.column] = place(request.b, e, bytes, lane);
    }
    for (unsigned e = 0; e < kElementsOfAccumulator; ++e) {
      const MatrixCell cell = cell_of_accumulator(lane, e);
      product.c[cell.row * kMmaColumns + cell.column] =
          place(request.c, e, kind.half_c ? 2 : 4, lane);
    }
  }
  product.read(a, b, c);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned e = 0; e < kElementsOfAccumulator; ++e) {
      const MatrixCell cell = cell_of_accumulator(lane, e);
      product.c[cell.row * kMmaColumns + cell.column] =
          place(lanes[lane]->d, e, kind.half_d ? 2 : 4, lane);
    }
}

void multiply(WarpMatrixRequest* const* lanes, const MmaOrder& order) {
  const MmaKind kind = lanes[0]->kind;
  const bool wide = kind.input == MmaInput::kTf32;
  // Shapes of less depth have zeros for the rest, which change nothing.
  alignas(64) float a[kMmaRows * kMmaDepth] = {}, b[kMmaDepth * kMmaColumns] = {};
  alignas(64) float c[kMmaRows * kMmaColumns];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const WarpMatrixRequest& request = *lanes[lane];
    for (unsigned e = 0; e < elements_of_a(kind.shape); ++e) {
      const MatrixCell cell = cell_of_a(wide, lane, e);
      a[cell.row * kMmaDepth + cell.column] = input_of(kind.input, request.a, e);
    }
    for (unsigned e = 0; e < elements_of_b(kind.shape); ++e) {
      const MatrixCell cell = cell_of_b(wide, lane, e);
      b[cell.row * kMmaColumns + cell.column] = input_of(kind.input, request.b, e);
    }
    for (unsigned e = 0; e < kElementsOfAccumulator; ++e) {
      const MatrixCell cell = cell_of_accumulator(lane, e);
      c[cell.row * kMmaColumns + cell.column] =
          kind.half_c ? half_value(half_of(request.c, e)) : std::bit_cast<float>(request.c[e]);
    }
  }
  MatrixProduct product;
  if (product.wanted()) [[unlikely]]
    note_product(lanes, a, b, c, product);
  multiply_accumulate(a, b, c, c, kMmaRows, kMmaColumns, order);
  if (product.wanted()) [[unlikely]]
    product.write(c);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    std::uint32_t* const d = lanes[lane]->d;
    float value[kElementsOfAccumulator];
    for (unsigned e = 0; e < kElementsOfAccumulator; ++e) {
      const MatrixCell cell = cell_of_accumulator(lane, e);
      value[e] = c[cell.row * kMmaColumns + cell.column];
    }
    if (!kind.half_d) {
      std::memcpy(d, value, sizeof value);
      continue;
    }
    for (unsigned pair = 0; pair < kElementsOfAccumulator / 2; ++pair)
      d[pair] = half_bits(value[2 * pair]) | std::uint32_t{half_bits(value[2 * pair + 1])} << 16;
  }
}

}  // namespace

void WarpMatrices::multiply_registers(MmaKind kind, std::uint32_t* d, const std::uint32_t* a,
                                      const std::uint32_t* b, const std::uint32_t* c,
                                      const char* file, int line, std::uintptr_t pc,
                                      std::uintptr_t frame) {
  WarpMatrixRequest request;
  request.kind = kind;
  request.d = d;
  request.a = a;
  request.b = b;
  request.c = c;
  x_collectives.meet(warp_call(WarpOp::kMma, number_of(kind)), &request, file, line, pc, frame);
}

void WarpMatrices::load_registers(std::uint32_t* out, int count, bool transposed, const void* row,
                                  const char* file, int line, std::uintptr_t pc,
                                  std::uintptr_t frame) {
  const CopiedAt at = copied_at();
  x_block.step_together(pc, frame);
  WarpMatrixRequest request;
  request.count = count;
  request.transposed = transposed;
  request.d = out;
  request.at = at;
  if (x_block.current_thread() % kWarpSize < kMatrixRows * static_cast<unsigned>(count)) {
    check_row(WarpOp::kLoadMatrix, row, file, line);
    x_block.note_access(Access::kRead, row, sizeof request.row, pc, kTile);
    std::memcpy(request.row, row, sizeof request.row);
    request.memory = row;
  } else {
    x_block.note_ignored_address();
  }
  x_collectives.meet(
      warp_call(WarpOp::kLoadMatrix, static_cast<unsigned>(count) * 2 + (transposed ? 1 : 0)),
      &request, file, line, pc, frame);
}

void WarpMatrices::store_registers(void* row, const std::uint32_t* in, int count, bool transposed,
                                   const char* file, int line, std::uintptr_t pc,
                                   std::uintptr_t frame) {
  WarpMatrixRequest request;
  request.count = count;
  request.transposed = transposed;
  request.a = in;
  request.at = copied_at();
  const bool has_row =
      x_block.current_thread() % kWarpSize < kMatrixRows * static_cast<unsigned>(count);
  if (has_row) {
    check_row(WarpOp::kStoreMatrix, row, file, line);
    request.memory = row;
  } else {
    x_block.note_ignored_address();
  }
  x_collectives.meet(
      warp_call(WarpOp::kStoreMatrix, static_cast<unsigned>(count) * 2 + (transposed ? 1 : 0)),
      &request, file, line, pc, frame);
  if (!has_row) return;
  x_block.note_access(Access::kWrite, row, sizeof request.row, pc);
  std::memcpy(row, request.row, sizeof request.row);
}

void WarpMatrices::complete_registers(const Fiber* fibers, WarpOp op) {
  WarpMatrixRequest* lanes[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    lanes[lane] = reinterpret_cast<WarpMatrixRequest*>(fibers[lane].value);
    if (fibers[lane].line != fibers[0].line ||
        (fibers[lane].file != fibers[0].file &&
         std::strcmp(fibers[lane].file, fibers[0].file) != 0))
      report_mismatch(op, fibers[0], fibers[lane], nullptr);
  }
  if (op == WarpOp::kLoadMatrix) return load(lanes);
  if (op == WarpOp::kStoreMatrix) return store(lanes);
  multiply(lanes, x_block.plan().mma_order);
}

void WarpMatrices::check_row(WarpOp op, const void* row, const char* file, int line) {
  constexpr unsigned kRowBytes = 16;
  const bool loads = op == WarpOp::kLoadMatrix;
  if (!x_block.memory().is_shared(address(row)) ||
      !x_block.memory().is_shared(address(row) + kRowBytes - 1))
    x_block.memory().report_not_shared(loads ? "passes ldmatrix a row" : "passes stmatrix a row",
                                       row, file, line);
  const std::uintptr_t at = x_block.memory().device_address(address(row));
  if (x_block.memory().may_be_aligned(address(row), kRowBytes)) [[likely]] {
    if (at % kRowBytes != 0)
      x_block.note_latent(concat("passes ", loads ? "ldmatrix" : "stmatrix", " a row"),
                          BlockMemory::kPlaceNotKnown, file, line);
    return;
  }
  record_misuse(concat("passes ", loads ? "ldmatrix" : "stmatrix", " a row that is ",
                       at % kRowBytes, " bytes past a multiple of 16"),
                "Each row of 8 elements starts at a multiple of 16 bytes; align the array, and "
                "let its rows be multiples of 16 bytes long",
                file, line);
  x_block.leave_for_good();
}

}  // namespace attn_diag::host
