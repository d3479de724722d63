// The contract between a kernel library (a shared object) and the harness. Our own kernels and a
// user's are built, loaded and described by exactly this.
//
// A library exports one C function, attn_diag_kernel_library(), returning a pointer to static data.
// Everything is plain data and function pointers, so that a library built with another compiler
// loads. The CMake function attn_diag_add_kernel() (cmake/AttnDiagAddKernel.cmake) compiles the
// sources for the backends that can be built, and links in a generated definition of
// attn_diag_build_info().
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/build_info.h"
#include "attn_diag/kernels/codes.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"
#include "attn_diag/kernels/support.h"
#include "attn_diag/kernels/tap.h"

namespace attn_diag {

inline constexpr std::uint32_t kKernelAbiVersion = 5;

enum class Status : std::int32_t {
  kOk = 0,
  kUnsupported = 1,   // this problem, tile, gate: `error` says why
  kLaunchFailed = 2,  // the runtime refused or aborted a launch: `error` says which
};

// One run. Pointers are memory of the backend (host memory for the host executor, device memory for
// cuda).
struct RunRequest {
  std::uint32_t abi_version = kKernelAbiVersion;
  Problem problem;
  Geometry geometry;        // as the kernel's own geometry() returned it
  Gate gate = Gate::kFull;  // kFull: production kernel, `taps` ignored
  TapTable taps;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;     // poisoned by the caller; written only under gates full and reduce
  float* lse = nullptr;  // likewise
  // For a kernel that computes a part of attention: S or P. Under Part::kScores the kernel writes it, and it is
  // poisoned before; else it is given.
  Part part = Part::kAttention;
  void* between = nullptr;
  DType between_type = DType::kFp32;
  Codes codes[3];             // of q, k and v, as the kernel declares
  void* workspace = nullptr;  // workspace_bytes(), 256-byte aligned, poisoned
  void* stream = nullptr;     // cudaStream_t
  // Wait for every launch before the next and report what it ended with, so that an error is that of
  // one kernel. The harness sets it; a benchmark does not.
  bool synchronize = false;
  char* error = nullptr;  // receives a NUL-terminated message when the status is not kOk
  std::size_t error_capacity = 0;
};

// Whether and why not a stage tensor can be recorded and replaced.
struct TensorExposure {
  bool exposed = false;
  const char* exempt_reason = nullptr;  // required when not exposed; shown in every verdict
  bool recorded_only = false;           // exposed, but what it holds cannot be replaced
};

struct KernelInfo {
  const char* name = nullptr;     // "fa1"
  const char* summary = nullptr;  // one line
  // Compiled tile shapes; the first is the default, unless default_tile chooses.
  const TileShape* tiles = nullptr;
  std::int32_t num_tiles = 0;
  bool takes_num_splits = false;
  // Bit g set: Gate g is compiled in.
  std::uint32_t gates = 0;
  TensorExposure exposure[kNumTensors];
  // The problems the kernel takes. Null: it does not say, and plan() alone refuses.
  const Support* support = nullptr;
  Conventions conventions;
  Part part = Part::kAttention;
  Codes codes[3];  // of q, k and v: inputs that the kernel takes as codes with scales

  // The tile for a problem if the user names none: one of `tiles`, by the problem alone, so that it is
  // the same on every machine. Null: the first.
  TileShape (*default_tile)(const Problem& problem) = nullptr;
  // Fills geometry for a problem, or returns kUnsupported with the reason in error. num_splits = 0:
  // the kernel chooses.
  Status (*plan)(const Problem& problem, TileShape tile, std::int32_t num_splits,
                 Geometry* geometry, char* error, std::size_t error_capacity) = nullptr;
  Arithmetic (*arithmetic)(const Problem& problem, const Geometry& geometry) = nullptr;
  std::size_t (*workspace_bytes)(const Problem& problem, const Geometry& geometry) = nullptr;
  Status (*run)(const RunRequest& request) = nullptr;
};

struct KernelLibrary {
  std::uint32_t abi_version = kKernelAbiVersion;
  std::int32_t num_kernels = 0;
  const KernelInfo* kernels = nullptr;
};

}  // namespace attn_diag

// The two symbols a library exports: this, and that of build_info.h.
extern "C" {
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const attn_diag::KernelLibrary*
attn_diag_kernel_library();
}
