#include "harness/sweep/shard.h"

#include <map>

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::sweep {
namespace {

using Variables = std::map<std::string, std::string>;

ShardChoice chosen(const Variables& variables, std::optional<std::int64_t> told = std::nullopt) {
  return shard_of_environment(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      told);
}

Variables array(const char* task, const char* low, const char* high, const char* count,
                const char* step = "1") {
  return {{"SLURM_ARRAY_TASK_ID", task},
          {"SLURM_ARRAY_TASK_MIN", low},
          {"SLURM_ARRAY_TASK_MAX", high},
          {"SLURM_ARRAY_TASK_COUNT", count},
          {"SLURM_ARRAY_TASK_STEP", step}};
}

TEST_CASE("alone where nothing says otherwise") {
  const ShardChoice none = chosen({});
  CHECK(none.shard.alone());
  CHECK(none.from.empty());
  CHECK(chosen({{"PARALLEL_SEQ", "3"}}).shard.alone());
  // The script of a job is not one of its tasks.
  CHECK(chosen({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).shard.alone());
  CHECK(chosen({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).from.empty());
}

TEST_CASE("each engine says which shard this is") {
  const auto [variables, told, name] = GENERATE(table<Variables, int, std::string>({
      {array("3", "1", "8", "8"), 0, "3/8"},
      {array("0", "0", "7", "8"), 0, "1/8"},
      {array("5", "1", "15", "8", "2"), 0, "3/8"},
      {{{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}, 0, "3/4"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 0, "1/4"},
      {{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}, 0, "4/4"},
      {{{"JOB_COMPLETION_INDEX", "9"}}, 10, "10/10"},
      {{{"PARALLEL_SEQ", "1"}}, 5, "1/5"},
  }));
  const ShardChoice choice =
      chosen(variables, told > 0 ? std::optional<std::int64_t>(told) : std::nullopt);
  CHECK(text(choice.shard) == name);
  CHECK(variables.contains(choice.from));
}

TEST_CASE("ranks within the tasks of an array are shards of shards") {
  std::vector<int> times(6, 0);
  for (const char* task : {"0", "1"})
    for (const char* rank : {"0", "1", "2"}) {
      Variables variables = array(task, "0", "1", "2");
      variables["OMPI_COMM_WORLD_RANK"] = rank;
      variables["OMPI_COMM_WORLD_SIZE"] = "3";
      variables["SLURM_PROCID"] = "0";  // of the daemon that started the ranks
      variables["SLURM_STEP_NUM_TASKS"] = "1";
      const ShardChoice choice = chosen(variables);
      REQUIRE(choice.shard.count == 6);
      CHECK(choice.from == "SLURM_ARRAY_TASK_ID and OMPI_COMM_WORLD_RANK");
      ++times[static_cast<std::size_t>(choice.shard.index)];
    }
  CHECK(times == std::vector<int>(6, 1));
}

TEST_CASE("what cannot be told is refused, and never guessed") {
  CHECK_THROWS_WITH(chosen({{"JOB_COMPLETION_INDEX", "3"}}), contains("--shards N"));
  CHECK_THROWS_WITH(chosen({{"JOB_COMPLETION_INDEX", "3"}}, 3), contains("4 of 3"));
  // Tasks 3 and 17 of an array that are submitted again.
  CHECK_THROWS_WITH(chosen(array("3", "3", "17", "2")), contains("part of a larger one"));
  CHECK_THROWS_AS(chosen(array("7", "7", "7", "1")), Error);
  CHECK_THROWS_AS(chosen(array("1", "1", "17", "2")), Error);
  CHECK_THROWS_WITH(chosen({}, 4), contains("--shard I/4"));
  CHECK_THROWS_WITH(chosen(array("1", "1", "8", "8"), 4), contains("makes 8"));
  CHECK_THROWS_WITH(chosen({{"PMI_RANK", "x"}, {"PMI_SIZE", "4"}}), contains("PMI_RANK"));
}

TEST_CASE("shards are named from 1") {
  CHECK(parse_shard("3/8").index == 2);
  CHECK(parse_shard("3/8").count == 8);
  CHECK(text(parse_shard("1/1")) == "1/1");
  for (const char* wrong : {"", "3", "0/8", "9/8", "-1/8", "3/0", "3/8/2", "a/b", "3/", "/8"})
    CHECK_THROWS_AS(parse_shard(wrong), Error);
}

}  // namespace
}  // namespace attn_diag::sweep
