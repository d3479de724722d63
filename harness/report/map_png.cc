#include "harness/report/map_png.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "harness/base/process.h"
#include "harness/report/text.h"

namespace attn_diag::report {
namespace {

namespace fs = std::filesystem;

// The value that is coloured: -1 exact, 0 at the bound, then decades; more than 6 looks alike. "?" is drawn as nothing.
std::string level_text(float worst) {
  constexpr double kMost = 6.0, kNotFinite = 6.5;
  if (worst < 0) return "?";
  if (!std::isfinite(worst)) return fmt::format("{}", kNotFinite);
  if (worst <= 1) return fmt::format("{:.3f}", worst - 1);
  return fmt::format("{:.3f}", std::min<double>(kMost, std::log10(worst)));
}

// As a string of gnuplot without its escapes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : c == '\n' ? " " : std::string(1, c);
  return out + "'";
}

// A file of this process that is gone when this is.
class Scratch {
 public:
  explicit Scratch(std::string path) : x_path(std::move(path)) {}
  ~Scratch() {
    std::error_code ignored;
    fs::remove(x_path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return x_path; }

 private:
  std::string x_path;
};

}  // namespace

std::string map_program(const ErrorMap& map, const std::string& title, const std::string& png) {
  std::string s = fmt::format(
      "set terminal pngcairo size 1100,900 font 'DejaVu Sans,11' noenhanced\n"
      "set output {}\nset title {}\nset xlabel {}\nset ylabel 'query'\n",
      quoted(png), quoted(title),
      quoted(map.columns > 1 ? std::string(name(map.across)) : std::string("lse")));
  s += "set datafile missing '?'\nset cbrange [-1:6.5]\nset cblabel 'error / bound'\n"
       "set cbtics ('0' -1, '1' 0, '10' 1, '100' 2, '1,000' 3, '10,000' 4, '100,000' 5, "
       "'1,000,000' 6, 'not finite' 6.5)\n"
       "set palette maxcolors 256 defined (-1 '#e8f1f8', -0.001 '#a9cce3', 0 '#ffd166', "
       "2 '#f77f3a', 4 '#c8102e', 6 '#4a0010', 6.2 '#4a0010', 6.21 '#a3119c', 6.5 '#a3119c')\n"
       "set tics out nomirror\n";
  const std::int64_t last = map.first_query + map.queries;
  s += fmt::format("set yrange [{}:{}]\nset xrange [-0.5:{}]\n", static_cast<double>(last) - 0.5,
                   static_cast<double>(map.first_query) - 0.5,
                   static_cast<double>(map.columns) - 0.5);
  s += "$map << END\n";
  for (std::int64_t r = 0; r < map.down(); ++r) {
    for (std::int64_t c = 0; c < map.wide(); ++c)
      s += level_text(map.worst[static_cast<std::size_t>(r * map.wide() + c)]) + ' ';
    s += '\n';
  }
  // The middle of a bin.
  return s + fmt::format(
                 "END\nplot $map matrix using ($1*{0}+{1}):($2*{2}+{3}):3 with image notitle\n",
                 map.by_column, static_cast<double>(map.by_column - 1) / 2, map.by_query,
                 static_cast<double>(map.first_query) + static_cast<double>(map.by_query - 1) / 2);
}

void require_gnuplot() {
  if (!is_program("gnuplot"))
    throw Error(
        "--png is drawn with gnuplot, which was expected in PATH and is not there. Install it "
        "(Debian, Ubuntu: "
        "apt-get install gnuplot-nox), or leave --png out: -o and the terminal show the same "
        "picture.");
}

void write_map_png(const ErrorMap& map, const std::string& title, const std::string& path) {
  require_gnuplot();
  const Scratch png(fmt::format("{}.{}.tmp", path, ::getpid()));
  const Scratch program(fmt::format("{}.{}.gp", path, ::getpid()));
  std::ofstream file(program.path());
  file << map_program(map, title, fs::absolute(png.path()).string());
  file.close();
  if (!file)
    throw Error(fmt::format("{} cannot be written: is there room, and may you?", program.path()));
  const ProcessResult drawn = run_process({"gnuplot", program.path()});
  std::error_code error;
  if (!drawn.ok() || fs::file_size(png.path(), error) == 0 || error)
    throw Error(fmt::format("gnuplot could not draw {} (exit code {}): {}", path, drawn.exit_code,
                            drawn.err.empty() ? "it said nothing" : drawn.err));
  fs::rename(png.path(), path, error);
  if (error) throw Error(fmt::format("{} cannot be written: {}.", path, error.message()));
}

}  // namespace attn_diag::report
