// ATTN_DIAG_FAULTS: the folder of the faults.
#include "tools/gpu_check/finding.h"

#include <algorithm>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag::gpu_check {
namespace {

StatedFinding of(const std::string& fault, const std::string& kernel) {
  return read_finding(std::string(ATTN_DIAG_FAULTS) + "/" + fault + "/finding.toml", kernel);
}

Json trace(const char* first, const char* geometry = "{}") {
  Json j;
  j["first_divergence"] = Json::parse(first);
  j["geometry"] = Json::parse(geometry);
  j["schedules"] = Json::object();
  return j;
}

TEST_CASE("the case becomes flags of attn-diag trace") {
  const StatedFinding finding = of("gqa-modulo", "fa1");
  const auto value_of = [&](const std::string& flag) {
    const auto at = std::find(finding.flags.begin(), finding.flags.end(), flag);
    return at == finding.flags.end() ? std::string() : *(at + 1);
  };
  CHECK(value_of("--heads") == "4");
  CHECK(value_of("--kv-heads") == "2");
  CHECK(value_of("--mask") == "causal:top_left");
  CHECK(value_of("--tile") == "64x64");
  CHECK(value_of("--seed") == "1");
  CHECK(value_of("--num-splits").empty());
  CHECK_FALSE(finding.race);
}

TEST_CASE("what is stated of one kernel goes before what is stated of all") {
  CHECK(of("reduce-counts-l-twice", "fa1").expected["query"] == 64);
  CHECK(of("reduce-counts-l-twice", "split_k").expected["query"] == 1);
  CHECK(of("reduce-counts-l-twice", "split_k").expected["stage"] == "reduce");
}

TEST_CASE("a finding that depends on the order of threads or copies is a race") {
  CHECK(of("missing-barrier", "fa1").race);
  CHECK(of("missing-syncwarp", "split_k").race);
  CHECK(of("wait-leaves-copies-in-flight", "fused_wmma").race);
  CHECK_FALSE(of("empty-split-not-stored", "split_k").race);
}

TEST_CASE("a trace is compared key by key") {
  const StatedFinding finding = of("gqa-modulo", "fa1");
  const char* right = R"({"stage": "qk", "tensor": "S", "batch": 0, "head": 1, "query": 0,
                          "query_tile": 0, "kv_tile": 0, "key": 0, "dim": null})";
  CHECK(difference(finding, trace(right)).empty());
  const std::string wrong =
      difference(finding, trace(R"({"stage": "qk", "tensor": "S", "batch": 0, "head": 2, "query": 0,
                         "query_tile": 0, "kv_tile": null, "key": 0})"));
  CHECK_THAT(wrong, contains("head 2 instead of 1"));
  CHECK_THAT(wrong, contains("kv_tile null instead of 0"));
  CHECK_THAT(difference(finding, trace("null")), contains("in no stage"));
}

TEST_CASE("the first query whose running max rises comes from the reference") {
  const StatedFinding finding = of("missing-rescale-o", "fa1");
  REQUIRE(finding.max_rises_in_kv_tile == 1);
  const char* geometry = R"({"tile": "64x64", "num_splits": 1, "kv_tiles_per_split": 2})";
  const std::string said =
      difference(finding, trace(R"({"stage": "reduce", "tensor": "running_o", "batch": 0, "head": 0,
                         "query": -1, "query_tile": 1, "kv_tile": 1})",
                                geometry));
  CHECK_THAT(said, contains("query -1 instead of "));  // and of nothing else
  const int query = std::stoi(said.substr(said.rfind(' ') + 1));
  CHECK(query >= 64);  // causal: queries of the first tile do not see the second
  CHECK(query < 128);
}

TEST_CASE("a finding that lacks a key, or is no TOML, is an error that names the file") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "finding.toml";
  const auto error_of = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      read_finding(path, "fa1");
      return "accepted";
    } catch (const Error& e) {
      return e.what();
    }
  };
  CHECK(error_of("[case]\nbatch = 1\n") == path + ": seqlen_q is missing");
  CHECK_THAT(error_of("[case\n"), contains(path + ", line 1"));
  CHECK(error_of("[case]\nbatch = \"one\"\n") == path + ": line 2: batch should be a whole number");
  const std::string sizes = "[case]\nseqlen_q = 1\nseqlen_k = 1\nhead_dim = 1\n";
  CHECK(error_of(sizes + "mask = \"causal\"\n") ==
        path +
            ": line 5: mask should be none, causal:top_left, causal:bottom_right or "
            "window:LEFT,RIGHT");
  // What is said of the kernel goes before what is said of all.
  CHECK_THAT(error_of(sizes + "[case.fa1]\nhead_dim = \"64\"\n"), contains("line 6: head_dim"));
}

}  // namespace
}  // namespace attn_diag::gpu_check
