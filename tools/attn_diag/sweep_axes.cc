#include "tools/attn_diag/sweep_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>

#include "attn_diag/harness/error.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

struct AxisFlag {
  const char* flag;
  std::string Flags::*member;
  bool numbers;  // takes ranges
  int power;     // by which its number multiplies the cost
};
constexpr AxisFlag kAxes[] = {
    {"--kernel", &Flags::kernel, false, 0},
    {"--schedule", &Flags::schedule, false, 0},
    {"--mma-order", &Flags::mma_order, true, 0},
    {"--async-copies", &Flags::async_copies, false, 0},
    {"--dtype", &Flags::dtype, false, 0},
    {"--layout", &Flags::layout, false, 0},
    {"--mask", &Flags::mask, false, 0},
    {"--batch", &Flags::batch, true, 1},
    {"--heads", &Flags::heads, true, 1},
    {"--kv-heads", &Flags::kv_heads, true, 0},
    {"--seqlen", &Flags::seqlen, true, 1},
    {"--seqlen-q", &Flags::seqlen_q, true, 1},
    {"--seqlen-k", &Flags::seqlen_k, true, 1},
    {"--head-dim", &Flags::head_dim, true, 1},
    {"--head-dim-v", &Flags::head_dim_v, true, 0},
    {"--tile", &Flags::tile, false, 0},
    {"--num-splits", &Flags::num_splits, true, 0},
    {"--inputs", &Flags::inputs, false, 0},
    {"--seed", &Flags::seed, true, 0},
    {"--input-scale", &Flags::input_scale, false, 0},
    {"--softmax-scale", &Flags::softmax_scale, false, 0},
};
// Alike in all cases, but what they come to depends on them.
constexpr std::pair<const char*, std::string Flags::*> kCommon[] = {{"--backend", &Flags::backend},
                                                                    {"--stage", &Flags::stage},
                                                                    {"--atol", &Flags::atol},
                                                                    {"--rtol", &Flags::rtol}};

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "4:16:*2" as 4, 8, 16.
std::vector<std::string> expand_range(const std::string& flag, const std::string& text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  const std::string_view all = text;
  const auto begin = whole_number(all.substr(0, first));
  const auto end =
      whole_number(all.substr(first + 1, second == text.npos ? text.npos : second - first - 1));
  std::string_view step = second == text.npos ? "1" : all.substr(second + 1);
  const bool times = step.starts_with('*');
  const auto by = whole_number(times ? step.substr(1) : step);
  if (!begin || !end || !by || *end < *begin || *by < (times ? 2 : 1) || (times && *begin < 1))
    throw Error(
        fmt::format("{} takes ranges as 1:8 (1 to 8), 1:9:2 (every second) or 64:4096:*2 "
                    "(doubled), but was given '{}'.",
                    flag, text));
  constexpr std::size_t kMost = 10'000'000;
  std::vector<std::string> entries;
  for (std::int64_t x = *begin; x <= *end; x = times ? x * *by : x + *by) {
    entries.push_back(std::to_string(x));
    if (entries.size() > kMost)
      throw Error(fmt::format("{} {} has more than {} values.", flag, text, kMost));
    if (times && x > *end / *by) break;  // before it overflows
  }
  return entries;
}

double weight_of(const AxisFlag& axis, const std::string& entry, bool lengths_twice) {
  if (axis.member == &Flags::mask) return entry.starts_with("causal") ? 0.5 : 1;
  if (axis.power == 0) return 1;
  const auto value = whole_number(entry);
  if (!value) return 1;  // which the case refuses
  const double x = std::max<double>(1, static_cast<double>(*value));
  return axis.member == &Flags::seqlen && lengths_twice ? x * x : x;
}

// A default that multiplies the cost, too.
double default_cost(const Flags& f) {
  const bool no_q = f.seqlen_q.empty(), no_k = f.seqlen_k.empty();
  double cost = f.head_dim.empty() ? 64 : 1;
  if (f.heads.empty()) cost *= 2;
  if (f.seqlen.empty()) cost *= (no_q ? 128 : 1) * (no_k ? 128 : 1);
  return cost;
}

std::vector<Axis> axes_of(const Flags& f) {
  std::vector<Axis> axes;
  const bool lengths_twice = f.seqlen_q.empty() && f.seqlen_k.empty();
  const bool lengths_never = !f.seqlen_q.empty() && !f.seqlen_k.empty();
  for (const AxisFlag& axis : kAxes) {
    if ((f.*axis.member).empty()) continue;
    Axis a{axis.flag, axis.member, expand_entries(axis.flag, f.*axis.member, axis.numbers), {}};
    for (const std::string& entry : a.entries)
      a.weights.push_back(axis.member == &Flags::seqlen && lengths_never
                              ? 1
                              : weight_of(axis, entry, lengths_twice));
    axes.push_back(std::move(a));
  }
  return axes;
}

sweep::Numbering numbering_of(const std::vector<Axis>& axes, const Flags& flags) {
  std::vector<std::int64_t> extents;
  for (const Axis& axis : axes) extents.push_back(std::ssize(axis.entries));
  std::uint64_t seed = 0;
  if (!flags.seed.empty())
    seed = parse_seed("--seed", expand_entries("--seed", flags.seed, true).front());
  return {extents, random_cases(flags), seed};
}

// Throws Error for an entry that is no value of its flag, whatever the others are.
void check_entries(const std::vector<Axis>& axes, const Flags& flags) {
  for (const Axis& axis : axes) {
    if (axis.member == &Flags::kernel) continue;
    const bool all = axis.entries.size() <= 1000;  // else the ends of ranges
    for (const std::string& entry :
         all ? axis.entries : std::vector{axis.entries.front(), axis.entries.back()}) {
      Flags one;
      one.command = flags.command;
      one.kernel = "any";
      one.backend = "host";
      one.*axis.member = entry;
      if (axis.member == &Flags::kv_heads) one.heads = entry;
      expand_cases(one, false);
    }
  }
}

}  // namespace

std::vector<std::string> expand_entries(const std::string& flag, const std::string& text,
                                        bool numbers) {
  std::vector<std::string> entries;
  for (const std::string& piece : split_list(flag, text)) {
    const bool range = numbers && piece.find(':') != piece.npos;
    for (std::string& entry : range ? expand_range(flag, piece) : std::vector{piece})
      entries.push_back(std::move(entry));
  }
  std::vector<std::string> once;
  std::unordered_set<std::string> seen;
  for (std::string& entry : entries)
    if (seen.insert(entry).second) once.push_back(std::move(entry));
  return once;
}

std::int64_t random_cases(const Flags& flags) {
  return flags.sweep.random.empty() ? 0 : parse_int("--random", flags.sweep.random, 1, 100'000'000);
}

std::map<std::string, std::string> plan_flags(const Flags& flags) {
  std::map<std::string, std::string> out;
  for (const AxisFlag& axis : kAxes)
    if (!(flags.*axis.member).empty()) out[axis.flag] = flags.*axis.member;
  for (const auto& [flag, member] : kCommon)
    if (!(flags.*member).empty()) out[flag] = flags.*member;
  if (!flags.sanity.runs.empty()) out["--sanity"] = flags.sanity.runs;
  if (flags.sanity.off) out["--no-sanity"] = "";
  return out;
}

void take_plan_flags(const std::map<std::string, std::string>& from, Flags& flags) {
  const auto take = [&](const char* flag, std::string& to) {
    if (const auto found = from.find(flag); found != from.end()) to = found->second;
  };
  for (const AxisFlag& axis : kAxes) take(axis.flag, flags.*axis.member);
  for (const auto& [flag, member] : kCommon) take(flag, flags.*member);
  take("--sanity", flags.sanity.runs);
  flags.sanity.off = from.contains("--no-sanity");
}

SweepGrid::SweepGrid(const Flags& flags)
    : x_axes(axes_of(flags)), x_flags(flags), x_numbering(numbering_of(x_axes, flags)) {
  check_entries(x_axes, flags);
}

std::optional<Flags> SweepGrid::flags_of(std::int64_t number, std::int64_t attempt) const {
  const auto entries = x_numbering.at(number, attempt);
  if (!entries) return std::nullopt;
  Flags one = x_flags;
  for (std::size_t i = 0; i < x_axes.size(); ++i)
    one.*x_axes[i].member = x_axes[i].entries[static_cast<std::size_t>((*entries)[i])];
  return one;
}

std::vector<std::pair<std::string, std::string>> SweepGrid::values_of(const Flags& one) const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Axis& axis : x_axes)
    if (axis.entries.size() > 1) values.emplace_back(axis.flag, one.*axis.member);
  return values;
}

std::string SweepGrid::text_of(const Flags& one) const {
  std::string s;
  for (const auto& [flag, value] : values_of(one))
    s += (s.empty() ? "" : " ") + flag.substr(2) + "=" + value;
  return s;
}

std::vector<float> SweepGrid::costs() const {
  // What a case costs however small it is: a process, inputs, a comparison.
  constexpr double kFixed = 1e6;
  const double given = default_cost(x_flags);
  std::vector<float> costs(static_cast<std::size_t>(x_numbering.size()));
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto entries = *x_numbering.at(static_cast<std::int64_t>(i));
    double cost = given;
    for (std::size_t a = 0; a < x_axes.size(); ++a)
      cost *= x_axes[a].weights[static_cast<std::size_t>(entries[a])];
    costs[i] = static_cast<float>(kFixed + cost);
  }
  return costs;
}

}  // namespace attn_diag::cli
