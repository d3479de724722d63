#include "harness/history/history.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "harness/testing/catch_for_tests.h"
#include "harness/testing/temporary_directory.h"

namespace attn_diag {
namespace {

using testing::TemporaryDirectory;
using Why = SameOutput::Why;

Capture capture(float o) {
  Capture c;
  c.provenance.kernel = "fa1";
  c.provenance.library = "/lib/fa1.host.so";
  c.provenance.backend = "host";
  c.provenance.build_id = "aa";
  c.provenance.created = "2026-11-20T10:00:00Z";
  c.provenance.sources = {{"/src/fa1.cu", 1, 1, true}, {"/src/mask.h", 2, 2, true}};
  for (const Tensor t : {Tensor::kO, Tensor::kLse}) {
    TensorData data;
    data.id = t;
    data.shape = {1, 1, 1, 1};
    data.bytes.resize(sizeof o);
    std::memcpy(data.bytes.data(), &o, sizeof o);
    c.tensors[static_cast<std::size_t>(t)] = data;
  }
  return c;
}

RecordedRun run(float o, const std::string& build_id = "aa", std::uint64_t source = 1) {
  Capture c = capture(o);
  c.provenance.build_id = build_id;
  c.provenance.sources[0].disk_hash = source;
  return record_of(c, "trace", "diverges");
}

}  // namespace

TEST_CASE("an edit that leaves the output as it was is found, with the file it is in") {
  const auto same = find_same_output({run(1)}, run(1, "aa", 7), true);
  REQUIRE(same.has_value());
  CHECK(same->before == "2026-11-20T10:00:00Z");
  CHECK(same->changed == std::vector<std::string>{"/src/fa1.cu"});
  CHECK(same->why() == Why::kNotRebuilt);
}

TEST_CASE("the build id tells a binary that was not rebuilt from an edit that is elsewhere") {
  CHECK(find_same_output({run(1)}, run(1, "bb", 7), false)->why() == Why::kEditIsElsewhere);
  CHECK(find_same_output({run(1)}, run(1, "bb", 7), true)->why() == Why::kRebuiltTooSoon);
  CHECK(find_same_output({run(1)}, run(1, "aa", 7), false)->why() == Why::kNotRebuilt);
  CHECK(find_same_output({run(1)}, run(1, "", 7), false)->why() == Why::kUnknown);
}

TEST_CASE("an output that changed, a case that was not run and unedited sources say nothing") {
  CHECK_FALSE(find_same_output({run(1)}, run(2, "aa", 7), true));
  CHECK_FALSE(find_same_output({}, run(1, "aa", 7), true));
  CHECK_FALSE(find_same_output({run(1)}, run(1), false));
  RecordedRun other = run(1);
  other.case_key += " x";
  CHECK_FALSE(find_same_output({other}, run(1, "aa", 7), true));
}

TEST_CASE("running again without another edit still compares with the run before the edit") {
  const std::vector<RecordedRun> past = {run(1), run(1, "aa", 7), run(1, "aa", 7)};
  CHECK(find_same_output(past, run(1, "aa", 7), true).has_value());
  // The newest run with other sources decides, not any that ever gave these bits.
  CHECK_FALSE(find_same_output({run(1), run(2, "aa", 7)}, run(1, "aa", 8), true));
}

TEST_CASE("problem, inputs and the way a case is run tell cases apart") {
  const std::string key = run(1).case_key;
  Capture c = capture(1);
  c.q.edit().resize(2);
  CHECK(record_of(c, "run", "").case_key != key);
  c = capture(1);
  c.problem.seqlen_k = 77;
  CHECK(record_of(c, "run", "").case_key != key);
  c = capture(1);
  c.provenance.schedule = "reverse";
  CHECK(record_of(c, "run", "").case_key != key);
  c = capture(1);
  c.region.origin[2] = 3;
  CHECK(record_of(c, "run", "").case_key != key);
}

TEST_CASE("what is not judged has the verdict of an earlier run with the same bits") {
  RecordedRun dump = run(1);
  dump.verdict = "";
  CHECK(known_verdict({run(1), dump}, dump) == "diverges");
  CHECK(known_verdict({run(2)}, dump).empty());
}

TEST_CASE("a history comes back from its file as it was written") {
  const TemporaryDirectory directory;
  const HistoryFile file(directory / ".attn-diag");
  CHECK(file.read().empty());
  REQUIRE(file.add({run(1)}));
  REQUIRE(file.add({run(2, "bb", 7)}));
  const std::vector<RecordedRun> runs = file.read();
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].build_id == "bb");
  CHECK(runs[1].output == run(2).output);
  CHECK(runs[1].case_key == run(2).case_key);
  CHECK(runs[1].verdict == "diverges");
  CHECK(runs[1].sources_hash() == run(2, "bb", 7).sources_hash());
  CHECK(runs[0].sources_hash() != runs[1].sources_hash());
}

TEST_CASE("a history keeps the newest runs only") {
  const TemporaryDirectory directory;
  const HistoryFile file(directory / ".attn-diag");
  std::vector<RecordedRun> many(HistoryFile::kMostRuns + 3, run(1));
  many.back().command = "newest";
  REQUIRE(file.add(many));
  CHECK(file.read().size() == HistoryFile::kMostRuns);
  REQUIRE(file.add({run(2)}));
  const std::vector<RecordedRun> runs = file.read();
  CHECK(runs.size() == HistoryFile::kMostRuns);
  CHECK(runs[runs.size() - 2].command == "newest");
}

TEST_CASE("damaged lines of a history are skipped") {
  const TemporaryDirectory directory;
  const HistoryFile file(directory / ".attn-diag");
  REQUIRE(file.add({run(1)}));
  std::ofstream(file.path(), std::ios::app) << "\n\0garbage {\n{\"time\": 3}\n{\"cut\": \"sho";
  CHECK(file.read().size() == 1);
  REQUIRE(file.add({run(2)}));
  CHECK(file.read().size() == 2);
}

TEST_CASE("a history that cannot be written is no error") {
  CHECK_FALSE(HistoryFile("/proc/none").add({run(1)}));
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory / ".attn-diag/history");
  CHECK(HistoryFile(directory / ".attn-diag").read().empty());
  CHECK_FALSE(HistoryFile(directory / ".attn-diag").add({run(1)}));
  CHECK(directory.files().size() == 1);
}

TEST_CASE("processes that write a history at the same time lose no run") {
  const TemporaryDirectory directory;
  const HistoryFile file(directory / ".attn-diag");
  constexpr int kProcesses = 4, kRuns = 10;
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    bool all = true;
    for (int j = 0; j < kRuns; ++j) all = file.add({run(1)}) && all;
    _exit(all ? 0 : 1);
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = 0;
    wait(&status);
    CHECK(status == 0);
  }
  CHECK(file.read().size() == kProcesses * kRuns);
}

}  // namespace attn_diag
