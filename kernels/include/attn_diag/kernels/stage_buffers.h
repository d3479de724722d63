// Memory for the stages that a brought kernel writes, and their way into the taps.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "attn_diag/kernels/adapter.h"
#include "attn_diag/kernels/words.h"

namespace attn_diag {

// For each declared tensor that a run records: a dense device buffer of the whole tensor, filled with
// signalling NaNs, which no arithmetic produces, so that cells that were not written are told from
// others. How often a cell was written cannot be seen.
class StageBuffers {
 public:
  StageBuffers(const RunRequest& request, std::uint32_t declared) : x_request(request) {
    for (int t = 0; t < kNumTensors; ++t) {
      const bool wanted = (declared >> t & 1u) != 0 && request.gate != Gate::kFull &&
                          request.taps.view[t].record != nullptr;
      if (!wanted) continue;
      const std::size_t bytes = cells(static_cast<Tensor>(t)) * sizeof(float);
      void* memory = nullptr;
      check(cudaMalloc(&memory, bytes), "allocate the buffer of a stage");
      x_pointers[t] = static_cast<float*>(memory);
      const std::vector<std::uint32_t> poison(cells(static_cast<Tensor>(t)), kPoison);
      check(cudaMemcpy(memory, poison.data(), bytes, cudaMemcpyHostToDevice), "fill a stage");
    }
  }
  ~StageBuffers() {
    for (float* pointer : x_pointers)
      if (pointer != nullptr) cudaFree(pointer);
  }
  StageBuffers(const StageBuffers&) = delete;
  StageBuffers& operator=(const StageBuffers&) = delete;

  float* const* pointers() const { return x_pointers; }
  bool any() const {
    for (const float* pointer : x_pointers)
      if (pointer != nullptr) return true;
    return false;
  }

  // After the kernel has ended: the recorded region of each, and which of its cells were written.
  void copy_to_taps() const {
    for (int t = 0; t < kNumTensors; ++t)
      if (x_pointers[t] != nullptr) copy(static_cast<Tensor>(t));
  }

 private:
  static constexpr std::uint32_t kPoison = 0x7FA5A5A5u;

  static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess)
      fail<std::runtime_error>("cannot %s: %s", what, cudaGetErrorString(error));
  }

  // Behind (batch, head, query).
  std::size_t inner(Tensor t) const {
    const TapView& view = x_request.taps.view[static_cast<int>(t)];
    return static_cast<std::size_t>(view.inner0 * view.inner1);
  }
  std::size_t cells(Tensor t) const {
    const Problem& p = x_request.problem;
    return static_cast<std::size_t>(p.batch) * static_cast<std::size_t>(p.heads) *
           static_cast<std::size_t>(p.seqlen_q) * inner(t);
  }

  void copy(Tensor t) const {
    const Problem& p = x_request.problem;
    const TapView& view = x_request.taps.view[static_cast<int>(t)];
    const std::size_t row = inner(t), chunk = static_cast<std::size_t>(view.extent[2]) * row;
    std::vector<std::uint32_t> bits(chunk);
    std::vector<std::uint8_t> writes(chunk);
    std::size_t to = 0;
    for (std::int64_t b = 0; b < view.extent[0]; ++b) {
      for (std::int64_t h = 0; h < view.extent[1]; ++h, to += chunk) {
        const std::int64_t head = (view.origin[0] + b) * p.heads + view.origin[1] + h;
        const std::size_t from = static_cast<std::size_t>(head * p.seqlen_q + view.origin[2]) * row;
        check(cudaMemcpy(bits.data(), x_pointers[static_cast<int>(t)] + from, chunk * sizeof(float),
                         cudaMemcpyDeviceToHost),
              "read a stage");
        check(cudaMemcpy(view.record + to, bits.data(), chunk * sizeof(float),
                         cudaMemcpyHostToDevice),
              "record a stage");
        if (view.writes == nullptr) continue;
        for (std::size_t i = 0; i < chunk; ++i) writes[i] = bits[i] == kPoison ? 0 : 1;
        check(cudaMemcpy(view.writes + to, writes.data(), chunk, cudaMemcpyHostToDevice),
              "count the writes of a stage");
      }
    }
  }

  const RunRequest& x_request;
  float* x_pointers[kNumTensors] = {};
};

}  // namespace attn_diag
