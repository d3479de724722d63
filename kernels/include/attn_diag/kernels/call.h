// One call of a user's kernel: the problem and where its tensors are, in the types the kernel wants.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "attn_diag/kernels/adapter.h"
#include "attn_diag/kernels/wide_output.h"
#include "attn_diag/kernels/words.h"

namespace attn_diag {

// Thrown by Call::refuse(): the run is "unsupported", not failed.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// All pointers are device memory; memory orders as in problem.h. Inputs are given as pointers to
// non-const because many kernels are declared so; they must not be written.
class Call {
 public:
  // `stage_buffers`: kNumTensors pointers, null where nothing is recorded. `declared`: bit t: stage t.
  Call(const RunRequest& request, WideOutput& wide_output, float* const* stage_buffers,
       std::uint32_t declared)
      : x_request(request),
        x_wide_output(wide_output),
        x_stage_buffers(stage_buffers),
        x_declared(declared) {}

  // T is the element type that the kernel names: half, __nv_bfloat16, float, uint16_t, ... Throws
  // where its size is not that of the problem's dtype.
  template <class T = void>
  T* q() const {
    return input<T>(x_request.q);
  }
  template <class T = void>
  T* k() const {
    return input<T>(x_request.k);
  }
  template <class T = void>
  T* v() const {
    return input<T>(x_request.v);
  }
  // To be written by the kernel, every cell once. o is filled with NaN before. A kernel of fp16 or bf16 that writes o in
  // fp32 takes o<float>(), which is rounded behind the call.
  template <class T = void>
  T* o() const {
    if constexpr (std::is_same_v<T, float>)
      if (size_of(dtype()) == 2) return x_wide_output.data();
    check_element<T>();
    return static_cast<T*>(x_request.o);
  }
  // For kernels that add to o: 0 in every cell, before it is given to them.
  void zero_o() const { x_wide_output.zero(); }
  // S: to be written under Part::kScores, given under Part::kFromScores and kFromRawScores. P: given under
  // Part::kFromProbs. T is float, or with .s_in_input_type or .p_in_input_type the type of the inputs.
  template <class T = void>
  T* scores() const {
    const Part part = x_request.part;
    const bool there =
        part == Part::kScores || part == Part::kFromScores || part == Part::kFromRawScores;
    return between<T>(there, "scores", "Part::kScores, Part::kFromScores or Part::kFromRawScores");
  }
  template <class T = void>
  T* probs() const {
    return between<T>(x_request.part == Part::kFromProbs, "probs", "Part::kFromProbs");
  }
  float* lse() const { return x_request.lse; }  // (B, H, Sq)
  // As many bytes as the kernel declared, 256-byte aligned, not zeroed.
  template <class T = void>
  T* workspace() const {
    return static_cast<T*>(x_request.workspace);
  }
  // Dense fp32 of the shape that stage.h gives the tensor, or null where the run does not record it.
  float* stage(Tensor t) const {
    const auto at = static_cast<std::size_t>(t);
    if ((x_declared >> at & 1u) == 0)
      fail<std::logic_error>("stage(%s): add the tensor to .stages of the declaration",
                             name(t).data());
    return x_stage_buffers[at];
  }

  const Problem& problem() const { return x_request.problem; }
  int batch() const { return problem().batch; }
  int heads() const { return problem().heads; }
  int kv_heads() const { return problem().kv_heads; }
  int seqlen() const { return problem().seqlen_q; }  // of kernels that declare no other_seqlen_k
  int seqlen_q() const { return problem().seqlen_q; }
  int seqlen_k() const { return problem().seqlen_k; }
  int head_dim() const { return problem().head_dim; }
  int head_dim_v() const { return problem().head_dim_v; }
  float scale() const { return problem().softmax_scale; }
  DType dtype() const { return problem().dtype; }
  Layout layout() const { return problem().layout; }
  bool is_causal() const { return problem().mask.kind == MaskKind::kCausal; }
  // -1 where the side is open, as FlashAttention has it.
  int window_left() const { return is_window() ? problem().mask.window_left : -1; }
  int window_right() const {
    return is_window() ? problem().mask.window_right : is_causal() ? 0 : -1;
  }
  // In elements.
  Strides q_strides() const { return strides(heads(), seqlen_q(), head_dim()); }
  Strides k_strides() const { return strides(kv_heads(), seqlen_k(), head_dim()); }
  Strides v_strides() const { return strides(kv_heads(), seqlen_k(), head_dim_v()); }
  Strides o_strides() const { return strides(heads(), seqlen_q(), head_dim_v()); }

  // Those of q (0), k (1) or v (2); coded_inputs.h makes them.
  const Codes& codes(int input) const { return x_request.codes[input]; }

  TileShape tile() const { return x_request.geometry.tile; }
  int num_splits() const { return x_request.geometry.num_splits; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(x_request.stream); }

  // For a problem that the declaration lets through and the kernel does not take.
  [[noreturn]] void refuse(const std::string& why) const { throw Refused(why); }

 private:
  bool is_window() const { return problem().mask.kind == MaskKind::kWindow; }
  Strides strides(int h, int s, int d) const { return dense_strides(layout(), h, s, d); }

  template <class T>
  T* input(const void* pointer) const {
    check_element<T>();
    return static_cast<T*>(const_cast<void*>(pointer));
  }

  template <class T>
  T* between(bool there, const char* name, const char* parts) const {
    if (!there) fail<std::logic_error>("%s(): declare .part = %s", name, parts);
    const std::size_t expected = size_of(x_request.between_type), found = Size<T>::kValue;
    if (found != 0 && found != expected)
      fail<std::logic_error>(
          "%s() asks for elements of %zu bytes, but has %zu: they are float, or with "
          ".s_in_input_type, .p_in_input_type of the inputs' type",
          name, found, expected);
    return static_cast<T*>(x_request.between);
  }

  template <class T>
  struct Size {
    static constexpr std::size_t kValue = sizeof(T);
  };
  template <class T>
  void check_element() const;

  const RunRequest& x_request;
  WideOutput& x_wide_output;
  float* const* x_stage_buffers;
  std::uint32_t x_declared;
};

template <>
struct Call::Size<void> {
  static constexpr std::size_t kValue = 0;
};

template <class T>
void Call::check_element() const {
  const std::size_t expected = size_of(problem().dtype), found = Size<T>::kValue;
  if (found != 0 && found != expected)
    fail<std::logic_error>(
        "the adapter asks for elements of %zu bytes, but those of the problem have %zu: declare "
        "the "
        "dtype it takes in .dtypes",
        found, expected);
}

}  // namespace attn_diag
