#include "harness/doctor/doctor.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

namespace fs = std::filesystem;

GpuState with_gpu(int major, int minor) {
  GpuState state;
  Gpu gpu;
  gpu.name = "Test GPU";
  gpu.major = major;
  gpu.minor = minor;
  state.gpus = {gpu};
  return state;
}

LibraryEntry cuda_library(const std::string& architectures) {
  LibraryEntry library;
  library.backend = "cuda";
  library.architectures = architectures;
  return library;
}

const Lack* lack_of(const Health& h, const std::string& what) {
  for (const Lack& lack : h.lacks)
    if (lack.what == what) return &lack;
  return nullptr;
}

}  // namespace

TEST_CASE("a library runs here if its backend does and it holds code for the GPU") {
  GpuState none;
  none.why_not = "There is no driver.";
  CHECK(why_not_here(cuda_library("sm_90"), none) == "There is no driver.");
  CHECK(why_not_here(cuda_library("sm_90"), with_gpu(9, 0)).empty());
  CHECK_THAT(why_not_here(cuda_library("sm_80"), with_gpu(9, 0)), contains("code for sm_80"));
  LibraryEntry host;
  host.backend = "host";
  CHECK(why_not_here(host, none).empty());
  host.problem = "It cannot be loaded.";
  CHECK(why_not_here(host, none) == "It cannot be loaded.");
}

TEST_CASE("the toolkit is the first nvcc of the PATH, with its version") {
  const testing::TemporaryDirectory directory;
  const fs::path nvcc = directory.path() / "nvcc";
  std::ofstream(nvcc) << "#!/bin/sh\necho 'Cuda compilation tools, release 12.4, V12.4.131'\n";
  fs::permissions(nvcc, fs::perms::owner_all);
  const Toolkit found = find_toolkit("/nowhere::" + directory.path().string() + ":/bin");
  CHECK(found.nvcc == nvcc.string());
  CHECK(found.version == "12.4.131");
}

TEST_CASE("an examination runs a kernel on backend host, and says what there is not") {
  const Health h = examine();
  CHECK(h.host.works());
  CHECK_FALSE(h.host.ran.empty());
  CHECK(h.cores >= 1);
  CHECK(h.hdf5_running.find('.') != std::string::npos);
  CHECK_FALSE(h.libraries.empty());
  CHECK(lack_of(h, "backend host") == nullptr);
  if (gpu_state().usable()) return;
  CHECK_FALSE(h.cuda.works());
  const Lack* cuda = lack_of(h, "backend cuda");
  REQUIRE(cuda != nullptr);
  CHECK(cuda->why == gpu_state().why_not);
}

}  // namespace attn_diag
