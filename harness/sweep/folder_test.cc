#include "harness/sweep/folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::sweep {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "sweep_test.XXXXXX").string();
    x_path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(x_path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return x_path; }

 private:
  std::string x_path;
};

Plan some_plan() {
  Plan plan;
  plan.flags = {{"--kernel", "fa1"}, {"--seqlen", "64:4096:*2"}};
  plan.cases = 7;
  plan.shards = 2;
  plan.version = "1";
  plan.kernels = {{"fa1", "host", "", "abc"}};
  return plan;
}

Json line(std::int64_t number, const char* verdict = "agrees") {
  return {{"case", number}, {"verdict", verdict}};
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST_CASE("the first process writes the plan, the others find the same") {
  const Folder folder;
  const std::string inner = folder.path() + "/a/b";
  Plan plan = some_plan();
  CHECK(agree_on_plan(inner, plan).key() == plan.key());
  plan.shards = 5;
  const Plan there = agree_on_plan(inner, plan);
  CHECK(there.shards == 2);
  CHECK(there.key() == plan.key());
  CHECK(there.kernels == plan.kernels);
  CHECK(there.flags == plan.flags);
}

TEST_CASE("results of another sweep or of another build are not mixed with these") {
  const Folder folder;
  agree_on_plan(folder.path(), some_plan());
  Plan other = some_plan();
  other.flags["--seqlen"] = "64";
  CHECK_THROWS_WITH(agree_on_plan(folder.path(), other),
                    contains("--seqlen was 64:4096:*2 there and is 64 here"));
  other = some_plan();
  other.kernels[0].build_id = "def";
  CHECK_THROWS_WITH(agree_on_plan(folder.path(), other), contains("built anew"));
  other = some_plan();
  other.random = 5;
  CHECK_THROWS_WITH(agree_on_plan(folder.path(), other), contains("--random"));
  std::ofstream(folder.path() + "/sweep.json") << "{\"schema\": 3}";
  CHECK_THROWS_WITH(agree_on_plan(folder.path(), some_plan()), contains("schema"));
}

TEST_CASE("what was written is there again, but for half a line") {
  const Folder folder;
  const Plan plan = some_plan();
  std::string path;
  {
    ShardFile file(folder.path(), {0, 2}, plan);
    CHECK(file.before().empty());
    file.append({line(0), line(3)});
    path = file.path();
  }
  put(path, R"({"case": 5, "verd)");
  {
    ShardFile file(folder.path(), {0, 2}, plan);
    CHECK(file.dropped_a_line());
    REQUIRE(file.before().size() == 2);
    CHECK(file.before()[1]["case"] == 3);
    file.append({line(5)});
  }
  const Results results = read_results(folder.path(), plan);
  CHECK(results.cases.size() == 3);
  CHECK(results.cases.contains(5));
  CHECK(results.repeated == 0);
  CHECK(results.torn.empty());
}

TEST_CASE("half a header is written again") {
  const Folder folder;
  const std::string path = folder.path() + "/" + shard_file_name({0, 2});
  put(path, R"({"sweep")");
  { ShardFile(folder.path(), {0, 2}, some_plan()).append({line(1)}); }
  CHECK(read_results(folder.path(), some_plan()).cases.size() == 1);
}

TEST_CASE("one process at a time has a shard") {
  const Folder folder;
  const ShardFile held(folder.path(), {0, 2}, some_plan());
  CHECK_THROWS_WITH(ShardFile(folder.path(), {0, 2}, some_plan()), contains("running already"));
  CHECK_NOTHROW(ShardFile(folder.path(), {1, 2}, some_plan()));
}

TEST_CASE("a case that was run twice counts once, and is named where the two disagree") {
  const Folder folder;
  const Plan plan = some_plan();
  { ShardFile(folder.path(), {0, 2}, plan).append({line(0), line(1)}); }
  { ShardFile(folder.path(), {0, 3}, plan).append({line(0), line(1, "diverges"), line(2)}); }
  const Results results = read_results(folder.path(), plan);
  CHECK(results.cases.size() == 3);
  CHECK(results.repeated == 2);
  CHECK(results.contradicted == std::vector<std::int64_t>{1});
}

TEST_CASE("damaged files and those of other sweeps are named, not read") {
  const Folder folder;
  const Plan plan = some_plan();
  std::string path;
  {
    ShardFile file(folder.path(), {0, 2}, plan);
    path = file.path();
  }
  SECTION("half a line in the middle") {
    put(path, "{\"case\": 1, \"ver\n{\"case\": 2, \"verdict\": \"agrees\"}\n");
    CHECK_THROWS_WITH(read_results(folder.path(), plan), contains(".jsonl:2 "));
  }
  SECTION("a case that the sweep does not have") {
    put(path, "{\"case\": 7, \"verdict\": \"agrees\"}\n");
    CHECK_THROWS_WITH(read_results(folder.path(), plan), contains("without a case"));
  }
  SECTION("a file of another plan") {
    Plan other = plan;
    other.flags["--heads"] = "3";
    CHECK_THROWS_WITH(read_results(folder.path(), other), contains("another sweep"));
    CHECK_THROWS_WITH(ShardFile(folder.path(), {0, 2}, other), contains("another sweep"));
  }
}

// kill -9 anywhere: between lines, within them, within the header.
TEST_CASE("a process that is killed while it writes loses no line that it has finished") {
  const Folder folder;
  Plan plan = some_plan();
  plan.cases = 1'000'000;
  const int round = GENERATE(range(0, 8));
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ShardFile file(folder.path(), {0, 1}, plan);
    for (std::int64_t i = 0;; ++i) {
      file.append({line(i)});
      if (::write(pipe[1], &i, sizeof i) != sizeof i) ::_exit(1);
    }
  }
  std::int64_t finished = -1;
  for (int i = 0; i <= round; ++i)
    REQUIRE(::read(pipe[0], &finished, sizeof finished) == sizeof finished);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[1]);
  while (::read(pipe[0], &finished, sizeof finished) == sizeof finished) {
  }
  ::close(pipe[0]);
  const ShardFile again(folder.path(), {0, 1}, plan);
  REQUIRE(std::ssize(again.before()) >= finished + 1);
  for (std::size_t i = 0; i < again.before().size(); ++i)
    CHECK(again.before()[i]["case"] == static_cast<std::int64_t>(i));
}

}  // namespace
}  // namespace attn_diag::sweep
