// Loads, stores and products of matrix fragments: what a warp's lanes must agree on, and who reads and
// writes when.
#include <algorithm>
#include <bit>
#include <cstring>

#include "attn_diag_host/bfloat16.h"
#include "attn_diag_host/half.h"
#include "harness/host/block_matrix.h"
#include "harness/host/fragment_layout.h"
#include "harness/host/text.h"
#include "harness/host/values/products.h"

namespace attn_diag::host {

namespace {

constexpr std::uint32_t kAllLanes = 0xFFFFFFFFu;
constexpr unsigned bytes_of(MatrixType type) { return type == MatrixType::kFloat ? 4 : 2; }

const char* function_name(WarpOp op) {
  return op == WarpOp::kMatrixLoad    ? "load_matrix_sync"
         : op == WarpOp::kMatrixStore ? "store_matrix_sync"
         : op == WarpOp::kLoadMatrix  ? "ldmatrix"
         : op == WarpOp::kStoreMatrix ? "stmatrix"
         : op == WarpOp::kMma         ? "mma.sync"
                                      : "mma_sync";
}

// Distinguishes fragments of different types in one byte.
unsigned number_of(FragmentKind kind) {
  return static_cast<unsigned>(kind.use) * 9 + static_cast<unsigned>(kind.shape) * 3 +
         static_cast<unsigned>(kind.type);
}

bool was_set(const ConstFragment& fragment) {
  if (*fragment.set) return true;
  // Elements may have been set one by one.
  const unsigned bytes = bytes_of(fragment.kind.type);
  const auto* at = static_cast<const unsigned char*>(fragment.elements);
  for (unsigned e = 0; e < elements_of(fragment.kind); ++e, at += bytes)
    if (std::all_of(at, at + bytes, [](unsigned char byte) { return byte == 0xFF; })) return false;
  return true;
}

// Where a lane's elements lie in the matrix, stored row by row. Elements come in pairs, which are
// neighbours there (of A and most accumulators) or lie one below the other (of B).
template <MatrixUse kUse, MatrixShape kShape>
struct Offsets {
  static constexpr unsigned kCount = distinct_elements_of(kUse, kShape);
  static constexpr unsigned kStride = kUse == MatrixUse::kA ? kMatrixK : extent_of(kShape).n;
  static constexpr bool kNeighbours = cell_of(kUse, kShape, 0, 1).row == 0;
  std::uint16_t pair[kWarpSize][kCount / 2];

  constexpr Offsets() : pair{} {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned p = 0; p < kCount / 2; ++p) {
        const MatrixCell cell = cell_of(kUse, kShape, lane, 2 * p);
        pair[lane][p] = static_cast<std::uint16_t>(cell.row * kStride + cell.column);
      }
  }
};
template <MatrixUse kUse, MatrixShape kShape>
constexpr Offsets<kUse, kShape> kOffsets{};

template <MatrixUse kUse, MatrixShape kShape, class T>
void place(const T* elements, unsigned lane, T* matrix) {
  constexpr auto& offsets = kOffsets<kUse, kShape>;
  for (unsigned p = 0; p < offsets.kCount / 2; ++p) {
    T* const to = matrix + offsets.pair[lane][p];
    if constexpr (offsets.kNeighbours) {
      std::memcpy(to, elements + 2 * p, 2 * sizeof(T));
    } else {
      to[0] = elements[2 * p];
      to[offsets.kStride] = elements[2 * p + 1];
    }
  }
}

template <MatrixUse kUse, MatrixShape kShape, class T>
void pick(const T* matrix, unsigned lane, T* elements) {
  constexpr auto& offsets = kOffsets<kUse, kShape>;
  for (unsigned p = 0; p < offsets.kCount / 2; ++p) {
    const T* const from = matrix + offsets.pair[lane][p];
    elements[2 * p] = from[0];
    elements[2 * p + 1] = from[offsets.kNeighbours ? 1 : offsets.kStride];
  }
}

// The matrix whose parts the lanes hold in the fragment `part` of their requests, as float.
template <MatrixUse kUse, MatrixShape kShape>
void gather(const MatrixRequest* const* requests, ConstFragment MatrixRequest::*part, float* to) {
  const MatrixType type = (requests[0]->*part).kind.type;
  if (type == MatrixType::kFloat) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      place<kUse, kShape>(static_cast<const float*>((requests[lane]->*part).elements), lane, to);
    return;
  }
  constexpr unsigned kCells = kWarpSize * Offsets<kUse, kShape>::kCount;
  alignas(64) std::uint16_t bits[kCells];
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    place<kUse, kShape>(static_cast<const std::uint16_t*>((requests[lane]->*part).elements), lane,
                        bits);
  if (type == MatrixType::kHalf)
    widen_halves(bits, to, kCells);
  else
    for (unsigned i = 0; i < kCells; ++i) to[i] = bfloat16_value(bits[i]);
}

// Where the lanes keep the elements of a matrix.
template <MatrixUse kUse, MatrixShape kShape>
void find_numbers(const MatrixRequest* const* requests, ConstFragment MatrixRequest::*part,
                  unsigned columns, std::vector<NumberPlace>& to) {
  const unsigned bytes = bytes_of((requests[0]->*part).kind.type);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned e = 0; e < distinct_elements_of(kUse, kShape); ++e) {
      const MatrixCell cell = cell_of(kUse, kShape, lane, e);
      const auto* const elements = static_cast<const std::byte*>((requests[lane]->*part).elements);
      to[cell.row * columns + cell.column] = {elements + std::size_t{e} * bytes, bytes, lane};
    }
}

template <MatrixShape kShape>
void note_product(const MatrixRequest* const* requests, const float* a, const float* b,
                  const float* c, MatrixProduct& product) {
  constexpr MatrixExtent kExtent = extent_of(kShape);
  product.set_size(kExtent.m, kExtent.n, kMatrixK);
  find_numbers<MatrixUse::kA, kShape>(requests, &MatrixRequest::a, kMatrixK, product.a);
  find_numbers<MatrixUse::kB, kShape>(requests, &MatrixRequest::b, kExtent.n, product.b);
  find_numbers<MatrixUse::kAccumulator, kShape>(requests, &MatrixRequest::c, kExtent.n, product.c);
  product.read(a, b, c);
  const unsigned bytes = bytes_of(requests[0]->d.kind.type);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned e = 0; e < distinct_elements_of(MatrixUse::kAccumulator, kShape); ++e) {
      const MatrixCell cell = cell_of(MatrixUse::kAccumulator, kShape, lane, e);
      const auto* const elements = static_cast<const std::byte*>(requests[lane]->d.elements);
      product.c[cell.row * kExtent.n + cell.column] = {elements + std::size_t{e} * bytes, bytes,
                                                       lane};
    }
}

template <MatrixShape kShape>
void multiply(const Fiber* lanes, const MmaOrder& order) {
  const MatrixRequest* requests[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    requests[lane] = reinterpret_cast<const MatrixRequest*>(lanes[lane].value);
  constexpr MatrixExtent kExtent = extent_of(kShape);
  MatrixProduct product;
  alignas(64) float a[kExtent.m * kMatrixK], b[kMatrixK * kExtent.n], c[kExtent.m * kExtent.n];
  gather<MatrixUse::kA, kShape>(requests, &MatrixRequest::a, a);
  gather<MatrixUse::kB, kShape>(requests, &MatrixRequest::b, b);
  gather<MatrixUse::kAccumulator, kShape>(requests, &MatrixRequest::c, c);
  if (product.wanted()) [[unlikely]]
    note_product<kShape>(requests, a, b, c, product);
  multiply_accumulate(a, b, c, c, kExtent.m, kExtent.n, order);
  if (product.wanted()) [[unlikely]]
    product.write(c);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const Fragment& d = requests[lane]->d;
    *d.set = true;
    if (d.kind.type == MatrixType::kFloat) {
      pick<MatrixUse::kAccumulator, kShape>(c, lane, static_cast<float*>(d.elements));
    } else {
      float elements[Offsets<MatrixUse::kAccumulator, kShape>::kCount];
      pick<MatrixUse::kAccumulator, kShape>(c, lane, elements);
      auto* to = static_cast<std::uint16_t*>(d.elements);
      for (const float x : elements) *to++ = half_bits(x);
    }
  }
}

// Calls move(memory, element) for each of a lane's elements.
template <class Byte, class Move>
void for_each_element(FragmentKind kind, unsigned lane, Byte* memory, unsigned stride,
                      bool column_major, const Move& move) {
  const unsigned bytes = bytes_of(kind.type);
  for (unsigned e = 0; e < elements_of(kind); ++e) {
    const MatrixCell cell = cell_of(kind.use, kind.shape, lane, e);
    const std::size_t at = column_major ? std::size_t{cell.column} * stride + cell.row
                                        : std::size_t{cell.row} * stride + cell.column;
    move(memory + at * bytes, e * bytes, bytes);
  }
}

}  // namespace

void WarpMatrices::load_fragment(const Fragment& to, const void* memory, unsigned stride,
                                 bool column_major, const char* file, int line, std::uintptr_t pc,
                                 std::uintptr_t frame) {
  const unsigned lane = x_block.current_thread() % kWarpSize;
  const CopiedAt at_line = copied_at();
  x_block.step_together(pc, frame);
  check_memory(WarpOp::kMatrixLoad, to.kind.type, memory, stride, file, line);
  for_each_element(to.kind, lane, static_cast<const std::byte*>(memory), stride, column_major,
                   [&](const std::byte* from, unsigned at, unsigned bytes) {
                     x_block.note_access(Access::kRead, from, bytes, pc, kTile);
                     std::memcpy(static_cast<std::byte*>(to.elements) + at, from, bytes);
                     note_copied(static_cast<std::byte*>(to.elements) + at, from, bytes, at_line);
                   });
  *to.set = true;
  const MatrixRequest request{memory, stride, column_major, {}, {}, {}, {}};
  x_collectives.meet(warp_call(WarpOp::kMatrixLoad, number_of(to.kind)), &request, file, line, pc,
                     frame);
}

void WarpMatrices::store_fragment(void* memory, const ConstFragment& from, unsigned stride,
                                  bool column_major, const char* file, int line, std::uintptr_t pc,
                                  std::uintptr_t frame) {
  const unsigned lane = x_block.current_thread() % kWarpSize;
  const CopiedAt at_line = copied_at();
  check_memory(WarpOp::kMatrixStore, from.kind.type, memory, stride, file, line);
  check_fragment_set(from, WarpOp::kMatrixStore, file, line);
  const MatrixRequest request{memory, stride, column_major, {}, {}, {}, {}};
  x_collectives.meet(warp_call(WarpOp::kMatrixStore, number_of(from.kind)), &request, file, line,
                     pc, frame);
  for_each_element(from.kind, lane, static_cast<std::byte*>(memory), stride, column_major,
                   [&](std::byte* to, unsigned at, unsigned bytes) {
                     x_block.note_access(Access::kWrite, to, bytes, pc);
                     std::memcpy(to, static_cast<const std::byte*>(from.elements) + at, bytes);
                     note_copied(to, static_cast<const std::byte*>(from.elements) + at, bytes,
                                 at_line);
                   });
}

void WarpMatrices::multiply_fragments(const MatrixRequest& request, const char* file, int line,
                                      std::uintptr_t pc, std::uintptr_t frame) {
  for (const ConstFragment* fragment : {&request.a, &request.b, &request.c})
    check_fragment_set(*fragment, WarpOp::kMatrixMultiply, file, line);
  const unsigned number = static_cast<unsigned>(request.a.kind.shape) * 8 +
                          static_cast<unsigned>(request.a.kind.type) * 4 +
                          (request.c.kind.type == MatrixType::kFloat ? 2 : 0) +
                          (request.d.kind.type == MatrixType::kFloat ? 1 : 0);
  x_collectives.meet(warp_call(WarpOp::kMatrixMultiply, number), &request, file, line, pc, frame);
}

void WarpMatrices::complete(unsigned warp, WarpOp op, std::uint32_t arrived) {
  const Fiber* const lanes = x_block.lanes_of(warp);
  if (arrived != kAllLanes) report_lanes_missing(warp, op, arrived);
  if (op >= WarpOp::kLoadMatrix) return complete_registers(lanes, op);
  const auto request = [&](unsigned lane) {
    return reinterpret_cast<const MatrixRequest*>(lanes[lane].value);
  };
  const MatrixRequest& first = *request(0);
  for (unsigned lane = 1; lane < kWarpSize; ++lane) {
    const MatrixRequest& other = *request(lane);
    if (other.memory != first.memory) report_mismatch(op, lanes[0], lanes[lane], "addresses");
    if (other.stride != first.stride)
      report_mismatch(op, lanes[0], lanes[lane], "leading dimensions");
    if (other.column_major != first.column_major)
      report_mismatch(op, lanes[0], lanes[lane], "layouts");
    if (lanes[lane].line != lanes[0].line ||
        (lanes[lane].file != lanes[0].file && std::strcmp(lanes[lane].file, lanes[0].file) != 0))
      report_mismatch(op, lanes[0], lanes[lane], nullptr);
  }
  if (op != WarpOp::kMatrixMultiply) return;
  switch (first.a.kind.shape) {
    case MatrixShape::k16x16x16:
      return multiply<MatrixShape::k16x16x16>(lanes, x_block.plan().mma_order);
    case MatrixShape::k32x8x16:
      return multiply<MatrixShape::k32x8x16>(lanes, x_block.plan().mma_order);
    case MatrixShape::k8x32x16:
      return multiply<MatrixShape::k8x32x16>(lanes, x_block.plan().mma_order);
  }
}

// What went wrong, in words.

void WarpMatrices::check_memory(WarpOp op, MatrixType type, const void* memory, unsigned stride,
                                const char* file, int line) {
  // CUDA C++ Programming Guide, "wmma"; and what instructions need that devices really have.
  constexpr unsigned kAlignment = 32, kTaken = 16, kStrideBytes = 16;
  const char* const name = function_name(op);
  const unsigned bytes = bytes_of(type);
  if (x_block.is_own(address(memory))) {
    record_misuse(
        concat(op == WarpOp::kMatrixStore ? "stores a fragment into" : "loads a fragment from",
               " an array of its own with ", name),
        "The matrix of a warp lies in shared or global memory; a thread's own elements are x[]",
        file, line);
  } else if (const std::uintptr_t at = x_block.memory().device_address(address(memory));
             !x_block.memory().may_be_aligned(address(memory), kTaken)) {
    record_misuse(concat("passes ", name, " a pointer that is ", at % kAlignment,
                         " bytes past a multiple of 32"),
                  "The pointer must be aligned to 256 bits (sm_80 to sm_90 take 128): align "
                  "the array, and let "
                  "tiles start at multiples of 16 columns",
                  file, line);
  } else if (stride * bytes % kStrideBytes != 0) {
    record_misuse(concat("passes ", name, " a leading dimension of ", stride, " elements of ",
                         bytes, " bytes"),
                  "It must be a multiple of 16 bytes: of 8 for 16-bit elements, of 4 for float",
                  file, line);
  } else {
    if (at % kAlignment != 0) [[unlikely]]
      x_block.note_latent(
          concat("passes ", name, " a pointer"),
          at % kTaken == 0 ? "it is not 32-byte aligned, as CUDA asks for; sm_80 to sm_90 take 16"
                           : BlockMemory::kPlaceNotKnown,
          file, line);
    return;
  }
  x_block.leave_for_good();
}

void WarpMatrices::check_fragment_set(const ConstFragment& fragment, WarpOp op, const char* file,
                                      int line) {
  if (was_set(fragment)) [[likely]]
    return;
  const char* const use = fragment.kind.use == MatrixUse::kA   ? "matrix_a"
                          : fragment.kind.use == MatrixUse::kB ? "matrix_b"
                                                               : "accumulator";
  record_misuse(concat("passes ", function_name(op), " a fragment (", use, ") that was never set"),
                "fill_fragment, load_matrix_sync or mma_sync must set it first", file, line);
  x_block.leave_for_good();
}

void WarpMatrices::report_fragment_index(long long index, int elements, const char* file,
                                         int line) {
  record_misuse(
      concat("uses element x[", index, "] of a fragment that has ", elements, " elements"),
      "Valid are 0 to num_elements - 1", file, line);
  x_block.leave_for_good();
}

void WarpMatrices::record_misuse(const std::string& what, const char* advice, const char* file,
                                 int line) {
  x_block.record(LaunchFindingKind::kMatrixMisuse,
                 concat(x_block.thread_name(x_block.current()), ' ', what, " at ", file, ':', line),
                 advice, file, line);
}

void WarpMatrices::report_mismatch(WarpOp op, const Fiber& one, const Fiber& other,
                                   const char* what) {
  x_block.record(
      LaunchFindingKind::kMatrixMisuse,
      concat("lanes of a warp ", what == nullptr ? "reach " : "pass ", function_name(op),
             what == nullptr ? " by different calls" : concat(" different ", what), ": ",
             x_block.thread_name(one), " at ", one.file, ':', one.line, " and ",
             x_block.thread_name(other), " at ", other.file, ':', other.line),
      "All 32 lanes make the same call, with the same pointer, leading dimension and layout",
      other.file, other.line);
  x_block.leave_for_good();
}

void WarpMatrices::report_lanes_missing(unsigned warp, WarpOp op, std::uint32_t arrived) {
  const Fiber& fiber = x_block.lanes_of(warp)[std::countr_zero(arrived)];
  x_block.record(
      LaunchFindingKind::kWarpDivergence,
      concat(function_name(op), " at ", fiber.file, ':', fiber.line, " is reached by ",
             std::popcount(arrived), " of the 32 lanes of warp ", warp,
             "; the others have returned or do not exist"),
      "All 32 lanes of a warp must reach it: let no thread return before, and make the block a "
      "multiple of 32 threads",
      fiber.file, fiber.line);
  x_block.leave_for_good();
}

}  // namespace attn_diag::host
