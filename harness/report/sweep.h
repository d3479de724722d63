// What came of a sweep: a line of JSON a case, and what is said of all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/report/matrix.h"

namespace attn_diag::report {

// A case of a sweep: its number, the hash that tells it from all others, and what its flags are where they are lists.
struct SweepPoint {
  std::int64_t number = 0;
  std::string key;
  double cost = 0;                                          // as it was estimated, in any unit
  std::vector<std::pair<std::string, std::string>> values;  // {"--seqlen", "64"}
};

// One case, as it lies in a shard's file.
Json sweep_line(const MatrixRow& row, const SweepPoint& point, const std::string& schedule);

// A shard with cases that are not there yet.
struct MissingShard {
  std::string shard;  // "3/8"
  std::int64_t cases = 0, missing = 0;
};

struct SweepView {
  std::map<std::int64_t, Json> lines;      // by number of the case
  std::int64_t cases = 0;                  // that there should be
  std::string shard;                       // "3/8": of this shard alone, empty: of the whole sweep
  std::vector<std::string> cut_short;      // files that end in half a line
  std::vector<std::int64_t> contradicted;  // cases that were run twice, with different verdicts
  std::int64_t repeated = 0;               // lines of cases that were run twice
  std::vector<MissingShard> missing;
  std::string finish;  // shell line that runs a missing shard, "@" in place of its name
  std::string folder;
  std::vector<std::string> notes;
};

// 0, 1 or 2. Not for a shard, which is not asked for a verdict.
int sweep_code(const SweepView& view);

std::string sweep_text(const SweepView& view, const Style& style, bool verdict_only);
Json sweep_json(const SweepView& view, int exit_code, const CommandContext& context);
std::vector<JunitCase> junit_of_sweep(const SweepView& view);

}  // namespace attn_diag::report
