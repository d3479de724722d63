#include "harness/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "harness/base/printable.h"

namespace attn_diag::report {

std::string paint(const Style& style, Colour colour, std::string_view text) {
  if (!style.colour || colour == Colour::kNone) return std::string(text);
  const char* code = "";
  switch (colour) {
    case Colour::kRed:
      code = "1;31";
      break;
    case Colour::kGreen:
      code = "32";
      break;
    case Colour::kYellow:
      code = "33";
      break;
    case Colour::kBold:
      code = "1";
      break;
    case Colour::kDim:
      code = "2";
      break;
    case Colour::kNone:
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string number(double x) {
  if (std::isnan(x)) return "nan";
  return fmt::format("{:.4g}", x);
}

std::string exact(double x) {
  if (std::isnan(x)) return "nan";
  return fmt::format("{:.9g}", x);
}

std::string ratio(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return "inf";
  if (x == 0) return "0x";
  if (x < 0.01) return "<0.01x";
  if (x < 10) return fmt::format("{:.2f}x", x);
  if (x < 1000) return fmt::format("{:.0f}x", x);
  return fmt::format("{:.1e}x", x);
}

std::string count(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string bytes(double n) {
  static constexpr std::array<const char*, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (n >= 1024 && unit + 1 < kUnits.size()) n /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", n) : fmt::format("{:.1f} {}", n, kUnits[unit]);
}

std::string duration(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "0%";
  const double p = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part > 0 && p < 0.1) return "<0.1%";
  if (part < whole && p > 99.9) return ">99.9%";
  return fmt::format("{:.1f}%", p);
}

std::string plural(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", count(n), noun, n == 1 ? "" : "s");
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string short_function_name(std::string name) {
  if (const std::size_t clone = name.find(" [clone"); clone != std::string::npos)
    name.resize(clone);
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (std::size_t at = name.find(kUnnamed); at != std::string::npos; at = name.find(kUnnamed))
    name.erase(at, kUnnamed.size());
  // Template arguments of kernels are long; the line says which it is.
  std::string out;
  int depth = 0;
  for (const char c : name) {
    depth -= c == '>' && depth > 0 ? 1 : 0;
    if (depth == 0) out += c;
    if (c == '<' && depth++ == 0) out += "...";
  }
  const bool is_lambda = out.find("::{lambda") != std::string::npos;
  if (const std::size_t parameters = out.find('('); parameters != std::string::npos)
    out.resize(parameters);
  if (const std::size_t space = out.rfind(' '); space != std::string::npos) out.erase(0, space + 1);
  return is_lambda ? "a lambda in " + out : out;
}

std::string mask_text(const Problem& p) {
  switch (p.mask.kind) {
    case MaskKind::kNone:
      return "none";
    case MaskKind::kCausal:
      if (p.seqlen_q == p.seqlen_k) return "causal";
      return p.mask.alignment == CausalAlignment::kTopLeft ? "causal:top_left"
                                                           : "causal:bottom_right";
    case MaskKind::kWindow:
      return fmt::format("window:{},{}", p.mask.window_left, p.mask.window_right);
  }
  return "?";
}

std::string problem_text(const Problem& p) {
  std::string s = fmt::format("B={} H={}", p.batch, p.heads);
  if (p.kv_heads != p.heads) s += fmt::format(" Hkv={}", p.kv_heads);
  s += p.seqlen_q == p.seqlen_k ? fmt::format(" S={}", p.seqlen_q)
                                : fmt::format(" Sq={} Sk={}", p.seqlen_q, p.seqlen_k);
  s += fmt::format(" D={}", p.head_dim);
  if (p.head_dim_v != p.head_dim) s += fmt::format(" Dv={}", p.head_dim_v);
  return s + fmt::format(" {} {} {}", name(p.dtype),
                         p.mask.kind == MaskKind::kNone ? "no mask" : mask_text(p), name(p.layout));
}

std::string geometry_text(const Geometry& g) {
  std::string s = fmt::format("{}x{} tiles", g.tile.block_m, g.tile.block_n);
  if (g.has_split_merge || g.num_splits > 1) s += ", " + plural(g.num_splits, "split");
  return s;
}

std::string index_text(Tensor tensor, const std::array<std::int64_t, 5>& index) {
  return fmt::format("({})", fmt::join(index.begin(), index.begin() + info(tensor).rank, ", "));
}

std::string place_text(const LinePlace& place) {
  return fmt::format("{}:{}", std::filesystem::path(place.file).filename().string(), place.line);
}

std::string place_text(Tensor tensor, const std::array<std::int64_t, 5>& index,
                       const Problem& problem, const Geometry& geometry) {
  std::string s;
  if (problem.batch > 1) s = fmt::format("batch {}, ", index[0]);
  s += fmt::format("head {}, query {}, query tile {}", index[1], index[2],
                   index[2] / geometry.tile.block_m);
  for (int i = 3; i < info(tensor).rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    switch (info(tensor).axes[at]) {
      case Axis::kKey:
        s += fmt::format(", kv tile {}, key {}", index[at] / geometry.tile.block_n, index[at]);
        break;
      case Axis::kKvTile:
        s += fmt::format(", kv tile {}", index[at]);
        break;
      case Axis::kSplit:
        s += fmt::format(", split {}", index[at]);
        break;
      default:
        s += fmt::format(", dim {}", index[at]);
    }
  }
  return s;
}

std::string ranges(const std::vector<std::int64_t>& sorted, int max_ranges) {
  std::string s;
  int shown = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t j = i;
    while (j + 1 < sorted.size() && sorted[j + 1] == sorted[j] + 1) ++j;
    if (shown++ == max_ranges) return s + ", ...";
    if (!s.empty()) s += ", ";
    s += i == j ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[j]);
    i = j + 1;
  }
  return s;
}

std::string diff_text(const std::string& diff, const Style& style) {
  std::string text;
  for (std::size_t begin = 0; begin < diff.size();) {
    const std::size_t end = std::min(diff.find('\n', begin), diff.size());
    const std::string line = diff.substr(begin, end - begin);
    const Colour colour = line.starts_with('+')   ? Colour::kGreen
                          : line.starts_with('-') ? Colour::kRed
                                                  : Colour::kNone;
    text += paint(style, colour, line) + '\n';
    begin = end + 1;
  }
  return text;
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string out;
  int column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const int w = display_width(word);
    if (column > indent && column + 1 + w > width) {
      out += '\n' + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += w;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size() - 1);
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++width;  // not a UTF-8 continuation byte
    }
  }
  return width;
}

}  // namespace attn_diag::report
