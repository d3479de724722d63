// The folder of a sweep: sweep.json says what is to be run, a file of JSON lines per shard holds the results. What
// was appended is on the disk; what a killed process left half written is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/deal.h"

namespace attn_diag::sweep {

using Json = nlohmann::ordered_json;

// sweep.json.
struct Plan {
  std::map<std::string, std::string> flags;  // "--seqlen": "64:4096:*2"
  std::int64_t random = 0;                   // cases drawn; 0: all
  std::int64_t cases = 0, shards = 1;        // shards: of the process that wrote it
  std::string version;                       // of attn-diag
  struct Kernel {
    std::string name, backend, note, build_id;
    bool operator==(const Kernel&) const = default;
  };
  std::vector<Kernel> kernels;

  // Names everything but shards: results of a plan with another key are no results of this one.
  std::string key() const;
};

// The plan that is in the folder; nullopt: there is none. Throws Error for a file that is no plan.
std::optional<Plan> read_plan(const std::string& folder);
// Makes the folder and puts the plan there, unless one is there already: that one is returned, and it is the same but
// for the shards. Throws Error where it is another, with what differs.
Plan agree_on_plan(const std::string& folder, const Plan& plan);

// 16 hexadecimal digits.
std::string hash_of(const std::string& text);

// Lines of one file, as far as they are whole.
struct Lines {
  std::vector<Json> lines;
  bool torn = false;  // the last one is not
  std::uint64_t whole_bytes = 0;
};

// What all shards have left.
struct Results {
  std::map<std::int64_t, Json> cases;      // by "case"; of one that was run twice the first
  std::int64_t repeated = 0;               // lines beyond the first of a case
  std::vector<std::int64_t> contradicted;  // cases whose lines have different verdicts
  std::vector<std::string> torn;           // files that end in half a line
  std::int64_t files = 0;
};
// Throws Error for a file that is damaged, or of another plan.
Results read_results(const std::string& folder, const Plan& plan);

// A shard's file, held by one process at a time.
class ShardFile {
 public:
  // Drops half a line at its end. Throws Error where another process holds it.
  ShardFile(const std::string& folder, const Shard& shard, const Plan& plan);
  ~ShardFile();
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  const std::vector<Json>& before() const { return x_before; }
  bool dropped_a_line() const { return x_dropped; }
  const std::string& path() const { return x_path; }

  // On the disk when this returns. Throws Error where the disk does not take it.
  void append(const std::vector<Json>& lines);

 private:
  std::string x_path;
  int x_descriptor = -1;
  std::vector<Json> x_before;
  bool x_dropped = false;
};

// "shard-03-of-12.jsonl"
std::string shard_file_name(const Shard& shard);

}  // namespace attn_diag::sweep
