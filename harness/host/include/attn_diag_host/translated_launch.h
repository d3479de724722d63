// What the source pass makes of kernel<<<grid, block, shared, stream>>>(arguments).
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "attn_diag_host/check_hooks.h"
#include "attn_diag_host/launch.h"

namespace attn_diag::host {

// A kernel that its name alone says: no overload, no template arguments left to be deduced.
template <class... Parameters>
struct PlainKernel {
  void (*address)(Parameters...);
};
// Tag makes a call depend on a template parameter, so that a name which is not plain takes the call out
// of overload resolution instead of being an error.
template <class Tag, class... Parameters>
PlainKernel<Parameters...> plain_kernel(Tag, void (*address)(Parameters...)) {
  return {address};
}
struct Deduced {};  // the kernel depends on the arguments

// The place of a launch, ready for its arguments. Call: calls the kernel with lvalues.
template <class Call, class Kernel>
class [[gnu::visibility("hidden")]] ConfiguredLaunch;

template <class Call>
class [[gnu::visibility("hidden")]] ConfiguredLaunch<Call, Deduced> {
 public:
  ConfiguredLaunch(const char* name, const char* file, int line, const cudaLaunchConfig_t& config,
                   const Call& call, const void* identity)
      : x_name(name),
        x_file(file),
        x_line(line),
        x_config(config),
        x_call(call),
        x_identity(identity) {}

  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    static_assert((std::is_trivially_copyable_v<std::decay_t<Arguments>> && ...),
                  "kernel parameters must be trivially copyable");
    using Packed = std::tuple<const Call*, std::tuple<std::decay_t<Arguments>...>>;
    const Packed packed(&x_call, {static_cast<Arguments&&>(arguments)...});
    KernelCall call;
    call.call = [](const void*, const void* data) {
      const Packed& values = *static_cast<const Packed*>(data);
      std::apply(*std::get<0>(values), std::get<1>(values));
    };
    // Else code of this library, as its kernel is.
    call.kernel = x_identity != nullptr ? x_identity : reinterpret_cast<const void*>(call.call);
    call.arguments = &packed;
    call.instrumented = ATTN_DIAG_HOST_INSTRUMENTED != 0;
    call.name = x_name;
    call.file = x_file;
    call.line = x_line;
    static_cast<void>(launch(x_config, call));
  }

 private:
  const char *x_name, *x_file;
  int x_line;
  cudaLaunchConfig_t x_config;
  const Call& x_call;
  const void* x_identity;  // the kernel that the name alone says: it has the attributes; or null
};

template <class Call, class... Parameters>
class [[gnu::visibility("hidden")]] ConfiguredLaunch<Call, PlainKernel<Parameters...>> {
 public:
  using Kernel = PlainKernel<Parameters...>;
  ConfiguredLaunch(const char* name, const char* file, int line, const cudaLaunchConfig_t& config,
                   const Call& call, Kernel kernel)
      : x_name(name),
        x_file(file),
        x_line(line),
        x_config(config),
        x_call(call),
        x_kernel(kernel) {}

  // No template, so that arguments convert as in any call: 0 to a pointer, {1, 2} to a struct.
  void operator()(Parameters... arguments) const {
    static_assert((std::is_trivially_copyable_v<std::remove_cv_t<Parameters>> && ...),
                  "kernel parameters must be trivially copyable");
    using Packed = std::tuple<std::remove_cv_t<Parameters>...>;
    const Packed packed(arguments...);
    KernelCall call;
    call.kernel = reinterpret_cast<const void*>(x_kernel.address);
    call.call = [](const void* entry, const void* data) {
      std::apply(reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(entry)),
                 *static_cast<const Packed*>(data));
    };
    call.arguments = &packed;
    call.instrumented = ATTN_DIAG_HOST_INSTRUMENTED != 0;
    call.file = x_file;
    call.line = x_line;
    static_cast<void>(launch(x_config, call));
  }

  // Default arguments of the kernel.
  template <class... Arguments>
  requires(sizeof...(Arguments) < sizeof...(Parameters)) void operator()(Arguments&&... arguments)
      const {
    ConfiguredLaunch<Call, Deduced>(
        x_name, x_file, x_line, x_config, x_call,
        reinterpret_cast<const void*>(x_kernel.address))(static_cast<Arguments&&>(arguments)...);
  }

 private:
  const char *x_name, *x_file;
  int x_line;
  cudaLaunchConfig_t x_config;
  const Call& x_call;
  Kernel x_kernel;
};

// `call` calls the kernel with what it is given; `find(0)` is its PlainKernel, if it has one.
template <class Call, class Find>
class [[gnu::visibility("hidden")]] TranslatedLaunch {
 public:
  TranslatedLaunch(const char* name, const char* file, int line, const Call& call, const Find& find)
      : x_name(name), x_file(file), x_line(line), x_call(call), x_find(find) {}

  auto with(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) const {
    if constexpr (std::is_invocable_v<const Find&, int>) {
      using Kernel = decltype(x_find(0));
      return ConfiguredLaunch<Call, Kernel>(
          x_name, x_file, x_line, configuration(grid, block, shared, stream), x_call, x_find(0));
    } else {
      return with_deduced(grid, block, shared, stream);
    }
  }

  // For kernel<64> where the kernel has more template parameters, which a call deduces.
  auto with_deduced(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr)
      const {
    const void* identity = nullptr;
    if constexpr (std::is_invocable_v<const Find&, int>)
      identity = reinterpret_cast<const void*>(x_find(0).address);
    return ConfiguredLaunch<Call, Deduced>(
        x_name, x_file, x_line, configuration(grid, block, shared, stream), x_call, identity);
  }

 private:
  static cudaLaunchConfig_t configuration(dim3 grid, dim3 block, std::size_t shared,
                                          cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    return config;
  }

  const char *x_name, *x_file;
  int x_line;
  const Call& x_call;  // of the full expression that launches
  const Find& x_find;
};

}  // namespace attn_diag::host
