#include "harness/sweep/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "attn_diag/harness/error.h"
#include "harness/sweep/shard.h"

namespace attn_diag::sweep {
namespace {

namespace fs = std::filesystem;

Lines read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{} cannot be read.", path));
  Lines read;
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    const bool last = file.eof();  // no newline behind it
    Json j = last ? Json() : Json::parse(line, nullptr, false);
    if (last) {
      read.torn = true;
      break;
    }
    if (j.is_discarded() || !j.is_object())
      throw Error(
          fmt::format("{}:{} is no line of a sweep: the file is damaged. Move it away, and its "
                      "cases are run again.",
                      path, number));
    read.whole_bytes += line.size() + 1;
    read.lines.push_back(std::move(j));
  }
  return read;
}

Json header_of(const Shard& shard, const Plan& plan) {
  return {{"sweep", plan.key()}, {"shard", shard.index + 1}, {"of", shard.count}};
}

// Takes the header away.
void check_header(const std::string& path, Lines& read, const Plan& plan) {
  if (read.lines.empty()) return;
  const Json& header = read.lines.front();
  if (!header.contains("sweep") || header["sweep"] != plan.key())
    throw Error(
        fmt::format("{} is of another sweep than the folder's sweep.json. Move it away, and its "
                    "cases are run again.",
                    path));
  read.lines.erase(read.lines.begin());
  for (const Json& line : read.lines)
    if (!line.contains("case") || !line["case"].is_number_integer() || line["case"] < 0 ||
        line["case"] >= plan.cases || !line.contains("verdict") || !line["verdict"].is_string())
      throw Error(
          fmt::format("{} has a line without a case and a verdict of this sweep: {}. Move the file "
                      "away, and its cases are "
                      "run again.",
                      path, line.dump().substr(0, 120)));
}

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw Error(fmt::format("{} {}: {}.", path, what, std::strerror(errno)));
}

// A process that was killed may need a moment to be gone.
void lock(int descriptor, const std::string& path) {
  constexpr int kTries = 40;
  for (int i = 0;; ++i) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;  // a file system without locks
    if (i == kTries)
      throw Error(fmt::format(
          "{} is being written by another process: this shard is running already.", path));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::string shard_file_name(const Shard& shard) {
  const int digits = static_cast<int>(std::to_string(shard.count).size());
  return fmt::format("shard-{:0{}}-of-{}.jsonl", shard.index + 1, digits, shard.count);
}

ShardFile::ShardFile(const std::string& folder, const Shard& shard, const Plan& plan)
    : x_path(folder + "/" + shard_file_name(shard)) {
  x_descriptor = ::open(x_path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (x_descriptor < 0) fail(x_path, "cannot be opened");
  try {
    lock(x_descriptor, x_path);
    Lines read = read_lines(x_path);
    x_dropped = read.torn;
    if (read.torn && ::ftruncate(x_descriptor, static_cast<off_t>(read.whole_bytes)) != 0)
      fail(x_path, "cannot be cut to its whole lines");
    if (read.lines.empty()) {
      append({header_of(shard, plan)});
    } else {
      check_header(x_path, read, plan);
    }
    x_before = std::move(read.lines);
  } catch (...) {
    ::close(x_descriptor);
    throw;
  }
}

ShardFile::~ShardFile() { ::close(x_descriptor); }

void ShardFile::append(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines)
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(x_descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(x_path, "cannot be written");
    done += static_cast<std::size_t>(n);
  }
  if (::fdatasync(x_descriptor) != 0 && errno != EINVAL && errno != EROFS)
    fail(x_path, "cannot be brought to the disk");
}

Results read_results(const std::string& folder, const Plan& plan) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("shard-") && name.ends_with(".jsonl")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  Results results;
  results.files = std::ssize(paths);
  for (const std::string& path : paths) {
    Lines read = read_lines(path);
    if (read.torn) results.torn.push_back(path);
    check_header(path, read, plan);
    for (Json& line : read.lines) {
      const auto number = line["case"].get<std::int64_t>();
      const auto [at, is_new] = results.cases.try_emplace(number, line);
      if (is_new) continue;
      ++results.repeated;
      if (at->second["verdict"] != line["verdict"] &&
          (results.contradicted.empty() || results.contradicted.back() != number))
        results.contradicted.push_back(number);
    }
  }
  return results;
}

}  // namespace attn_diag::sweep
