// Which cases were run before, from which sources, and what came out: .attn-diag/history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"

namespace attn_diag {

// One run of a case: a line of the history.
struct RecordedRun {
  struct Source {
    std::string path;
    std::uint64_t hash = 0;  // XXH3 of the file as it was on disk
  };
  std::string time;     // UTC, "2026-11-20T16:40:12Z"
  std::string command;  // "trace"
  std::string kernel, library, backend, build_id;
  std::string case_key;      // the problem, how it was run, and a hash of q, k and v
  std::uint64_t output = 0;  // XXH3 of the bits of o and lse, or of what was recorded instead
  std::string verdict;       // "agrees", "diverges"; "" where nothing was compared
  std::vector<Source> sources;

  std::uint64_t sources_hash() const;
  // Whether both are runs of one case of one library.
  bool same_case(const RecordedRun& other) const;
};

RecordedRun record_of(const Capture& capture, const std::string& command,
                      const std::string& verdict);

// The newest earlier run of the same case with other sources, if the output is still the same.
// `stale`: the binary was not built from the sources now on disk.
std::optional<SameOutput> find_same_output(const std::vector<RecordedRun>& past,
                                           const RecordedRun& now, bool stale);

// The verdict of the newest earlier run of the case with these very output bits; "" if there is none.
std::string known_verdict(const std::vector<RecordedRun>& past, const RecordedRun& now);

// The file. It holds the newest kMostRuns runs, oldest first, a JSON object a line; lines that cannot be
// read are skipped, and dropped when it is next written. Processes that share it take turns.
class HistoryFile {
 public:
  static constexpr std::size_t kMostRuns = 500;

  // `directory` is made when something is added.
  explicit HistoryFile(std::string directory) : x_directory(std::move(directory)) {}

  std::string path() const { return x_directory + "/history"; }
  // Empty where there is no file, or none that can be read.
  std::vector<RecordedRun> read() const;
  // False where the file could not be written; nothing is changed then.
  bool add(const std::vector<RecordedRun>& runs) const;

 private:
  std::string x_directory;
};

}  // namespace attn_diag
