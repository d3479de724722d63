#include <hdf5.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/dump/hdf5_handle.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/child.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

Capture recorded(unsigned seed = 5) {
  Problem p;
  p.batch = 2, p.heads = 4, p.kv_heads = 2, p.seqlen_q = 70, p.seqlen_k = 130;
  p.head_dim = 6, p.head_dim_v = 5;
  p.mask.kind = MaskKind::kCausal;
  Geometry g;
  g.tile = {16, 32};
  g.num_splits = 2, g.tiles_per_split = 3;
  g.has_split_merge = true;
  return testing::reference_capture(p, g, seed, Region{{0, 1, 5}, {2, 2, 60}});
}

// Some cells of every tensor a little, a lot, or not comparable.
Capture disturbed(Capture c) {
  for (std::optional<TensorData>& t : c.tensors)
    for (std::int64_t i = 3; t && i < t->size(); i += 101) {
      const double x = t->at(i);
      const double y = i % 7 == 0 ? std::nan("") : i % 5 == 0 ? x + 1e-7 : x * 1.5 + 0.25;
      store_element(t->bytes.data(), t->dtype, i, y);
    }
  return c;
}

void check_same(const Comparison& a, const Comparison& b) {
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const TensorComparison &x = a.tensors[i], &y = b.tensors[i];
    CHECK(x.tensor == y.tensor);
    CHECK(x.compared == y.compared);
    CHECK(x.mismatched == y.mismatched);
    CHECK(x.nan_actual == y.nan_actual);
    CHECK(x.max_abs_err == y.max_abs_err);
    CHECK(x.max_rel_err == y.max_rel_err);
    CHECK(x.max_err_over_bound == y.max_err_over_bound);
    CHECK(x.max_ulp == y.max_ulp);
    CHECK(x.zeros_err_over_bound == y.zeros_err_over_bound);
    CHECK(x.max_abs_index == y.max_abs_index);
    CHECK(x.max_rel_index == y.max_rel_index);
    REQUIRE(x.first.has_value() == y.first.has_value());
    if (x.first) CHECK(x.first->index == y.first->index);
    REQUIRE(x.worst.has_value() == y.worst.has_value());
    if (x.worst) CHECK(x.worst->index == y.worst->index);
    CHECK(x.wrong_rows.size() == y.wrong_rows.size());
    REQUIRE(x.picture.size() == y.picture.size());
    std::size_t different = 0;
    for (std::size_t t = 0; t < x.picture.size(); ++t)
      different += x.picture[t].max_err_over_bound != y.picture[t].max_err_over_bound ||
                   x.picture[t].mismatched != y.picture[t].mismatched ||
                   x.picture[t].compared != y.picture[t].compared;
    CHECK(different == 0);
  }
}

DumpOptions with(int deflate, bool reference) {
  DumpOptions options;
  options.force = true;
  options.deflate = deflate;
  options.with_reference = reference;
  return options;
}

[[maybe_unused]] std::int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  throw Error("/proc/self/status has no VmHWM");
}

// The peak of a child that compares two dumps with `queries` rows of S, of 8192 keys. Includes shared libraries.
[[maybe_unused]] std::int64_t peak_kib_of_comparison(const testing::TemporaryDirectory& directory,
                                                     std::int64_t queries) {
  const std::string a = directory / "a.h5", b = directory / "b.h5";
  const testing::ChildResult made = testing::in_child([&] {
    Problem p;
    p.seqlen_q = queries, p.seqlen_k = 8192, p.head_dim = p.head_dim_v = 1;
    Geometry g;
    g.tiles_per_split = num_kv_tiles(p, g);
    Capture c = testing::empty_capture(p, g);
    testing::put(c, Tensor::kS, DType::kFp32,
                 std::vector<double>(static_cast<std::size_t>(queries * p.seqlen_k), 1.25));
    write_dump(a, c, with(0, false));
    for (std::int64_t i = 0; i < c.tensors[0]->size(); i += 100)
      store_element(c.tensors[0]->bytes.data(), DType::kFp32, i, 2.5);
    write_dump(b, c, with(0, false));
    return std::string("made");
  });
  REQUIRE(made.output == "made");
  const testing::ChildResult compared = testing::in_child([&] {
    const Comparison c = compare_dumps(a, b, {false, 0, 0});
    if (c.tensors.at(0).mismatched != (queries * 8192 + 99) / 100) throw Error("wrong count");
    return std::to_string(peak_kib());
  });
  INFO(compared.output);
  REQUIRE(compared.output.find_first_not_of("0123456789") == std::string::npos);
  return std::stoll(compared.output);
}

}  // namespace

TEST_CASE("a dump agrees with itself") {
  const testing::TemporaryDirectory directory;
  write_dump(directory / "a.h5", recorded(), {});
  const Comparison c = compare_dumps(directory / "a.h5", directory / "a.h5", {false, 0, 0});
  CHECK(c.agrees());
  CHECK(c.tensors.size() == kNumTensors);
  CHECK(c.notes.empty());
}

TEST_CASE("dumps compare as the captures in them, however they are stored") {
  const testing::TemporaryDirectory directory;
  const Capture expected = recorded(), actual = disturbed(expected);
  const std::string a = directory / "a.h5", e = directory / "e.h5";
  for (const Tolerance tolerance : {Tolerance{false, 1e-6, 1e-5}, Tolerance{false, 0, 0}}) {
    const Comparison in_memory = compare_captures(actual, expected, tolerance);
    CHECK_FALSE(in_memory.agrees());
    for (const auto& [first, second] : {std::pair{0, 0}, std::pair{0, 3}, std::pair{3, 3}}) {
      write_dump(a, actual, with(first, false));
      write_dump(e, expected, with(second, false));
      check_same(compare_dumps(a, e, tolerance), in_memory);
    }
  }
}

TEST_CASE("bounds come from either file or are computed, and are the same") {
  const testing::TemporaryDirectory directory;
  const Capture expected = recorded(), actual = disturbed(expected);
  const Comparison in_memory = compare_captures(actual, expected, {});
  CHECK_FALSE(in_memory.agrees());
  for (const auto& [first, second] :
       {std::pair{false, false}, std::pair{false, true}, std::pair{true, false}}) {
    write_dump(directory / "a.h5", actual, with(0, first));
    write_dump(directory / "e.h5", expected, with(0, second));
    check_same(compare_dumps(directory / "a.h5", directory / "e.h5", {}), in_memory);
  }
}

TEST_CASE("a slab boundary inside a row changes nothing") {
  Problem p;
  p.seqlen_q = 3, p.seqlen_k = 300001, p.head_dim = p.head_dim_v = 1;
  Geometry g;
  g.tiles_per_split = num_kv_tiles(p, g);
  Capture a = testing::empty_capture(p, g);
  std::vector<double> values;
  for (std::int64_t i = 0; i < 3 * 300001; ++i) values.push_back(static_cast<double>(i % 1000));
  testing::put(a, Tensor::kS, DType::kFp32, values);
  Capture e = a;
  for (const std::int64_t i : {262143, 262144, 900002})
    store_element(a.tensors[0]->bytes.data(), DType::kFp32, i, -1);
  const testing::TemporaryDirectory directory;
  write_dump(directory / "a.h5", a, {});
  write_dump(directory / "e.h5", e, {});
  const Comparison c = compare_dumps(directory / "a.h5", directory / "e.h5", {false, 0.5, 0});
  CHECK(c.tensors.at(0).mismatched == 3);
  check_same(c, compare_captures(a, e, {false, 0.5, 0}));
}

TEST_CASE("a dataset that one file lacks is an error that names it, never agreement") {
  const testing::TemporaryDirectory directory;
  Capture a = recorded();
  write_dump(directory / "whole.h5", a, {});
  a.tensors[static_cast<std::size_t>(Tensor::kPartialO)].reset();
  write_dump(directory / "less.h5", a, {});
  const auto compare = [&](const char* x, const char* y) {
    compare_dumps(directory / x, directory / y, {false, 1, 1});
  };
  CHECK_THROWS_WITH(compare("whole.h5", "less.h5"),
                    contains("/stages/pv/partial_o") && contains("less.h5 has no"));
  CHECK_THROWS_WITH(compare("less.h5", "whole.h5"), contains("less.h5 has no"));
}

TEST_CASE("another shape, problem or cut into tiles is an error that names it") {
  const testing::TemporaryDirectory directory;
  const Capture a = recorded();
  write_dump(directory / "a.h5", a, {});
  Capture b = a;
  b.geometry.tile.block_n = 64;
  b.geometry.tiles_per_split = 2;
  b = testing::reference_capture(b.problem, b.geometry, 5, b.region);
  write_dump(directory / "tiles.h5", b, {});
  b = testing::reference_capture(a.problem, a.geometry, 5, Region{{0, 1, 5}, {2, 2, 61}});
  write_dump(directory / "region.h5", b, {});
  b = a;
  b.problem.softmax_scale *= 2;
  write_dump(directory / "scale.h5", b, {});
  const auto compare = [&](const char* other) {
    compare_dumps(directory / "a.h5", directory / other, {false, 1e9, 1e9});
  };
  CHECK_THROWS_WITH(compare("tiles.h5"), contains("block_n 32 and 64"));
  CHECK_THROWS_WITH(compare("region.h5"), contains("different regions"));
  CHECK_THROWS_WITH(compare("scale.h5"), contains("softmax_scale 1 and 2"));
  CHECK_THROWS_WITH(compare("none.h5"), contains("No such file"));
}

TEST_CASE("a dataset whose shape was changed in the file is an error that names it") {
  const testing::TemporaryDirectory directory;
  write_dump(directory / "a.h5", recorded(), {});
  write_dump(directory / "b.h5", recorded(), {});
  {
    const Hdf5Session session;
    const Hdf5Id file(H5Fopen((directory / "b.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    check(H5Ldelete(file, "/stages/reduce/lse", H5P_DEFAULT), "delete");
    const hsize_t shape[3] = {2, 2, 59};
    const Hdf5Id space(H5Screate_simple(3, shape, nullptr), H5Sclose);
    const Hdf5Id dataset(check(H5Dcreate2(file, "/stages/reduce/lse", H5T_IEEE_F32LE, space,
                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                               "create"),
                         H5Dclose);
  }
  CHECK_THROWS_WITH(compare_dumps(directory / "a.h5", directory / "b.h5", {false, 1, 1}),
                    contains("/stages/reduce/lse") && contains("[2, 2, 59]"));
}

TEST_CASE("different inputs are said") {
  const testing::TemporaryDirectory directory;
  Capture a = recorded();
  write_dump(directory / "a.h5", a, {});
  a.k.edit().back() ^= std::byte{1};
  write_dump(directory / "b.h5", a, {});
  const Comparison c = compare_dumps(directory / "a.h5", directory / "b.h5", {false, 0, 0});
  CHECK(c.agrees());
  REQUIRE(c.notes.size() == 1);
  CHECK_THAT(c.notes[0], contains("different inputs: k differ"));
}

TEST_CASE("memory stays flat: 128 MiB dumps need no more than 16 MiB and 4 a core") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("SKIP: under AddressSanitizer memory is not what it is otherwise");
#else
  // Each core has slabs of its own: with many of them these are as large as the dumps.
  const std::int64_t limit_kib = (16 + 4 * std::int64_t{std::thread::hardware_concurrency()}) << 10;
  if (limit_kib > 128 << 10) {
    WARN("SKIP: with so many cores, their slabs are as large as the dumps");
    return;
  }
  const testing::TemporaryDirectory directory;
  const std::int64_t small = peak_kib_of_comparison(directory, 16);
  const std::int64_t large = peak_kib_of_comparison(directory, 4096);
  INFO("peaks of " << small << " KiB and " << large << " KiB");
  REQUIRE(small > 0);
  CHECK(large - small < limit_kib);
#endif
}

}  // namespace attn_diag
