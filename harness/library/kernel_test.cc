// ATTN_DIAG_TEST_LIBRARIES: the directory of the libraries made from testing_library.cc.
#include "attn_diag/harness/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "attn_diag/harness/error.h"
#include "harness/base/close_names.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/kernel_path.h"

namespace attn_diag {
namespace {

namespace fs = std::filesystem;

const std::string kDirectory = ATTN_DIAG_TEST_LIBRARIES;
const std::string kTwo = kDirectory + "/two.host.so";

// What the error says when a kernel cannot be loaded.
std::string load_error(const std::string& spec, const std::string& backend = "host",
                       bool lockstep = false) {
  try {
    Kernel::load(spec, backend, lockstep);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using testing::KernelPath;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST_CASE("a kernel is loaded by path and name") {
  const Kernel kernel = Kernel::load(kTwo + ":second", "host");
  CHECK(kernel.info().name == std::string("second"));
  CHECK(kernel.library_path() == fs::canonical(kTwo).string());
  CHECK(kernel.spec() == kTwo + ":second");
}

TEST_CASE("a library of several kernels needs a name, and the error lists them") {
  CHECK_THAT(load_error(kTwo), contains("several kernels: first, second"));
  CHECK_THAT(load_error(kTwo + ":third"), contains("no kernel 'third'. It has: first, second"));
}

TEST_CASE("a kernel is found by name in the search path, before the program's own") {
  const KernelPath path("/nowhere:" + kDirectory);
  CHECK_THAT(load_error("two"), contains("no kernel 'two'. It has: first, second"));
  CHECK(kernel_directories().size() == 3);
  CHECK(kernel_directories()[1] == kDirectory);
}

TEST_CASE("an unknown kernel gets a list, a close name and where it was looked for") {
  const KernelPath path(kDirectory);
  const std::string error = load_error("twoo");
  CHECK_THAT(error, contains("There is no kernel 'twoo'. Did you mean two?"));
  CHECK_THAT(error, contains(kDirectory));
}

TEST_CASE("an unknown fault says how faults are built") {
  CHECK_THAT(load_error("fa1@no-such-fault"), contains("fault_kernels"));
}

TEST_CASE("a library that does not exist, is no library or is no kernel library is an error") {
  CHECK_THAT(load_error("./missing.so:k"), contains("does not exist"));
  CHECK_THAT(load_error("./missing.so:k.softcap"), contains("missing.so does not exist"));
  const std::string text = kDirectory + "/text.host.so";
  write_file(text, "this is not an ELF file");
  CHECK_THAT(load_error(text), contains("cannot be loaded"));
  CHECK_THAT(load_error(kDirectory + "/anonymous.host.so"),
             contains("does not export attn_diag_build_info()"));
  CHECK_THAT(load_error("./directory/name"), contains("must end in .so"));
  CHECK_THAT(load_error(""), contains("is not a kernel"));
  fs::remove(text);
}

TEST_CASE("a library for another version of the contract is an error that names both") {
  CHECK_THAT(load_error(kDirectory + "/future.host.so"),
             contains("version 999 of the kernel contract, this program has version " +
                      std::to_string(kKernelAbiVersion)));
}

TEST_CASE("a library without a lockstep build says so") {
  CHECK_THAT(load_error(kTwo + ":first", "host", true), contains("two.lockstep.so does not exist"));
  const KernelPath path(kDirectory);
  CHECK_THAT(load_error("two", "host", true), contains("no build for the lockstep schedule"));
}

TEST_CASE("a backend that is not there is an error") {
  CHECK_THAT(load_error(kTwo + ":first", "metal"), contains("no backend 'metal'; there are host"));
  CHECK_THAT(load_error(kTwo + ":first", "cuda", true), contains("one of the host executor"));
}

TEST_CASE("a library built for another backend is an error that names both") {
  CHECK_THAT(load_error(kTwo + ":first", "cuda"),
             contains("two.host.so was built for backend host, not for cuda"));
}

TEST_CASE("a kernel without a build for the backend says how to get one") {
  const KernelPath path(kDirectory);
  CHECK_THAT(load_error("two", "cuda"), contains("'two' has no build for backend cuda"));
  CHECK_THAT(load_error("gpu_only", "host"), contains("'gpu_only' has no build for backend host"));
  CHECK_THAT(load_error("nothing", "cuda"), contains("There is no kernel 'nothing'"));
}

TEST_CASE("a library that needs another version of attn-diag says what to do") {
  CHECK_THAT(load_error(kDirectory + "/foreign.host.so"), contains("undefined symbol"));
  CHECK_THAT(load_error(kDirectory + "/foreign.host.so"),
             contains("Rebuild it against this attn-diag"));
}

TEST_CASE("the list of libraries says what a cuda build holds code for") {
  const KernelPath path(kDirectory);
  for (const LibraryEntry& entry : list_libraries()) {
    if (entry.file_stem != "gpu_only") continue;
    CHECK(entry.backend == "cuda");
    CHECK(entry.architectures == "sm_80 compute_90");
    return;
  }
  FAIL("gpu_only.cuda.so is not in the list");
}

TEST_CASE("provenance names the build and tells a changed source from a missing one") {
  const Kernel kernel = Kernel::load(kTwo + ":first", "host");
  const std::string source = ATTN_DIAG_TEST_SOURCE;
  write_file(source, "");
  Provenance provenance = kernel.provenance();
  CHECK_FALSE(provenance.stale());
  CHECK_FALSE(provenance.sources_missing());
  CHECK(provenance.compiler == "compiler");
  // As `readelf -n` prints it: 20 bytes of SHA-1 in hex.
  CHECK(provenance.build_id.size() == 40);
  CHECK(provenance.build_id.find_first_not_of("0123456789abcdef") == std::string::npos);

  write_file(source, "changed");
  CHECK(kernel.provenance().stale());
  CHECK_FALSE(kernel.provenance().sources_missing());

  fs::remove(source);
  provenance = kernel.provenance();
  CHECK(provenance.sources_missing());
  CHECK_FALSE(provenance.sources[0].found);
}

TEST_CASE("two libraries have different build ids") {
  const std::string two = Kernel::load(kTwo + ":first", "host").provenance().build_id;
  const std::string other =
      Kernel::load(kDirectory + "/other.host.so:first", "host").provenance().build_id;
  CHECK(two != other);
}

TEST_CASE("the list of libraries shows kernels, faults and what is wrong with a library") {
  const KernelPath path(kDirectory);
  const std::vector<LibraryEntry> entries = list_libraries();
  const auto entry = [&](const std::string& stem) {
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const LibraryEntry& e) {
      return e.file_stem == stem && fs::path(e.path).parent_path() == kDirectory;
    });
    REQUIRE(at != entries.end());
    return *at;
  };
  CHECK(entry("two").kernels == std::vector<std::string>{"first", "second"});
  CHECK(entry("two").fault.empty());
  CHECK(entry("two@fault").fault == "fault");
  CHECK(entry("future").kernels.empty());
  CHECK_THAT(entry("future").problem, contains("version 999"));
}

TEST_CASE("a hash is XXH3 64-bit of the bytes, and a missing file has none") {
  const std::string path = kDirectory + "/hashed";
  write_file(path, "");
  CHECK(hash_file(path) == 0x2d06800538d394c2ull);
  write_file(path, "attn");
  CHECK(hash_file(path) != 0x2d06800538d394c2ull);
  fs::remove(path);
  CHECK_FALSE(hash_file(path).has_value());
}

TEST_CASE("close names are misspellings and beginnings, the closest first") {
  CHECK(close_names("splitk", {"fa1", "split_k", "naive"}) == std::vector<std::string>{"split_k"});
  CHECK(close_names("FA2", {"fa1", "split_k"}) == std::vector<std::string>{"fa1"});
  CHECK(close_names("split", {"split_k", "fa1"}) == std::vector<std::string>{"split_k"});
  CHECK(close_names("quux", {"split_k", "fa1"}).empty());
}

}  // namespace
}  // namespace attn_diag
