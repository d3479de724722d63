// A kernel library without kernels worth running, for kernel_test: it has two, and was made, so it
// says, from one empty file, ATTN_DIAG_TEST_SOURCE.
#include "attn_diag/kernels/adapter.h"

namespace {

constexpr attn_diag::KernelInfo named(const char* name) {
  attn_diag::KernelInfo info;
  info.name = name;
  return info;
}
constexpr attn_diag::KernelInfo kKernels[] = {named(ATTN_DIAG_TEST_FIRST_KERNEL), named("second")};
constexpr attn_diag::KernelLibrary kLibrary = {ATTN_DIAG_TEST_ABI, 2, kKernels};
// XXH3 64-bit of no bytes.
constexpr attn_diag::SourceFile kSource = {ATTN_DIAG_TEST_SOURCE, "source.cu",
                                           0x2d06800538d394c2ull};
constexpr bool kForGpus = ATTN_DIAG_TEST_BACKEND[0] == 'c';
constexpr attn_diag::BuildInfo kBuildInfo = {1,
                                             &kSource,
                                             "compiler",
                                             "flags",
                                             ATTN_DIAG_TEST_BACKEND,
                                             kForGpus ? "sm_80 compute_90" : "",
                                             false,
                                             ""};

}  // namespace

#if ATTN_DIAG_TEST_FOREIGN
// What no version of the executor has.
extern "C" void attn_diag_from_a_later_version();
extern "C" __attribute__((visibility("default"))) void attn_diag_uses_it() {
  attn_diag_from_a_later_version();
}
#endif

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() { return &kLibrary; }
#if ATTN_DIAG_TEST_BUILD_INFO
extern "C" const attn_diag::BuildInfo* attn_diag_build_info() { return &kBuildInfo; }
#else
[[maybe_unused]] static const attn_diag::BuildInfo* const unused = &kBuildInfo;
#endif
