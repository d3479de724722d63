// The memory a kernel is given for its inputs and outputs, on the harness's side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn_diag/harness/run.h"
#include "attn_diag/reference/reference.h"
#include "harness/backends/run_device.h"
#include "harness/run/guarded_buffer.h"

namespace attn_diag {

// Whether an element of o or lse is as it was before the run: nothing was written there.
bool is_poison(const std::byte* element, DType dtype);

// Cells of o or lse that nobody has written.
struct Unwritten {
  Tensor tensor = Tensor::kO;
  std::int64_t cells = 0;
  std::array<std::int64_t, 4> index{};  // of the first
};

// visit(index, cell) of each element of a dense tensor, by batch, head, row and column; `cell` is its place in memory.
template <class Visit>
void for_each_element(Layout layout, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                      std::int64_t width, const Visit& visit) {
  const Strides strides = dense_strides(layout, heads, rows, width);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t d = 0; d < width; ++d)
          visit(std::array<std::int64_t, 4>{b, h, i, d},
                b * strides.batch + h * strides.head + i * strides.seq + d);
}

// Queries times heads times batch.
std::int64_t rows_of(const Problem& problem);

// Bytes on either side of a buffer that the kernel must leave alone: one tile too far in the sparser
// memory order, as a kernel without tail checks goes; up to 1 MiB.
std::size_t guard_bytes(const Problem& problem, const Geometry& geometry);

// S or P, of a kernel that computes a part of attention.
struct Between {
  Part part = Part::kAttention;
  DType type = DType::kFp32;
  std::vector<std::byte> given;  // where it is given: all of it, as the kernel finds it
};
constexpr const char* between_name(Part part) { return part == Part::kFromProbs ? "P" : "S"; }
std::int64_t between_cells(const Problem& problem);
// S or P of the reference, dense, as a kernel of a part of attention has it (Arithmetic::part).
std::vector<float> dense_reference(const Problem& problem, const Geometry& geometry,
                                   const Arithmetic& arithmetic, const reference::Inputs& inputs,
                                   Tensor tensor, int threads);
Between make_between(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
                     const reference::Inputs& inputs, int threads);

// Reads outside q, k and v give NaN, and writes outside o, lse and workspace are found. o and lse hold
// poison: signalling NaNs, which arithmetic and conversions never produce.
struct RunMemory {
  GuardedBuffer q, k, v, o, lse, workspace, between;
  Part part;
  DType between_type;

  RunMemory(const Problem& problem, const Geometry& geometry, const InputData& inputs,
            std::size_t workspace_bytes, const MemoryFill& fill, const Between& given = {});

  // Puts all of it on the device and its addresses into the request. After the run q, k and v are here as the
  // kernel left them.
  void place(RunDevice& device, RunRequest& request, std::size_t guard);
  // Names all of it to the checker of the host executor, under whose launches the request then runs.
  void place_for_check(RunRequest& request);
  // Throws Error where a zone around a buffer was written.
  void check_guards(const Kernel& kernel) const;
};

// Copies the region of o, lse or S out of the kernel's memory. A cell without its poison was written at
// least once; the tap, if the kernel has one there, knows how often.
void take_output(TensorData& data, const RunMemory& memory, const Capture& capture);

// Of a kernel that computes attention. `or_as_allocated`: also where o was copied from memory that was allocated in the
// run and nobody wrote, filled with 0xFF; arithmetic on such memory may leave the same.
std::vector<Unwritten> find_unwritten(const Problem& problem, const RunMemory& memory, bool has_lse,
                                      bool or_as_allocated);

}  // namespace attn_diag
