// Kernel launches: cudaLaunchKernelEx, which nvcc and g++ both compile.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "attn_diag_host/kernel_limits.h"
#include "attn_diag_host/launch_attributes.h"
#include "attn_diag_host/runtime_api.h"

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned int numAttrs = 0;
};

// What the library was built for, as its code saw it.
#if defined(__CUDA_ARCH__)
#define ATTN_DIAG_HOST_ARCHITECTURE __CUDA_ARCH__
#else
#define ATTN_DIAG_HOST_ARCHITECTURE 900
#endif

namespace attn_diag::host {

struct KernelCall {
  const void* kernel;  // identifies it: name, attributes, library
  void (*call)(const void* kernel, const void* arguments);  // runs it once, for one thread
  const void* arguments;
  bool instrumented;  // compiled for the lockstep schedule
  // For a launch written kernel<<<...>>>: the kernel as written, where `kernel` is not its address, and
  // the place of the launch. Else null.
  const char* name = nullptr;
  const char* file = nullptr;
  int line = 0;
  int architecture = ATTN_DIAG_HOST_ARCHITECTURE;
  std::size_t most_static_shared = ATTN_DIAG_HOST_MOST_STATIC_SHARED;  // bytes of a kernel
};

cudaError_t launch(const cudaLaunchConfig_t& config, const KernelCall& call);

}  // namespace attn_diag::host

// Hidden, so that each library has its own: of several alike the dynamic linker takes one, and a
// library built for lockstep would launch as one that is not.
template <class... Parameters, class... Arguments>
[[gnu::visibility("hidden")]] cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                                                             void (*kernel)(Parameters...),
                                                             Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "the kernel takes another number of arguments");
  static_assert((std::is_trivially_copyable_v<std::remove_cv_t<Parameters>> && ...),
                "kernel parameters must be trivially copyable");
  using Values = std::tuple<std::remove_cv_t<Parameters>...>;
  const Values values(static_cast<std::remove_cv_t<Parameters>>(arguments)...);
  attn_diag::host::KernelCall call;
  call.kernel = reinterpret_cast<const void*>(kernel);
  call.call = [](const void* entry, const void* packed) {
    std::apply(reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(entry)),
               *static_cast<const Values*>(packed));
  };
  call.arguments = &values;
  call.instrumented = ATTN_DIAG_HOST_INSTRUMENTED != 0;
  return attn_diag::host::launch(*config, call);
}
