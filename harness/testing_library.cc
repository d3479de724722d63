// A kernel library without kernels worth running, for kernel_test: it has two, and was made, so it
// says, from one empty file, ATTN_DIAG_TEST_SOURCE.
#include "attn_diag/kernels/adapter.h"

namespace {

constexpr attn_diag::KernelInfo named(const char* name) {
  attn_diag::KernelInfo info;
  info.name = name;
  return info;
}
constexpr attn_diag::KernelInfo kKernels[] = {named("first"), named("second")};
constexpr attn_diag::KernelLibrary kLibrary = {ATTN_DIAG_TEST_ABI, 2, kKernels};
// XXH3 64-bit of no bytes.
constexpr attn_diag::SourceFile kSource = {ATTN_DIAG_TEST_SOURCE, "source.cu",
                                           0x2d06800538d394c2ull};
constexpr attn_diag::BuildInfo kBuildInfo = {1,      &kSource, "compiler", "flags",
                                             "host", "",       false,      ""};

}  // namespace

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() { return &kLibrary; }
#if ATTN_DIAG_TEST_BUILD_INFO
extern "C" const attn_diag::BuildInfo* attn_diag_build_info() { return &kBuildInfo; }
#else
[[maybe_unused]] static const attn_diag::BuildInfo* const unused = &kBuildInfo;
#endif
