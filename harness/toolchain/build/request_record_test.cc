// ATTN_DIAG_KERNEL_BUILD_CONF: how kernels are compiled, of this build tree.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/base/process.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/toolchain/build/build.h"
#include "harness/toolchain/build/scratch.h"

namespace attn_diag::build {
namespace {

namespace fs = std::filesystem;

// A folder as that of a user, in which this process stands while it lasts.
class UserFolder {
 public:
  UserFolder() : x_before(fs::current_path()) {
    fs::create_directory(x_scratch / "sub");
    write_file(x_scratch / "rows.cu",
               "#include \"sizes.h\"\n"
               "__global__ void rows(float* o) { o[threadIdx.x] = kRows + kPrelude; }\n"
               "const char* text() { return TEXT; }\n");
    write_file(x_scratch / "sub/sizes.h", "constexpr int kRows = 4;\n");
    write_file(x_scratch / "sub/prelude.h", "constexpr int kPrelude = 4;\n");
    fs::current_path(x_scratch / "");
  }
  ~UserFolder() { fs::current_path(x_before); }
  fs::path operator/(const fs::path& name) const { return x_scratch / name; }

 private:
  ScratchFolder x_scratch;
  fs::path x_before;
};

BuildRequest request_for(const std::string& output) {
  BuildRequest request;
  request.sources = {"rows.cu"};
  request.output = output;
  request.includes = {"sub"};
  request.defines = {"TEXT=\"a\\\\b\\n # \"", "EMPTY"};
  request.compiler_flags = {"-include", "sub/prelude.h"};
  request.arch = "sm_80";
  request.standard = "c++23";
  request.lockstep = request.ask_nvcc = false;
  return request;
}

TEST_CASE("a library says what it was built by, and the same is built from anywhere") {
  const UserFolder folder;
  const Settings settings = load_settings(ATTN_DIAG_KERNEL_BUILD_CONF);
  const BuildRequest request = request_for("rows.so");
  REQUIRE(build_library(request, settings).ok);

  std::optional<BuildRequest> found = request_of(folder / "rows.so");
  REQUIRE(found);
  CHECK(found->output == folder / "rows.so");
  CHECK(found->sources == std::vector<fs::path>{folder / "rows.cu"});
  CHECK(found->includes == std::vector<std::string>{(folder / "sub").string()});
  CHECK(found->defines == request.defines);
  CHECK(found->compiler_flags == request.compiler_flags);
  CHECK(found->arch == "sm_80");
  CHECK(found->standard == "c++23");
  CHECK(fs::equivalent(found->folder, folder / ""));
  CHECK_FALSE(found->compiler.empty());
  CHECK_FALSE(found->lockstep);
  CHECK_FALSE(found->ask_nvcc);

  fs::current_path("/");
  found->output = folder / "again.so";
  REQUIRE(build_library(*found, settings).ok);
  std::optional<BuildRequest> again = request_of(folder / "again.so");
  REQUIRE(again);
  CHECK(again->folder == found->folder);
  CHECK(again->sources == found->sources);
}

TEST_CASE("what ccache keeps of another plugin is not taken") {
  const UserFolder folder;
  Settings settings = load_settings(ATTN_DIAG_KERNEL_BUILD_CONF);
  if (!is_program("ccache") || !settings.no_instrumenter().empty()) {
    std::puts("SKIP: needs ccache, clang and llvm-dev");
    return;
  }
  const fs::path plugin = folder / "plugin.so";
  fs::copy_file(settings.watch_plugin, plugin);
  settings.watch_plugin = plugin;
  setenv("CCACHE_DIR", (folder / "cache").c_str(), 1);
  unsetenv("CCACHE_DISABLE");
  BuildRequest request = request_for("rows.watch.so");
  request.watch = true;
  const auto misses = [] {
    const std::string text = run_process({"ccache", "--print-stats"}).out;
    const std::size_t at = text.find("cache_miss\t");
    REQUIRE(at != std::string::npos);
    return std::stoi(text.substr(at + 11));
  };
  const BuildRecord first = build_library(request, settings);
  for (const Step& step : first.steps) UNSCOPED_INFO(step.messages);
  REQUIRE(first.ok);
  CHECK(misses() == 1);
  REQUIRE(build_library(request, settings).ok);
  CHECK(misses() == 1);
  // A byte behind its end does not matter to who loads it.
  std::ofstream(plugin, std::ios::binary | std::ios::app) << 'x';
  REQUIRE(build_library(request, settings).ok);
  CHECK(misses() == 2);
  unsetenv("CCACHE_DIR");
}

TEST_CASE("what is no library of ours says nothing of how it was built") {
  const UserFolder folder;
  CHECK_FALSE(request_of(folder / "missing.so"));
  CHECK_FALSE(request_of(folder / "rows.cu"));
  CHECK_FALSE(request_of(load_settings(ATTN_DIAG_KERNEL_BUILD_CONF).executor));
  // Cut off anywhere, it is either whole or nothing.
  REQUIRE(build_library(request_for("rows.so"), load_settings(ATTN_DIAG_KERNEL_BUILD_CONF)).ok);
  std::ifstream file(folder / "rows.so", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (std::size_t size = 0; size < bytes.size(); size += bytes.size() / 40) {
    write_file(folder / "cut.so", bytes.substr(0, size));
    const std::optional<BuildRequest> cut = request_of(folder / "cut.so");
    CHECK((!cut || cut->sources.size() == 1));
  }
}

}  // namespace
}  // namespace attn_diag::build
