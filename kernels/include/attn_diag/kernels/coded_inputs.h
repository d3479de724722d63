// q, k or v of a call as the codes and scales that the declaration names in .q_codes, .k_codes, .v_codes.
//
//     attn_diag::CodedInput k = attn_diag::coded_k(c);
//     attention_int8(c.q<half>(), k.codes<int8_t>(), k.scales(), ...);
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/coding.h"
#include "attn_diag/kernels/device_buffer.h"

// Of the host executor, which follows what codes become; null elsewhere.
extern "C" __attribute__((weak)) void attn_diag_value_coded(int input, const void* codes,
                                                            std::uint64_t count);

namespace attn_diag {

class CodedInput {
 public:
  // `input`: 0, 1, 2 for q, k, v.
  CodedInput(const Call& c, int input, const void* device) {
    static constexpr const char* kNames[] = {"q", "k", "v"};
    const std::string name = kNames[input];
    const Codes& codes = c.codes(input);
    if (codes.type == CodeType::kNone)
      throw std::logic_error("coded_" + name + "(): declare the type of its codes in ." + name +
                             "_codes of the declaration");
    const CodedShape shape = coded_shape(c.problem(), input);
    const auto count = static_cast<std::size_t>(shape.batch * shape.heads * shape.rows * shape.dim);
    std::vector<unsigned char> host(count * size_of(c.dtype()));
    check_cuda(cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost),
               "read an input");
    const auto load = [&](std::int64_t i) { return element(host.data(), c.dtype(), i); };
    const CodedTensor made = encode(codes, input, shape, load);
    for (std::size_t i = 0; i < count; ++i)
      if (decode(codes, made, shape.dim, i) != load(static_cast<std::int64_t>(i)))
        throw std::logic_error(
            name + " is not what codes mean: the library and the command are not of one version");
    x_groups = made.groups;
    x_codes = to_device(made.codes);
    if (attn_diag_value_coded != nullptr) attn_diag_value_coded(input, x_codes.get(), count);
  }

  template <class T>
  T* codes() const {
    static_assert(sizeof(T) == 1, "codes have 8 bits");
    return static_cast<T*>(x_codes.get());
  }
  // In the order that ScalePer says.
  template <class T = float>
  T* scales() {
    return keep<T>([](const CodeGroup& g) { return static_cast<T>(g.scale); });
  }
  template <class T = int>
  T* zeros() {
    return keep<T>([](const CodeGroup& g) { return static_cast<T>(g.zero); });
  }
  // For ScalePer::kTensor.
  float scale() const { return x_groups.front().scale; }
  int zero() const { return x_groups.front().zero; }

 private:
  static float element(const unsigned char* from, DType type, std::int64_t i) {
    const std::size_t size = size_of(type);
    from += static_cast<std::size_t>(i) * size;
    if (type == DType::kFp32) {
      float x;
      std::memcpy(&x, from, sizeof x);
      return x;
    }
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return type == DType::kFp16 ? coding::small_float(bits, 5, 10)
                                : coding::small_float(bits, 8, 7);
  }

  template <class T>
  static std::shared_ptr<void> to_device(const std::vector<T>& values) {
    const auto buffer = std::make_shared<DeviceBuffer<T>>(values);
    return std::shared_ptr<void>(buffer, buffer->data());
  }
  template <class T, class Of>
  T* keep(const Of& of) {
    std::vector<T> values;
    for (const CodeGroup& group : x_groups) values.push_back(of(group));
    x_kept.push_back(to_device(values));
    return static_cast<T*>(x_kept.back().get());
  }

  std::vector<CodeGroup> x_groups;
  std::shared_ptr<void> x_codes;
  std::vector<std::shared_ptr<void>> x_kept;
};

inline CodedInput coded_q(const Call& c) { return {c, 0, c.q()}; }
inline CodedInput coded_k(const Call& c) { return {c, 1, c.k()}; }
inline CodedInput coded_v(const Call& c) { return {c, 2, c.v()}; }

}  // namespace attn_diag
