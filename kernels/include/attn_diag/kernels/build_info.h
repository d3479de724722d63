// What a kernel library was made from. A build generates the definition of attn_diag_build_info() and compiles it with
// this header alone, in no time.
#pragma once

#include <cstdint>

namespace attn_diag {

struct SourceFile {
  const char* path;        // absolute, as compiled
  const char* shown_path;  // relative to the project, for reports
  std::uint64_t xxh3;      // XXH3 64-bit of the file's bytes at build time
};
struct BuildInfo {
  std::int32_t num_sources;
  const SourceFile* sources;
  const char* compiler;  // "GNU 12.2.0"
  const char* flags;
  const char* backend;  // "host" or "cuda"
  // What a cuda build holds code for: "sm_80 sm_90 compute_90" (compute_*: PTX, which the driver compiles for
  // newer devices). "" for host.
  const char* architectures;
  bool lockstep;      // compiled with the memory-access instrumentation that lockstep needs
  const char* fault;  // "" or the name of the planted fault
};

}  // namespace attn_diag

extern "C" {
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const attn_diag::BuildInfo*
attn_diag_build_info();
}
