#include "tools/attn_diag/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "attn_diag/harness/error.h"
#include "tools/attn_diag/suggest.h"

namespace attn_diag::cli {
namespace {

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The index of `text` among `names`.
template <class Names>
std::size_t choose(std::string_view flag, std::string_view text, const Names& names) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (text == names[i]) return i;
    all.emplace_back(names[i]);
  }
  throw Error(fmt::format("{} takes {}, but was given '{}'.{}", flag, fmt::join(all, ", "), text,
                          did_you_mean(text, all)));
}

}  // namespace

std::vector<std::string> split_list(std::string_view flag, std::string_view text) {
  std::vector<std::string> pieces;
  for (std::string_view rest = text;;) {
    std::size_t comma = rest.find(',');
    if (rest.starts_with("window:") && comma != std::string_view::npos)
      comma = rest.find(',', comma + 1);
    pieces.emplace_back(rest.substr(0, comma));
    if (pieces.back().empty())
      throw Error(fmt::format("{} was given '{}', which has an empty entry.", flag, text));
    if (comma == std::string_view::npos) return pieces;
    rest.remove_prefix(comma + 1);
  }
}

std::int64_t parse_int(std::string_view flag, std::string_view text, std::int64_t low,
                       std::int64_t high) {
  const auto value = number_of<std::int64_t>(text);
  if (!value || *value < low || *value > high)
    throw Error(fmt::format("{} takes a whole number from {} to {}, but was given '{}'.", flag, low,
                            high, text));
  return *value;
}

double parse_real(std::string_view flag, std::string_view text, double low) {
  const auto value = number_of<double>(text);
  if (!value || !std::isfinite(*value) || *value < low)
    throw Error(fmt::format("{} takes a finite number{}, but was given '{}'.", flag,
                            low == 0 ? " of at least 0" : "", text));
  return *value;
}

std::uint64_t parse_seed(std::string_view flag, std::string_view text) {
  const auto value = number_of<std::uint64_t>(text);
  if (!value)
    throw Error(fmt::format("{} takes a whole number from 0 to {}, but was given '{}'.", flag,
                            std::numeric_limits<std::uint64_t>::max(), text));
  return *value;
}

DType parse_dtype(std::string_view text) {
  return static_cast<DType>(choose("--dtype", text, kDTypeNames));
}

Layout parse_layout(std::string_view text) {
  return static_cast<Layout>(choose("--layout", text, kLayoutNames));
}

void parse_format(std::string_view text) { choose("--format", text, kFormatNames); }

Gate parse_gate(std::string_view text) {
  return static_cast<Gate>(choose("--stage", text, kGateNames));
}

Stage parse_stage(std::string_view text) {
  return static_cast<Stage>(choose("--stage", text, kStageNames));
}

TileShape parse_tile(std::string_view text) {
  const std::size_t x = text.find('x');
  const auto m = number_of<std::int32_t>(text.substr(0, x));
  const auto n =
      x == std::string_view::npos ? std::nullopt : number_of<std::int32_t>(text.substr(x + 1));
  if (!m || !n || *m < 1 || *n < 1)
    throw Error(
        fmt::format("--tile takes QUERIESxKEYS, for instance 64x64, but was given '{}'.", text));
  return {*m, *n};
}

Mask parse_mask(std::string_view text, std::int32_t seqlen_q, std::int32_t seqlen_k) {
  Mask mask;
  if (text == "none") return mask;
  if (text.starts_with("window:")) {
    const std::string_view sizes = text.substr(7);
    const std::size_t comma = sizes.find(',');
    const auto left = number_of<std::int32_t>(sizes.substr(0, comma));
    const auto right = comma == std::string_view::npos
                           ? std::nullopt
                           : number_of<std::int32_t>(sizes.substr(comma + 1));
    if (!left || !right || *left < 0 || *right < 0)
      throw Error(
          fmt::format("--mask window takes two sizes of at least 0, window:LEFT,RIGHT, but "
                      "was given '{}'.",
                      text));
    mask.kind = MaskKind::kWindow;
    mask.window_left = *left;
    mask.window_right = *right;
    return mask;
  }
  mask.kind = MaskKind::kCausal;
  if (text == "causal:bottom_right") {
    mask.alignment = CausalAlignment::kBottomRight;
  } else if (text == "causal") {
    if (seqlen_q != seqlen_k)
      throw Error(fmt::format(
          "--mask causal is ambiguous where queries and keys differ in number ({} and {}): say "
          "causal:top_left (query 0 sees key 0) or causal:bottom_right (the last query sees the "
          "last key).",
          seqlen_q, seqlen_k));
  } else if (text != "causal:top_left") {
    static const std::vector<std::string> kNames = {"none", "causal", "causal:top_left",
                                                    "causal:bottom_right", "window:LEFT,RIGHT"};
    throw Error(fmt::format("--mask takes {}, but was given '{}'.{}", fmt::join(kNames, ", "), text,
                            did_you_mean(text, kNames)));
  }
  return mask;
}

std::optional<std::int64_t> parse_sample(std::string_view flag, std::string_view text) {
  constexpr std::string_view kSample = "sample:";
  if (!text.starts_with(kSample)) return std::nullopt;
  const auto n = number_of<std::int64_t>(text.substr(kSample.size()));
  if (!n || *n < 1 || *n > kMaxSize)
    throw Error(
        fmt::format("{} takes sample:N with N from 1, for instance sample:64, but was given '{}'.",
                    flag, text));
  return n;
}

Interval parse_interval(std::string_view flag, std::string_view text, std::int64_t extent) {
  const std::size_t colon = text.find(':');
  const auto begin = number_of<std::int64_t>(text.substr(0, colon));
  std::optional<std::int64_t> end;
  if (begin && colon == std::string_view::npos) end = *begin + 1;
  if (colon != std::string_view::npos) end = number_of<std::int64_t>(text.substr(colon + 1));
  if (!begin || !end)
    throw Error(
        fmt::format("{} takes an index or A:B (A to B-1), but was given '{}'.", flag, text));
  if (*begin < 0 || *end <= *begin || *end > extent)
    throw Error(fmt::format("{} {} is not within 0:{}.", flag, text, extent));
  return {*begin, *end};
}

}  // namespace attn_diag::cli
