// Everything that can be wrong with a dump's file, to read and to write.
#include <fcntl.h>
#include <hdf5.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/dump/hdf5_handle.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/child.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

namespace fs = std::filesystem;

Capture small_capture() {
  Problem p;
  p.heads = 2, p.kv_heads = 2, p.seqlen_q = 16, p.seqlen_k = 16, p.head_dim = 4, p.head_dim_v = 4;
  Geometry g;
  g.tile = {8, 8};
  g.tiles_per_split = 2;
  return testing::reference_capture(p, g, 1);
}

// About 2 MiB that do not compress.
Capture large_capture() {
  Problem p;
  p.heads = 2, p.kv_heads = 2, p.seqlen_q = 512, p.seqlen_k = 512, p.head_dim = 8;
  p.head_dim_v = 8;
  Geometry g;
  g.tiles_per_split = 8;
  return testing::reference_capture(p, g, 1);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A dump, changed through the HDF5 library.
std::string changed_dump(const testing::TemporaryDirectory& directory,
                         const std::function<void(hid_t)>& change) {
  const std::string path = directory / "changed.h5";
  DumpOptions options;
  options.force = true;
  write_dump(path, small_capture(), options);
  const Hdf5Session session;
  const Hdf5Id file(check(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open"), H5Fclose);
  change(file);
  return path;
}

void replace_attribute(hid_t file, const char* group, const char* attribute,
                       const std::string& value) {
  const Hdf5Id object = open_group(file, group);
  check(H5Adelete(object, attribute), "delete");
  write_attribute(object, attribute, value);
}

void replace_attribute(hid_t file, const char* group, const char* attribute, std::int64_t value) {
  const Hdf5Id object = open_group(file, group);
  check(H5Adelete(object, attribute), "delete");
  write_attribute(object, attribute, value);
}

void replace_real(hid_t file, const char* group, const char* attribute, double value) {
  const Hdf5Id object = open_group(file, group);
  check(H5Adelete(object, attribute), "delete");
  write_attribute(object, attribute, value);
}

void replace_dataset(hid_t file, const char* path, hid_t type, std::vector<hsize_t> shape) {
  check(H5Ldelete(file, path, H5P_DEFAULT), "delete");
  const Hdf5Id space(
      check(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), "space"),
      H5Sclose);
  const Hdf5Id dataset(
      check(H5Dcreate2(file, path, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "create"),
      H5Dclose);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string reading(const std::string& path) {
  return message_of([&] { read_dump(path); });
}

std::string writing(const std::string& path, const DumpOptions& options = {}) {
  return message_of([&] { write_dump(path, small_capture(), options); });
}

}  // namespace

TEST_CASE("a dump that declares what cannot be is refused, and says which value") {
  const testing::TemporaryDirectory directory;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto refused = [&](const char* group, const char* attribute, auto value, const char* said) {
    INFO(attribute << " = " << value);
    CHECK_THAT(reading(changed_dump(directory,
                                    [&](hid_t file) {
                                      if constexpr (std::is_floating_point_v<decltype(value)>)
                                        replace_real(file, group, attribute, value);
                                      else
                                        replace_attribute(file, group, attribute, value);
                                    })),
               contains(said));
  };
  for (const double value : {1e300, nan, -1.0, inf})
    for (const char* error :
         {"dot_ulp", "exp_ulp", "exp_ulp_per_x", "exp_flush", "log_ulp", "log_abs"})
      refused("/arithmetic", error, value, error);
  for (const double value : {nan, inf, -inf, 1e300})
    refused("/problem", "softmax_scale", value, "softmax_scale");
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-8}, std::int64_t{1} << 30}) {
    refused("/problem", "block_m", value, "make no sense");
    refused("/problem", "block_n", value, "make no sense");
    refused("/problem", "num_splits", value, "make no sense");
  }
  refused("/problem", "tiles_per_split", std::int64_t{1}, "do not cover");
  refused("/", "runs", std::int64_t{0}, "runs");
  const auto of_o = [&](const char* attribute, std::int64_t value) {
    return reading(changed_dump(directory, [&](hid_t file) {
      const Hdf5Id o(check(H5Dopen2(file, "/stages/reduce/o", H5P_DEFAULT), "open o"), H5Dclose);
      check(H5Adelete(o, attribute), "delete");
      write_attribute(o, attribute, value);
    }));
  };
  CHECK_THAT(of_o("never_written", -1), contains("never_written"));
  CHECK_THAT(of_o("repeatedly_written", 1 << 20), contains("repeatedly_written"));
}

TEST_CASE("a file that is missing or no file is said to be so") {
  const testing::TemporaryDirectory directory;
  CHECK_THAT(reading(directory / "none.h5"),
             contains(directory / "none.h5") && contains("No such file"));
  CHECK_THAT(reading(directory.path().string()), contains("not a regular file"));
}

TEST_CASE("a file that is not HDF5 is said to be so") {
  const testing::TemporaryDirectory directory;
  write_text(directory / "empty", "");
  write_text(directory / "text", "not a dump at all\n");
  CHECK_THAT(reading(directory / "empty"), contains("not an HDF5 file (0 bytes"));
  CHECK_THAT(reading(directory / "text"), contains("not an HDF5 file"));
}

TEST_CASE("a dump that was cut off anywhere is refused") {
  const testing::TemporaryDirectory directory;
  write_dump(directory / "whole.h5", small_capture(), {});
  const std::string whole = contents(directory / "whole.h5");
  for (const std::size_t size :
       {whole.size() - 1, whole.size() / 2, whole.size() / 10, std::size_t{96}, std::size_t{9}}) {
    write_text(directory / "cut.h5", whole.substr(0, size));
    INFO(size);
    const std::string message = reading(directory / "cut.h5");
    CHECK_THAT(message, contains("cut.h5") && contains("truncated or damaged"));
    CHECK_THAT(message, contains("again"));
  }
}

TEST_CASE("an HDF5 file of another program is told from a dump") {
  const testing::TemporaryDirectory directory;
  const std::string path =
      changed_dump(directory, [](hid_t file) { check(H5Adelete(file, "schema"), "delete"); });
  CHECK_THAT(reading(path), contains("another program") && contains("attn-diag/1"));
  CHECK_THAT(
      reading(changed_dump(directory,
                           [](hid_t file) { replace_attribute(file, "/", "schema", "netcdf/4"); })),
      contains("\"netcdf/4\"") && contains("attn-diag/1"));
  CHECK_THAT(reading(changed_dump(directory,
                                  [](hid_t file) { replace_attribute(file, "/", "schema", 1); })),
             contains("schema is not a single string"));
}

TEST_CASE("a newer schema names both versions and what to do") {
  const testing::TemporaryDirectory directory;
  const std::string message = reading(changed_dump(
      directory, [](hid_t file) { replace_attribute(file, "/", "schema", "attn-diag/2"); }));
  CHECK_THAT(message, contains("attn-diag/2") && contains("attn-diag/1") && contains("newer"));
}

TEST_CASE("datasets of a wrong shape or type, or missing ones, are named") {
  const testing::TemporaryDirectory directory;
  CHECK_THAT(
      reading(
          changed_dump(directory,
                       [](hid_t file) {
                         replace_dataset(file, "/stages/softmax/m", H5T_IEEE_F32LE, {1, 2, 16, 3});
                       })),
      contains("/stages/softmax/m") && contains("[1, 2, 16, 3]") && contains("[1, 2, 16, 2]"));
  CHECK_THAT(reading(changed_dump(
                 directory,
                 [](hid_t file) {
                   replace_dataset(file, "/stages/softmax/m", H5T_STD_I32LE, {1, 2, 16, 2});
                 })),
             contains("/stages/softmax/m") && contains("32-bit integer"));
  CHECK_THAT(
      reading(changed_dump(directory,
                           [](hid_t file) {
                             replace_dataset(file, "/inputs/k", H5T_IEEE_F32LE, {1, 2, 16, 4});
                           })),
      contains("/inputs/k") && contains("fp32") && contains("fp16"));
  CHECK_THAT(reading(changed_dump(directory,
                                  [](hid_t file) { H5Ldelete(file, "/inputs/v", H5P_DEFAULT); })),
             contains("/inputs/v is missing"));
}

TEST_CASE("attributes that are missing or make no sense are named") {
  const testing::TemporaryDirectory directory;
  const auto with = [&](const char* group, const char* attribute, auto value) {
    return reading(changed_dump(
        directory, [&](hid_t file) { replace_attribute(file, group, attribute, value); }));
  };
  CHECK_THAT(with("/problem", "mask", std::string("diagonal")), contains("\"diagonal\""));
  CHECK_THAT(with("/problem", "heads", std::string("two")),
             contains("heads is not a single number"));
  CHECK_THAT(with("/problem", "heads", std::int64_t{1} << 40), contains("out of range"));
  CHECK_THAT(with("/problem", "seqlen_q", std::int64_t{0}), contains("seqlen_q"));
  CHECK_THAT(with("/problem", "kv_heads", std::int64_t{3}), contains("KV heads"));
  CHECK_THAT(with("/problem", "block_n", std::int64_t{0}), contains("Tiles of 8 x 0"));
  CHECK_THAT(with("/problem", "seqlen_q", std::int64_t{8}), contains("region"));
  CHECK_THAT(
      reading(changed_dump(
          directory, [](hid_t file) { H5Adelete(open_group(file, "/provenance"), "kernel"); })),
      contains("/provenance") && contains("kernel is missing"));
}

TEST_CASE("an existing file is kept without force and replaced with it") {
  const testing::TemporaryDirectory directory;
  write_text(directory / "x.h5", "precious");
  CHECK_THAT(writing(directory / "x.h5"), contains("exists already") && contains("--force"));
  CHECK(contents(directory / "x.h5") == "precious");
  DumpOptions options;
  options.force = true;
  CHECK(writing(directory / "x.h5", options) == "");
  CHECK(reading(directory / "x.h5") == "");
  CHECK(directory.files() == std::vector<std::string>{"x.h5"});
}

TEST_CASE("what is not a regular file is never replaced") {
  const testing::TemporaryDirectory directory;
  DumpOptions options;
  options.force = true;
  CHECK_THAT(writing("/dev/null", options), contains("not a regular file"));
  CHECK_THAT(writing(directory.path().string(), options), contains("not a regular file"));
  CHECK_THAT(writing((directory / "none") + "/", options), contains("names a directory"));
}

TEST_CASE("a directory that is missing or may not be written is said to be so") {
  const testing::TemporaryDirectory directory;
  CHECK_THAT(writing(directory / "none/x.h5"), contains("No such file or directory"));
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec |
                                        fs::perms::others_read | fs::perms::others_exec);
  // Root may write everywhere, so become somebody else.
  const testing::ChildResult child = testing::in_child([&] {
    if (geteuid() == 0 && seteuid(65534) != 0) return std::string("cannot change user");
    return writing(directory / "x.h5");
  });
  fs::permissions(directory.path(), fs::perms::owner_all);
  CHECK_THAT(child.output, contains("Permission denied") && contains("can be written"));
  CHECK(directory.files().empty());
}

TEST_CASE("running out of space leaves nothing behind and an existing file untouched") {
  const testing::TemporaryDirectory directory;
  write_text(directory / "x.h5", "precious");
  for (const bool with_reference : {false, true}) {
    const testing::ChildResult child = testing::in_child([&]() -> std::string {
      const Capture c = large_capture();
      DumpOptions options;
      options.force = true;
      options.with_reference = with_reference;
      std::signal(SIGXFSZ, SIG_IGN);
      const int printed = open((directory / "printed").c_str(), O_RDWR | O_CREAT, 0600);
      dup2(printed, STDERR_FILENO);
      rlimit limit{};
      getrlimit(RLIMIT_FSIZE, &limit);
      limit.rlim_cur = with_reference ? 12 << 20 : 1 << 20;
      setrlimit(RLIMIT_FSIZE, &limit);
      const std::ptrdiff_t descriptors = open_descriptors();
      const std::string message = message_of([&] { write_dump(directory / "x.h5", c, options); });
      if (open_descriptors() != descriptors) return "the file is still open";
      const std::string kept = contents(directory / "x.h5");
      // And the library is as good as before.
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_FSIZE, &limit);
      write_dump(directory / "y.h5", c, options);
      return message + " | " + kept + " | " + reading(directory / "y.h5") + " | " +
             contents(directory / "printed") + "END";
    });
    CHECK(child.exit_code == 0);
    CHECK_THAT(child.output, contains("x.h5 was not written") && contains("File too large") &&
                                 contains(" | precious |  | END"));
    fs::remove(directory / "y.h5");
    fs::remove(directory / "printed");
    CHECK(directory.files() == std::vector<std::string>{"x.h5"});
  }
}

TEST_CASE("a full disk is found before and while writing") {
  const testing::TemporaryDirectory directory;
  const testing::ChildResult child = testing::in_child([&]() -> std::string {
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      return "cannot mount";
    const Capture c = large_capture();
    DumpOptions options;
    const std::ptrdiff_t descriptors = open_descriptors();
    const std::string before = message_of([&] { write_dump(directory / "x.h5", c, options); });
    options.deflate = 1;  // its size is not known before
    const std::string during = message_of([&] { write_dump(directory / "x.h5", c, options); });
    const std::size_t left = directory.files().size();
    const std::ptrdiff_t kept_open = open_descriptors() - descriptors;
    const std::string after = writing(directory / "small.h5");
    umount(directory.path().c_str());
    return before + " | " + during + " | " + std::to_string(left) + " | " +
           std::to_string(kept_open) + " | " + after + "|";
  });
  if (child.output == "cannot mount") {
    WARN("SKIP: this user may not mount a file system of its own");
    return;
  }
  CHECK_THAT(child.output, contains("MiB free") && contains("dump less"));
  CHECK_THAT(child.output, contains("No space left on device"));
  CHECK_THAT(child.output, contains(" | 0 | 0 | |"));
}

TEST_CASE("a process killed while writing leaves nothing that looks finished") {
  const testing::TemporaryDirectory directory;
  const testing::ChildResult child = testing::in_child([&]() -> std::string {
    const Capture c = large_capture();
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 1 << 20;  // crossing it kills by SIGXFSZ, in the middle of a write
    setrlimit(RLIMIT_FSIZE, &limit);
    write_dump(directory / "x.h5", c, {});
    return "finished";
  });
  REQUIRE(child.signal == SIGXFSZ);
  CHECK_FALSE(fs::exists(directory / "x.h5"));
  REQUIRE(directory.files().size() == 1);
  CHECK(reading(directory / directory.files().front()) != "");
}

TEST_CASE("several threads write and read dumps at once") {
  const testing::TemporaryDirectory directory;
  const Capture c = small_capture();
  std::array<std::string, 4> messages;
  std::array<std::thread, 4> threads;
  for (std::size_t i = 0; i < threads.size(); ++i)
    threads[i] = std::thread([&, i] {
      for (int round = 0; round < 50 && messages[i].empty(); ++round)
        messages[i] = message_of([&] {
          const std::string path = directory / (std::to_string(i) + ".h5");
          DumpOptions options;
          options.force = true;
          write_dump(path, c, options);
          if (read_dump(path).tensors[0]->bytes != c.tensors[0]->bytes) throw Error("other bytes");
        });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : messages) CHECK(message == "");
}

TEST_CASE("a capture whose parts do not fit together is not written") {
  const testing::TemporaryDirectory directory;
  Capture c = small_capture();
  c.q.edit().pop_back();
  CHECK_THAT(message_of([&] { write_dump(directory / "x.h5", c, {}); }), contains("Input q"));
  c = small_capture();
  c.tensors[0]->shape[3] = 3;
  CHECK_THAT(message_of([&] { write_dump(directory / "x.h5", c, {}); }), contains("Tensor S"));
  DumpOptions options;
  options.deflate = 10;
  CHECK_THAT(writing(directory / "x.h5", options), contains("0 to 9"));
  CHECK(directory.files().empty());
}

}  // namespace attn_diag
