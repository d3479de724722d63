// o of a kernel that writes fp32 where q, k and v are fp16 or bf16.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "attn_diag/kernels/adapter.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

// Room for o in fp32, made when Call::o<float>() first asks for it. store() rounds it to the problem's dtype, to nearest
// even, which is the one rounding that the bounds know of. Cells that nobody wrote stay unwritten in o, too.
class WideOutput {
 public:
  explicit WideOutput(const RunRequest& request) : x_request(request) {}

  bool is_used() const { return x_wide.has_value(); }

  // Device memory, (batch, heads, seqlen_q, head_dim_v) in the problem's layout. Throws where there is too little.
  float* data() {
    if (x_wide) return x_wide->data();
    x_wide.emplace(cells());
    const std::vector<std::uint32_t> first(cells(), x_is_zero ? 0 : kUnwritten);
    copy(x_wide->data(), first.data(), first.size() * sizeof(float), cudaMemcpyHostToDevice);
    return x_wide->data();
  }

  // For kernels that add to o: both the problem's own and this one.
  void zero() {
    x_is_zero = true;
    const auto zero = [&](void* memory, std::size_t element) {
      check_cuda(cudaMemset(memory, 0, cells() * element), "zero o");
    };
    zero(x_request.o, size_of(x_request.problem.dtype));
    if (x_wide) zero(x_wide->data(), sizeof(float));
  }

  void store() const {
    const bool is_bf16 = x_request.problem.dtype == DType::kBf16;
    check_cuda(cudaDeviceSynchronize(), "finish the kernel");
    std::vector<float> wide(cells());
    std::vector<std::uint16_t> o(cells());
    copy(wide.data(), x_wide->data(), wide.size() * sizeof(float), cudaMemcpyDeviceToHost);
    copy(o.data(), x_request.o, o.size() * sizeof o[0], cudaMemcpyDeviceToHost);
    for (std::size_t i = 0; i < o.size(); ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &wide[i], sizeof bits);
      if (bits == kUnwritten) continue;
      o[i] = is_bf16 ? to_bf16(bits) : to_fp16(bits);
#ifdef ATTN_DIAG_HOST_EXECUTOR
      host::note_rounded(&o[i], sizeof o[i], &wide[i], sizeof wide[i]);
#endif
    }
    copy(x_request.o, o.data(), o.size() * sizeof o[0], cudaMemcpyHostToDevice);
  }

  // The bits of a float as those of the nearest fp16 (overflow: infinity) and bf16, ties to even.
  static std::uint16_t to_fp16(std::uint32_t bits) {
    const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return 0x7FFFu;                                      // NaN
    if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // from 65520
    if (magnitude < 0x33000001u) return static_cast<std::uint16_t>(sign);             // to 2^-25
    // Below 2^-14 the last place is 2^-24, and the leading one is no longer implied.
    const std::uint32_t exponent = magnitude >> 23;
    const bool normal = exponent >= 113;
    const std::uint32_t digits =
        normal ? magnitude - (112u << 23) : (magnitude & 0x7FFFFFu) | 0x800000u;
    return static_cast<std::uint16_t>(sign | without_last(digits, normal ? 13 : 126 - exponent));
  }
  static std::uint16_t to_bf16(std::uint32_t bits) {
    const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    return static_cast<std::uint16_t>(is_nan ? 0x7FFFu : without_last(bits, 16));
  }

 private:
  // A signalling NaN, which no arithmetic produces.
  static constexpr std::uint32_t kUnwritten = 0x7FA5A5A5u;

  // digits / 2^places, to nearest, ties to even.
  static std::uint32_t without_last(std::uint32_t digits, std::uint32_t places) {
    const std::uint32_t half = 1u << (places - 1);
    return (digits + half - 1 + (digits >> places & 1u)) >> places;
  }

  static void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpy(to, from, bytes, kind), "copy o");
  }

  std::size_t cells() const {
    const Problem& p = x_request.problem;
    return static_cast<std::size_t>(p.batch) * static_cast<std::size_t>(p.heads) *
           static_cast<std::size_t>(p.seqlen_q) * static_cast<std::size_t>(p.head_dim_v);
  }

  const RunRequest& x_request;
  std::optional<DeviceBuffer<float>> x_wide;
  bool x_is_zero = false;
};

}  // namespace attn_diag
