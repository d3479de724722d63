// Files that numpy, h5py and safetensors write, read into a case.
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/files.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

constexpr int kBatch = 2, kHeads = 2, kKvHeads = 1, kQueries = 3, kKeys = 4, kDims = 5;

// The files of testing/write_files.py, written once; empty where there is no Python with h5py.
const std::string& folder() {
  static const testing::TemporaryDirectory directory;
  static const std::string path = [] {
    for (const std::string python : {"/usr/bin/python3", "python3"}) {
      const std::string command =
          python + " " ATTN_DIAG_SOURCE_DIR "/harness/files/testing/write_files.py " +
          directory.path().string() + " 2>/dev/null";
      if (std::system(command.c_str()) == 0) return directory.path().string() + "/";
    }
    return std::string();
  }();
  return path;
}

#define NEEDS_FILES()                                                                      \
  if (folder().empty()) {                                                                  \
    WARN("SKIP: no python3 with numpy and h5py (apt install python3-numpy python3-h5py)"); \
    return;                                                                                \
  }

ForeignCase read(const std::string& name, const ForeignHints& hints = {}) {
  return read_foreign({folder() + name}, hints);
}

double element(int role, int b, int h, int s, int d) {
  return (160 * role + 80 * b + 40 * h + 10 * s + d) / 16.0;
}

double rounded(double x, DType dtype) {
  std::array<std::byte, 8> one{};
  store_element(one.data(), dtype, 0, x);
  return load_element(one.data(), dtype, 0);
}

// Every element of q, k, v and o is where it belongs. `batch` and `head`: what the file's first are.
void check_values(const ForeignCase& c, int batch = 0, int head = 0) {
  const Capture& x = c.capture;
  const Problem& p = x.problem;
  const auto check = [&](const std::vector<std::byte>& bytes, int role, int heads, int length) {
    REQUIRE(bytes.size() ==
            static_cast<std::size_t>(p.batch * heads * length * p.head_dim) * size_of(p.dtype));
    const Strides at = dense_strides(p.layout, heads, length, p.head_dim);
    for (int b = 0; b < p.batch; ++b)
      for (int h = 0; h < heads; ++h)
        for (int s = 0; s < length; ++s)
          for (int d = 0; d < p.head_dim; ++d)
            REQUIRE(
                load_element(bytes.data(), p.dtype, b * at.batch + h * at.head + s * at.seq + d) ==
                rounded(element(role, batch + b, head + h, s, d), p.dtype));
  };
  check(x.q, 0, p.heads, p.seqlen_q);
  check(x.k, 1, p.kv_heads, p.seqlen_k);
  check(x.v, 2, p.kv_heads, p.seqlen_k);
  REQUIRE(x.has(Tensor::kO));
  const TensorData& o = x[Tensor::kO];
  REQUIRE(o.shape == tensor_shape(Tensor::kO, p, x.geometry));
  std::int64_t i = 0;
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h)
      for (int s = 0; s < p.seqlen_q; ++s)
        for (int d = 0; d < p.head_dim_v; ++d)
          REQUIRE(o.at(i++) == rounded(element(3, batch + b, head + h, s, d), o.dtype));
}

void check_sizes(const Problem& p) {
  CHECK(p.batch == kBatch);
  CHECK(p.heads == kHeads);
  CHECK(p.kv_heads == kKvHeads);
  CHECK(p.seqlen_q == kQueries);
  CHECK(p.seqlen_k == kKeys);
  CHECK(p.head_dim == kDims);
  CHECK(p.head_dim_v == kDims);
}

bool says(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines)
    if (line.find(text) != std::string::npos) return true;
  return false;
}

ForeignHints source(ForeignRole role, const std::string& text) {
  ForeignHints hints;
  hints.source[static_cast<std::size_t>(role)] = text;
  return hints;
}

}  // namespace

TEST_CASE("a stored .npz is read, and what it does not say is assumed aloud") {
  NEEDS_FILES();
  const ForeignCase c = read("stored.npz");
  check_sizes(c.capture.problem);
  check_values(c);
  CHECK(c.capture.problem.dtype == DType::kFp16);
  CHECK(c.capture.problem.layout == Layout::kBHSD);
  CHECK(c.capture.problem.softmax_scale == static_cast<float>(1.0 / std::sqrt(5.0)));
  CHECK(c.capture.arithmetic.output == DType::kFp16);
  CHECK_FALSE(c.geometry_known);
  CHECK_FALSE(c.arithmetic_known);
  CHECK_FALSE(c.capture.has(Tensor::kLse));
  CHECK(says(c.assumed, "layout BHSD"));
  CHECK(says(c.assumed, "softmax_scale 0.4472136 (1/sqrt(head_dim))"));
  CHECK(says(c.assumed, "mask none"));
  CHECK(says(c.found, "q: q of " + folder() + "stored.npz, float16 [2, 2, 3, 5]"));
}

TEST_CASE("a deflated .npz with other names has its scale, mask, softcap and lse read") {
  NEEDS_FILES();
  const ForeignCase c = read("deflated.npz");
  check_values(c);
  const Problem& p = c.capture.problem;
  CHECK(p.softmax_scale == 0.25f);
  CHECK(p.mask.kind == MaskKind::kCausal);
  CHECK(p.mask.alignment == CausalAlignment::kBottomRight);
  CHECK(c.extras.softcap == 30.0);
  CHECK_FALSE(says(c.assumed, "scale"));
  CHECK_FALSE(says(c.assumed, "mask"));
  REQUIRE(c.capture.has(Tensor::kLse));
  CHECK(c.capture[Tensor::kLse].at((1 * kHeads + 1) * kQueries + 2) == 140 / 16.0);
}

TEST_CASE("the layout is found by what fits, and is the user's word before that") {
  NEEDS_FILES();
  // k has 1 head and 4 keys: as BHSD there would be 4 heads of k for 3 of q.
  const ForeignCase c = read("bshd.npz");
  CHECK(c.capture.problem.layout == Layout::kBSHD);
  CHECK(says(c.assumed, "layout BSHD, the only one that fits"));
  check_sizes(c.capture.problem);
  check_values(c);
  ForeignHints hints;
  hints.layout = Layout::kBHSD;
  CHECK_THROWS_WITH(read("bshd.npz", hints),
                    contains("do not fit together as BHSD") && contains("Is --layout right?"));
}

TEST_CASE("fp64 that fp32 holds is taken as fp32, and as what the user says the kernel got") {
  NEEDS_FILES();
  const ForeignCase c = read("wide.npz");
  CHECK(c.capture.problem.dtype == DType::kFp32);
  CHECK(says(c.assumed, "say --dtype fp16"));
  CHECK(c.capture[Tensor::kO].dtype == DType::kFp32);
  CHECK(c.capture.arithmetic.output == DType::kFp16);
  CHECK(says(c.assumed, "o rounded to fp16"));
  check_values(c);
  ForeignHints hints;
  hints.dtype = DType::kFp16;
  CHECK(read("wide.npz", hints).capture.problem.dtype == DType::kFp16);
  check_values(read("wide.npz", hints));
  hints.dtype = DType::kBf16;
  CHECK_THROWS_WITH(read("wide.npz", hints), contains("numbers that bf16 cannot hold"));
}

TEST_CASE("16 bits without a type are bf16 if the user says so, and refused otherwise") {
  NEEDS_FILES();
  CHECK_THROWS_WITH(read("bits.npz"), contains("uint16") && contains("say --dtype bf16"));
  ForeignHints hints;
  hints.dtype = DType::kBf16;
  const ForeignCase c = read("bits.npz", hints);
  CHECK(c.capture.problem.dtype == DType::kBf16);
  check_values(c);
}

TEST_CASE("arrays without batch, and without heads, are one batch entry, and one head") {
  NEEDS_FILES();
  const ForeignCase no_batch = read("no_batch.npz");
  CHECK(no_batch.capture.problem.batch == 1);
  CHECK(no_batch.capture.problem.heads == kHeads);
  check_values(no_batch, 1);
  CHECK(no_batch.capture[Tensor::kLse].at(1 * kQueries + 2) == 140 / 16.0);
  const ForeignCase no_heads = read("no_heads.npz");
  CHECK(no_heads.capture.problem.heads == 1);
  check_values(no_heads, 1);
  CHECK(no_heads.capture[Tensor::kLse].at(2) == 100 / 16.0);
  REQUIRE(no_heads.extras.bias.size() == kQueries * kKeys);
  CHECK(no_heads.extras.bias[7] == 7.0f);
  CHECK(no_heads.extras.bias_heads == 1);
}

TEST_CASE("a folder of .npy files, or files named one by one, make one case") {
  NEEDS_FILES();
  check_values(read("folder"));
  ForeignHints hints;
  const char* roles[] = {"q", "k", "v", "o"};
  for (std::size_t i = 0; i < 4; ++i)
    hints.source[i] = folder() + "folder/run7_" + roles[i] + ".npy";
  check_values(read_foreign({}, hints));
  std::swap(hints.source[1], hints.source[2]);
  CHECK(read_foreign({}, hints).capture.k == read("folder").capture.v);
}

TEST_CASE("a case that is written is read again as it was, without hints") {
  NEEDS_FILES();
  const testing::TemporaryDirectory directory;
  for (const char* file : {"stored.npz", "deflated.npz", "bshd.npz", "wide.npz", "no_heads.npz"}) {
    CAPTURE(file);
    const ForeignCase c = read(file);
    const std::string path = (directory.path() / file).string() + ".safetensors";
    write_foreign(path, c, false);
    const ForeignCase again = read_foreign({path}, {});
    check_values(again, c.capture.problem.batch == 1 ? 1 : 0);
    CHECK(again.capture.problem.layout == c.capture.problem.layout);
    CHECK(again.capture.problem.dtype == c.capture.problem.dtype);
    CHECK(again.capture.problem.softmax_scale == c.capture.problem.softmax_scale);
    CHECK(again.capture.problem.mask.kind == c.capture.problem.mask.kind);
    CHECK(again.capture.problem.mask.alignment == c.capture.problem.mask.alignment);
    CHECK(again.capture.arithmetic.output == c.capture.arithmetic.output);
    CHECK(again.extras.softcap == c.extras.softcap);
    CHECK(again.extras.bias == c.extras.bias);
    REQUIRE(again.capture.has(Tensor::kLse) == c.capture.has(Tensor::kLse));
    if (c.capture.has(Tensor::kLse))
      CHECK(again.capture[Tensor::kLse].bytes == c.capture[Tensor::kLse].bytes);
    CHECK_FALSE(says(again.assumed, "mask"));
    CHECK_THROWS_WITH(write_foreign(path, c, false), contains("exists"));
    CHECK_NOTHROW(write_foreign(path, c, true));
  }
}

TEST_CASE("arrays in memory are read in any strides") {
  std::vector<float> numbers(2 * 3 * 4 * 5);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const ForeignArray q{ForeignRole::kQ, DType::kFp32, {2, 3, 4, 5}, {}, numbers.data()};
  const auto as = [&](ForeignRole role, std::vector<std::int64_t> strides) {
    return ForeignArray{role, DType::kFp32, {2, 3, 4, 5}, std::move(strides), numbers.data()};
  };
  // k: the last two axes were [5, 4]. v: the batch entries backwards.
  ForeignArray v = as(ForeignRole::kV, {-60, 20, 5, 1});
  v.data = numbers.data() + 60;
  const ForeignCase c =
      take_foreign({q, as(ForeignRole::kK, {60, 20, 1, 4}), v, as(ForeignRole::kO, {})}, {});
  const auto value = [&](const std::vector<std::byte>& bytes, int b, int h, int s, int d) {
    return load_element(bytes.data(), c.capture.problem.dtype, ((b * 3 + h) * 4 + s) * 5 + d);
  };
  for (int b = 0; b < 2; ++b)
    for (int s = 0; s < 4; ++s)
      for (int d = 0; d < 5; ++d) {
        CHECK(value(c.capture.q, b, 1, s, d) == 60 * b + 20 + 5 * s + d);
        CHECK(value(c.capture.k, b, 1, s, d) == 60 * b + 20 + s + 4 * d);
        CHECK(value(c.capture.v, b, 1, s, d) == 60 * (1 - b) + 20 + 5 * s + d);
      }
  CHECK_THROWS_WITH(take_foreign({q}, {}), contains("k was not given"));
}

TEST_CASE("HDF5 of any group and byte order is read, with its attributes") {
  NEEDS_FILES();
  const ForeignCase c = read("groups.h5");
  check_sizes(c.capture.problem);
  check_values(c);
  CHECK(c.capture.problem.layout == Layout::kBSHD);
  CHECK(c.capture.problem.softmax_scale == 0.5f);
  CHECK(c.capture.problem.mask.kind == MaskKind::kNone);
  CHECK_FALSE(says(c.assumed, "mask"));
  CHECK_FALSE(says(c.assumed, "layout"));
}

TEST_CASE("several arrays of one name are listed, and the user's choice is taken") {
  NEEDS_FILES();
  CHECK_THROWS_WITH(read("two.h5"), contains("2 arrays could be q: layer0/q of") &&
                                        contains("layer1/q") && contains("--q NAME"));
  ForeignHints hints;
  hints.source = {"layer0/q", "/layer0/k", folder() + "two.h5:layer0/v", "layer0/o", "", ""};
  check_values(read("two.h5", hints));
  hints.source[3] = "layer1/o";
  CHECK(read("two.h5", hints).capture[Tensor::kO].at(0) == element(3, 0, 0, 0, 0) + 1.0);
}

TEST_CASE("safetensors with bf16, names of a model and metadata are read") {
  NEEDS_FILES();
  const ForeignCase c = read("bf16.safetensors");
  CHECK(c.capture.problem.dtype == DType::kBf16);
  CHECK(c.capture.problem.softmax_scale == 0.125f);
  CHECK(c.capture[Tensor::kO].dtype == DType::kFp32);
  CHECK_FALSE(says(c.assumed, "mask"));
  check_values(c);
}

TEST_CASE("what cannot be read says what was expected, what was found and what to do") {
  NEEDS_FILES();
  CHECK_THROWS_WITH(read("no_v.npz"), contains("No array is v. Expected one named v, value") &&
                                          contains("k of") && contains("--v NAME"));
  CHECK_THROWS_WITH(read("short_v.npz"), contains("k has 4 keys, v has 3"));
  CHECK_THROWS_WITH(read("fortran.npz"),
                    contains("Fortran order") && contains("ascontiguousarray"));
  CHECK_THROWS_WITH(read("big.npz"), contains("big-endian") && contains("newbyteorder"));
  CHECK_THROWS_WITH(read("integers.npz"), contains("int32") && contains("expected fp16"));
  CHECK_THROWS_WITH(read("causal.npz"),
                    contains("3 queries and 4 keys") && contains("--mask causal:bottom_right"));
  CHECK_THROWS_WITH(read("nothing.npz"), contains("could not be opened"));
  CHECK_THROWS_WITH(read_foreign({}, {}), contains("No file was named"));
  CHECK_THROWS_WITH(read("stored.npz", source(ForeignRole::kQ, "queery")),
                    contains("--q names queery") && contains("They have: q of"));
  ForeignHints hints;
  hints.mask = "diagonal";
  CHECK_THROWS_WITH(read("stored.npz", hints), contains("mask is 'diagonal'"));
  std::ofstream(folder() + "x.pt") << "\x80\x02}q";
  CHECK_THROWS_WITH(read("x.pt"), contains("pickle") && contains("safetensors"));
  std::ofstream(folder() + "x.txt") << "q = [1, 2, 3]";
  CHECK_THROWS_WITH(read("x.txt"), contains("of no format that can be read"));
  // Objects are no arrays of a case; they do no harm until they are asked for.
  check_values(read("objects.npz"));
}

TEST_CASE("a file that ends anywhere before its end is refused, never misread") {
  NEEDS_FILES();
  for (const std::string name :
       {"stored.npz", "deflated.npz", "groups.h5", "bf16.safetensors", "folder/run7_q.npy"}) {
    const std::string whole = folder() + name;
    const auto size = std::filesystem::file_size(whole);
    const bool single = name.ends_with(".npy");
    const std::string cut = folder() + (single ? "folder/run7_q.npy" : "cut_" + name);
    const std::string kept = folder() + "kept";
    std::filesystem::copy_file(whole, kept, std::filesystem::copy_options::overwrite_existing);
    for (std::uintmax_t length = 0; length < size; length += length < 400 ? 1 : 61) {
      std::filesystem::copy_file(kept, cut, std::filesystem::copy_options::overwrite_existing);
      std::filesystem::resize_file(cut, length);
      INFO(name << " cut to " << length << " of " << size << " bytes");
      CHECK_THROWS_AS(single ? read("folder") : read("cut_" + name), Error);
    }
    std::filesystem::copy_file(kept, cut, std::filesystem::copy_options::overwrite_existing);
  }
  check_values(read("folder"));
}

TEST_CASE("a header with any one byte changed is read or refused, nothing else") {
  NEEDS_FILES();
  int refused = 0, read_whole = 0;
  for (const std::string name : {"stored.npz", "bf16.safetensors"}) {
    std::ifstream in(folder() + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    for (std::size_t i = 0; i < 300; ++i) {
      for (const char flip : {'\x01', '\x10', '\x7f'}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ flip);
        const std::string path = "changed_" + name;
        std::ofstream(folder() + path, std::ios::binary) << changed;
        try {
          read(path);
          ++read_whole;
        } catch (const Error&) {
          ++refused;
        }
      }
    }
  }
  CHECK(refused > 300);
  CHECK(read_whole > 0);
}

TEST_CASE("a dump of attn-diag is read whole, with everything known") {
  const testing::TemporaryDirectory directory;
  const Capture written = testing::reference_capture({}, {}, 1);
  write_dump(directory / "x.h5", written, {});
  const ForeignCase c = read_foreign({directory / "x.h5"}, {});
  CHECK(c.geometry_known);
  CHECK(c.arithmetic_known);
  CHECK(c.assumed.empty());
  CHECK(c.capture.q == written.q);
}

}  // namespace attn_diag
