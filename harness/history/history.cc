#include "harness/history/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

namespace attn_diag {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t hash_bytes(const std::vector<std::byte>& bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string hex(std::uint64_t x) { return fmt::format("{:016x}", x); }

std::uint64_t output_hash(const Capture& c) {
  std::uint64_t hash = 0;
  const Part part = c.arithmetic.part;
  const bool has_outputs = c.has(Tensor::kO) && c.has(Tensor::kLse);
  for (const TensorInfo& t : kTensors) {
    if (!c.has(t.id) || (has_outputs && !is_output(t.id, part))) continue;
    hash = hash_bytes(c[t.id].bytes, hash + static_cast<std::uint64_t>(t.id) + 1);
  }
  return hash;
}

std::string case_key(const Capture& c) {
  const Problem& p = c.problem;
  const Provenance& from = c.provenance;
  std::string key = fmt::format(
      "B={} H={} Hkv={} Sq={} Sk={} D={} Dv={} dtype={} layout={} mask={}:{}:{},{} scale={} "
      "tile={}x{} splits={} gate={}",
      p.batch, p.heads, p.kv_heads, p.seqlen_q, p.seqlen_k, p.head_dim, p.head_dim_v,
      static_cast<int>(p.dtype), static_cast<int>(p.layout), static_cast<int>(p.mask.kind),
      static_cast<int>(p.mask.alignment), p.mask.window_left, p.mask.window_right, p.softmax_scale,
      c.geometry.tile.block_m, c.geometry.tile.block_n, c.geometry.num_splits, from.gate);
  if (from.backend == "host")
    key += fmt::format(" schedule={} mma={} async={}", from.schedule, from.mma_order,
                       from.async_copies);
  if (c.isolated) key += " isolated";
  for (std::size_t i = 0; i < 3; ++i)
    key += fmt::format("{}{}+{}", i == 0 ? " rows=" : ",", c.region.origin[i], c.region.extent[i]);
  return key + " inputs=" + hex(hash_bytes(c.q, hash_bytes(c.k, hash_bytes(c.v))));
}

Json to_json(const RecordedRun& run) {
  Json j;
  j["time"] = run.time;
  j["command"] = run.command;
  j["kernel"] = run.kernel;
  j["library"] = run.library;
  j["backend"] = run.backend;
  j["build_id"] = run.build_id;
  j["case"] = run.case_key;
  j["output"] = hex(run.output);
  j["verdict"] = run.verdict;
  j["sources"] = Json::object();
  for (const RecordedRun::Source& s : run.sources) j["sources"][s.path] = hex(s.hash);
  return j;
}

std::uint64_t parse_hex(const std::string& text) {
  std::size_t used = 0;
  const std::uint64_t value = std::stoull(text, &used, 16);
  if (used != text.size()) throw std::invalid_argument(text);
  return value;
}

// Throws some std::exception for a line that is damaged or not ours.
RecordedRun parse_line(const std::string& line) {
  const Json j = Json::parse(line);
  RecordedRun run;
  j.at("time").get_to(run.time);
  j.at("command").get_to(run.command);
  j.at("kernel").get_to(run.kernel);
  j.at("library").get_to(run.library);
  j.at("backend").get_to(run.backend);
  j.at("build_id").get_to(run.build_id);
  j.at("case").get_to(run.case_key);
  run.output = parse_hex(j.at("output").get<std::string>());
  j.at("verdict").get_to(run.verdict);
  for (const auto& [path, hash] : j.at("sources").items())
    run.sources.push_back({path, parse_hex(hash.get<std::string>())});
  return run;
}

std::string line_of(const RecordedRun& run) {
  return to_json(run).dump(-1, ' ', true, Json::error_handler_t::replace) + '\n';
}

// Held while the history is read and rewritten, so that of two processes neither loses its runs.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : x_descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    // A process that was stopped while it held the lock must not stop this one.
    constexpr int kAttempts = 100;
    constexpr std::chrono::milliseconds kPause{10};
    for (int i = 0; i < kAttempts && x_descriptor >= 0 && !x_held; ++i) {
      x_held = ::flock(x_descriptor, LOCK_EX | LOCK_NB) == 0;
      if (!x_held) std::this_thread::sleep_for(kPause);
    }
  }
  ~Lock() {
    if (x_descriptor >= 0) ::close(x_descriptor);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return x_held; }

 private:
  int x_descriptor;
  bool x_held = false;
};

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file.good();
}

bool is_regular(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

std::uint64_t RecordedRun::sources_hash() const {
  std::uint64_t hash = 0;
  for (const Source& s : sources)
    hash = XXH3_64bits_withSeed(s.path.data(), s.path.size(), hash ^ s.hash);
  return hash;
}

bool RecordedRun::same_case(const RecordedRun& other) const {
  return kernel == other.kernel && library == other.library && backend == other.backend &&
         case_key == other.case_key;
}

RecordedRun record_of(const Capture& capture, const std::string& command,
                      const std::string& verdict) {
  const Provenance& p = capture.provenance;
  RecordedRun run{p.created, command,    p.kernel,          p.library,
                  p.backend, p.build_id, case_key(capture), output_hash(capture),
                  verdict,   {}};
  for (const SourceState& s : p.sources)
    if (s.found) run.sources.push_back({s.path, s.disk_hash});
  return run;
}

std::optional<SameOutput> find_same_output(const std::vector<RecordedRun>& past,
                                           const RecordedRun& now, bool stale) {
  for (auto before = past.rbegin(); before != past.rend(); ++before) {
    if (!before->same_case(now)) continue;
    std::map<std::string, std::uint64_t> then;
    for (const RecordedRun::Source& s : before->sources) then[s.path] = s.hash;
    SameOutput same;
    for (const RecordedRun::Source& s : now.sources) {
      const auto it = then.find(s.path);
      if (it == then.end() || it->second != s.hash) same.changed.push_back(s.path);
    }
    if (same.changed.empty()) continue;  // run again without an edit: what was before that?
    if (before->output != now.output) return std::nullopt;
    same.before = before->time;
    same.build_id_then = before->build_id;
    same.build_id_now = now.build_id;
    same.stale = stale;
    return same;
  }
  return std::nullopt;
}

std::string known_verdict(const std::vector<RecordedRun>& past, const RecordedRun& now) {
  for (auto run = past.rbegin(); run != past.rend(); ++run)
    if (run->same_case(now) && run->output == now.output && !run->verdict.empty())
      return run->verdict;
  return "";
}

std::vector<RecordedRun> HistoryFile::read() const {
  std::vector<RecordedRun> runs;
  if (!is_regular(path())) return runs;
  std::ifstream file(path(), std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    try {
      runs.push_back(parse_line(line));
    } catch (const std::exception&) {  // damaged: the others are still good
    }
  }
  return runs;
}

bool HistoryFile::add(const std::vector<RecordedRun>& runs) const {
  if (runs.empty()) return true;
  // Nobody wants it in a repository.
  if (::mkdir(x_directory.c_str(), 0777) == 0) write_file(x_directory + "/.gitignore", "*\n");
  const Lock lock(x_directory + "/history.lock");
  if (!lock.held()) return false;
  std::vector<RecordedRun> all = read();
  all.insert(all.end(), runs.begin(), runs.end());
  if (all.size() > kMostRuns) all.erase(all.begin(), all.end() - kMostRuns);
  std::string text;
  for (const RecordedRun& run : all) text += line_of(run);
  const std::string temporary = fmt::format("{}.{}.tmp", path(), ::getpid());
  if (write_file(temporary, text) && std::rename(temporary.c_str(), path().c_str()) == 0)
    return true;
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace attn_diag
