#include "reference/testing/hand_case.h"

#include <cmath>
#include <fstream>
#include <random>
#include <stdexcept>

#include "attn_diag/reference/reference.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using testing::HandCase;

Tensors reference_of(const HandCase& c, DType type) {
  Problem problem = c.problem;
  problem.dtype = type;
  const auto q = HandCase::stored(c.q, type), k = HandCase::stored(c.k, type),
             v = HandCase::stored(c.v, type);
  Options options;
  options.threads = 1;
  return compute(problem, c.geometry, Arithmetic{}, {q.data(), k.data(), v.data()}, options);
}

void check_against(const HandCase& c, DType type) {
  const Tensors got = reference_of(c, type);
  for (const TensorInfo& t : kTensors) {
    const auto at = static_cast<std::size_t>(t.id);
    REQUIRE(got.value[at].size() == c.expected[at].size());
    for (std::size_t i = 0; i < got.value[at].size(); ++i) {
      const double value = got.value[at][i], expected = c.expected[at][i];
      INFO(c.name << ", " << t.name << "[" << i << "]: reference " << value << ", by hand "
                  << expected);
      CHECK(
          (value == expected || std::fabs(value - expected) <= 4e-15 * (1 + std::fabs(expected))));
    }
  }
}

TEST_CASE("the reference equals every hand-computed case") {
  const auto cases = testing::load_hand_cases();
  CHECK(cases.size() >= 14);
  for (const HandCase& c : cases) check_against(c, DType::kFp64);
}

TEST_CASE("the reference equals the hand-computed cases in every dtype that holds their inputs") {
  int exact = 0;
  for (const HandCase& c : testing::load_hand_cases())
    for (const DType type : {DType::kFp16, DType::kBf16, DType::kFp32})
      if (c.exact_in(type)) {
        ++exact;
        check_against(c, type);
      }
  CHECK(exact >= 30);
}

TEST_CASE("a hand-computed case with a slip in it is refused, with the file and the slip") {
  const auto path =
      std::filesystem::temp_directory_path() /
      ("attn_diag_hand_case_test." + std::to_string(std::random_device()()) + ".toml");
  const auto error_of = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      testing::load_hand_case(path);
      return "accepted";
    } catch (const std::runtime_error& e) {
      return e.what();
    }
  };
  const std::string problem =
      "[problem]\nseqlen_q = 1\nseqlen_k = 1\nhead_dim = 1\nhead_dim_v = 1\n"
      "[geometry]\nblock_m = 1\nblock_n = 1\n";
  const std::string inputs = problem + "[inputs]\nq = [1]\nk = [1]\nv = [1]\n";
  CHECK(error_of("[problem").find(".toml, line 1") != std::string::npos);
  CHECK(error_of(problem).find("section [inputs] is missing") != std::string::npos);
  CHECK(error_of(problem + "[inputs]\nq = [1, 2]\n").find("q: expected 1 numbers, found 2") !=
        std::string::npos);
  CHECK(error_of(problem + "tile = 3\n").find("unknown key 'tile'") != std::string::npos);
  CHECK(error_of(inputs + "[expected]\nS = ['exp']\n").find("S: expression 'exp'") !=
        std::string::npos);
  CHECK(error_of(inputs + "[expected]\nS = [1]\n").find("m is missing") != std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace attn_diag::reference
