#include "harness/sweep/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "attn_diag/harness/error.h"

namespace attn_diag::sweep {
namespace {

constexpr std::int64_t kMostShards = 1'000'000;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Variables {
 public:
  explicit Variables(const Environment& environment) : x_environment(environment) {}

  bool has(const char* name) const {
    const char* const value = x_environment(name);
    return value != nullptr && value[0] != '\0';
  }
  std::int64_t number(const char* name) const {
    const char* const value = x_environment(name);
    const auto number = whole_number(value == nullptr ? "" : value);
    if (!number)
      throw Error(fmt::format(
          "{} should be a whole number, but is '{}'. Say which shard this is: --shard I/N.", name,
          value == nullptr ? "" : value));
    return *number;
  }

 private:
  const Environment& x_environment;
};

ShardChoice checked(std::int64_t index, std::int64_t count, const char* from) {
  if (count < 1 || count > kMostShards || index < 0 || index >= count)
    throw Error(
        fmt::format("{} makes this shard {} of {}, which cannot be. Say which it is: --shard I/N.",
                    from, index + 1, count));
  return {{index, count}, count > 1 ? from : ""};
}

// Tasks of a job array. Its subset that is submitted again has gaps, or begins elsewhere: who would do the rest?
std::optional<ShardChoice> slurm_array(const Variables& v) {
  constexpr const char* kTask = "SLURM_ARRAY_TASK_ID";
  if (!v.has(kTask)) return std::nullopt;
  const std::int64_t low = v.number("SLURM_ARRAY_TASK_MIN"),
                     high = v.number("SLURM_ARRAY_TASK_MAX");
  const std::int64_t count = v.number("SLURM_ARRAY_TASK_COUNT");
  const std::int64_t step = v.has("SLURM_ARRAY_TASK_STEP") ? v.number("SLURM_ARRAY_TASK_STEP") : 1;
  if (step < 1 || high - low != (count - 1) * step || low > step)
    throw Error(
        fmt::format("This Slurm array has {} tasks, from {} to {}: it seems to be part of a larger "
                    "one, so that its tasks do "
                    "not tell which shards they are. Say it: --shard $SLURM_ARRAY_TASK_ID/N, as "
                    "the file of --print slurm "
                    "does.",
                    count, low, high));
  return checked((v.number(kTask) - low) / step, count, kTask);
}

std::optional<ShardChoice> kubernetes(const Variables& v, std::optional<std::int64_t> told) {
  constexpr const char* kIndex = "JOB_COMPLETION_INDEX";
  if (!v.has(kIndex)) return std::nullopt;
  if (!told)
    throw Error(
        "JOB_COMPLETION_INDEX says that this is a pod of an indexed job, but not of how many: say "
        "it with "
        "--shards N, its completions. (--shard 1/1 does the whole sweep here.)");
  return checked(v.number(kIndex), *told, kIndex);
}

// Open MPI, then the interface of MPICH and its kin; tasks of srun, but not the script of a job, which is one of none.
std::optional<ShardChoice> ranks(const Variables& v) {
  constexpr std::pair<const char*, const char*> kRanks[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank, size] : kRanks)
    if (v.has(rank) && v.has(size)) return checked(v.number(rank), v.number(size), rank);
  return std::nullopt;
}

}  // namespace

ShardChoice shard_of_environment(const Environment& environment, std::optional<std::int64_t> told) {
  const Variables v(environment);
  std::vector<ShardChoice> levels;
  if (const auto array = slurm_array(v)) {
    levels.push_back(*array);
  } else if (const auto pod = kubernetes(v, told)) {
    levels.push_back(*pod);
  }
  if (const auto rank = ranks(v)) levels.push_back(*rank);
  // Whoever uses GNU parallel may do other things with it: only where it is said that these are shards.
  if (levels.empty() && told && v.has("PARALLEL_SEQ"))
    levels.push_back(checked(v.number("PARALLEL_SEQ") - 1, *told, "PARALLEL_SEQ"));
  ShardChoice all;
  for (const ShardChoice& level : levels) {
    all.shard.index = all.shard.index * level.shard.count + level.shard.index;
    all.shard.count *= level.shard.count;
    if (!level.from.empty()) all.from += (all.from.empty() ? "" : " and ") + level.from;
  }
  if (all.shard.count > kMostShards)
    throw Error(
        fmt::format("{} make {} shards, more than {}.", all.from, all.shard.count, kMostShards));
  if (told && *told != all.shard.count)
    throw Error(all.from.empty() ? fmt::format("--shards {}: nothing in the environment says which "
                                               "of them this is. Say it: --shard I/{}.",
                                               *told, *told)
                                 : fmt::format("--shards {} were asked for, but {} makes {}.",
                                               *told, all.from, all.shard.count));
  return all;
}

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = whole_number(std::string_view(text).substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : whole_number(std::string_view(text).substr(slash + 1));
  if (!index || !count || *count < 1 || *count > kMostShards || *index < 1 || *index > *count)
    throw Error(fmt::format(
        "--shard takes I/N with I from 1 to N, for instance 3/8, but was given '{}'.", text));
  return {*index - 1, *count};
}

std::string text(const Shard& shard) { return fmt::format("{}/{}", shard.index + 1, shard.count); }

}  // namespace attn_diag::sweep
