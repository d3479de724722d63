#include "tools/gpu_check/fidelity.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::gpu_check {
namespace {

using Kind = BackendVerdict::Kind;

std::string diverging(const std::string& tensor) {
  return R"({"stages": [{"tensors": [{"name": "lse", "verdict": "agrees"}, {"name": ")" + tensor +
         R"(", "verdict": "diverges"}]}]})";
}

}  // namespace

TEST_CASE("a run's verdict is read from its exit code and report") {
  CHECK(read_run(0, false, "{}", "").kind == Kind::kAgrees);
  const BackendVerdict o = read_run(1, false, diverging("o"), "");
  CHECK(o.kind == Kind::kDiverges);
  CHECK(o.tensors == std::vector<std::string>{"o"});
  CHECK(in_words(o) == "diverges in o");
  CHECK(read_run(2, false, "", "misaligned address\nmore").message == "misaligned address");
  CHECK(read_run(1, false, "no json", "").kind == Kind::kDidNotComplete);
  CHECK(read_run(-1, true, "", "").kind == Kind::kHangs);
}

TEST_CASE("host and GPU say the same only where kind and tensors are the same") {
  const BackendVerdict agrees = read_run(0, false, "{}", "");
  const BackendVerdict o = read_run(1, false, diverging("o"), "");
  const BackendVerdict m = read_run(1, false, diverging("m"), "");
  const BackendVerdict failed = read_run(2, false, "", "a"), other = read_run(2, false, "", "b");
  const BackendVerdict hang = read_run(-1, true, "", "");
  CHECK(same_verdict(agrees, agrees));
  CHECK(same_verdict(o, o));
  CHECK(same_verdict(failed, other));
  CHECK(same_verdict(failed, hang));
  CHECK_FALSE(same_verdict(agrees, o));
  CHECK_FALSE(same_verdict(o, m));
  CHECK_FALSE(same_verdict(agrees, failed));
  CHECK_FALSE(same_verdict(hang, o));
}

TEST_CASE("a kernel with nothing wrong must agree on both, not only fail on both alike") {
  const BackendVerdict agrees = read_run(0, false, "{}", "");
  const BackendVerdict refused = read_run(2, false, "", "layout BHSD is not declared");
  const BackendVerdict o = read_run(1, false, diverging("o"), "");
  CHECK(as_expected(agrees, agrees, false));
  CHECK_FALSE(as_expected(refused, refused, false));
  CHECK_FALSE(as_expected(o, o, false));
  CHECK(as_expected(refused, refused, true));
  CHECK(as_expected(o, o, true));
  CHECK_FALSE(as_expected(agrees, o, true));
}

TEST_CASE("only what check finds beyond equal stores is a reason to differ") {
  const std::string latent =
      R"({"findings": [{"severity": "latent", "kind": "race", "message": "two lanes"}]})";
  CHECK(reason_of(1, latent) == "check: latent race: two lanes");
  CHECK(reason_of(0, latent).empty());
  CHECK(reason_of(1, R"({"findings": [{"severity": "benign"}]})").empty());
  CHECK(reason_of(2, "").empty());
}

}  // namespace attn_diag::gpu_check
