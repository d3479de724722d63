#include "harness/files/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "attn_diag/harness/error.h"
#include "harness/capture/capture_fields.h"

namespace attn_diag::files {
namespace {

using Arrays = std::array<const Array*, kNumForeignRoles>;
using Axes = std::array<std::int64_t, 4>;  // batch, heads, sequence, dim

const Array& of(const Arrays& arrays, ForeignRole role) {
  return *arrays[static_cast<std::size_t>(role)];
}

Axes axes_of(const Array& array, Layout layout) {
  const std::vector<std::int64_t>& s = array.shape;
  if (s.size() == 2) return {1, 1, s[0], s[1]};
  const std::size_t first = s.size() - 3;
  const std::int64_t batch = first == 0 ? 1 : s[0];
  return layout == Layout::kBHSD ? Axes{batch, s[first], s[first + 1], s[first + 2]}
                                 : Axes{batch, s[first + 1], s[first], s[first + 2]};
}

// Strides of lse whose axes are those of `wanted`, [B, H, Sq] or [B, Sq, H]; none if it has neither.
std::optional<std::array<std::int64_t, 3>> lse_strides(const Array& lse, std::int64_t batch,
                                                       std::int64_t heads, std::int64_t queries,
                                                       bool query_first) {
  std::vector<std::int64_t> shape = lse.shape;
  if (!shape.empty() && shape.back() == 1 && lse.size() == batch * heads * queries &&
      !(queries == 1 || heads == 1))
    shape.pop_back();
  // Leading axes of extent 1 may be left out.
  while (shape.size() > 3 && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() < 3) shape.insert(shape.begin(), 1);
  using Shape = std::vector<std::int64_t>;
  if (!query_first && shape == Shape{batch, heads, queries})
    return std::array<std::int64_t, 3>{heads * queries, queries, 1};
  if (query_first && shape == Shape{batch, queries, heads})
    return std::array<std::int64_t, 3>{heads * queries, 1, heads};
  return std::nullopt;
}

// The sizes under a layout, or why there are none.
struct Reading {
  std::string problem;
  Axes q{}, k{}, v{};
};
Reading read_as(const Arrays& arrays, Layout layout) {
  const Axes q = axes_of(of(arrays, ForeignRole::kQ), layout);
  const Axes k = axes_of(of(arrays, ForeignRole::kK), layout);
  const Axes v = axes_of(of(arrays, ForeignRole::kV), layout);
  const Axes o = axes_of(of(arrays, ForeignRole::kO), layout);
  Reading reading{"", q, k, v};
  const auto differ = [&](const char* a, const char* b, const char* axis, std::int64_t x,
                          std::int64_t y) {
    if (x != y && reading.problem.empty())
      reading.problem = fmt::format("{} has {} {}, {} has {}", a, x, axis, b, y);
  };
  differ("q", "k", "batch entries", q[0], k[0]);
  differ("k", "v", "batch entries", k[0], v[0]);
  differ("q", "o", "batch entries", q[0], o[0]);
  differ("q", "k", "dims", q[3], k[3]);
  differ("k", "v", "keys", k[2], v[2]);
  differ("k", "v", "heads", k[1], v[1]);
  differ("q", "o", "heads", q[1], o[1]);
  differ("q", "o", "queries", q[2], o[2]);
  differ("v", "o", "dims", v[3], o[3]);
  if (reading.problem.empty() && (k[1] == 0 || q[1] % k[1] != 0))
    reading.problem = fmt::format("{} heads of q cannot share {} of k", q[1], k[1]);
  return reading;
}

void check_ranks(const Arrays& arrays) {
  const std::size_t rank = of(arrays, ForeignRole::kQ).shape.size();
  for (const ForeignRole role :
       {ForeignRole::kQ, ForeignRole::kK, ForeignRole::kV, ForeignRole::kO}) {
    const Array& array = of(arrays, role);
    const std::size_t n = array.shape.size();
    if (n < 2 || n > 4 || n != rank)
      throw Error(fmt::format(
          "{} is {}, q is {}. Expected 4 axes of each ([B, H, S, D] or [B, S, H, D]), 3 "
          "without batch, or 2 without heads, and as many of q, k, v and o.",
          name(role), array.text(), of(arrays, ForeignRole::kQ).text()));
    for (const std::int64_t extent : array.shape)
      if (extent < 1 || extent > std::numeric_limits<std::int32_t>::max())
        throw Error(
            fmt::format("{} is {}: an axis is empty, or too long.", name(role), array.text()));
  }
}

std::string shapes_of(const Arrays& arrays) {
  std::string text;
  for (const ForeignRole role :
       {ForeignRole::kQ, ForeignRole::kK, ForeignRole::kV, ForeignRole::kO})
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name(role),
                        shape_text(of(arrays, role).shape));
  return text;
}

}  // namespace

Shapes understand_shapes(const Arrays& arrays, std::optional<Layout> said) {
  check_ranks(arrays);
  const Array* lse = arrays[static_cast<std::size_t>(ForeignRole::kLse)];
  const bool has_heads = of(arrays, ForeignRole::kQ).shape.size() > 2;
  const Reading bhsd = read_as(arrays, Layout::kBHSD), bshd = read_as(arrays, Layout::kBSHD);
  // lse is nearly always [B, H, Sq], which tells the layouts apart unless H = Sq.
  const auto lse_fits = [&](const Reading& r) {
    return lse == nullptr || lse_strides(*lse, r.q[0], r.q[1], r.q[2], false).has_value();
  };

  Shapes shapes;
  Layout layout = said.value_or(Layout::kBHSD);
  if (!said && has_heads) {
    const bool first = bhsd.problem.empty(), second = bshd.problem.empty();
    if (first && second && lse != nullptr && lse_fits(bhsd) != lse_fits(bshd)) {
      layout = lse_fits(bhsd) ? Layout::kBHSD : Layout::kBSHD;
      shapes.layout_assumed = fmt::format("layout {}, which fits lse", text(layout));
    } else if (first != second) {
      layout = first ? Layout::kBHSD : Layout::kBSHD;
      shapes.layout_assumed =
          fmt::format("layout {}, the only one that fits the shapes", text(layout));
    } else {
      shapes.layout_assumed = "layout BHSD";
    }
  }
  const Reading& reading = layout == Layout::kBHSD ? bhsd : bshd;
  if (!reading.problem.empty())
    throw Error(fmt::format("The shapes do not fit together as {}: {}. Found {}.{}", text(layout),
                            reading.problem, shapes_of(arrays),
                            has_heads && said ? " Is --layout right?" : ""));

  Problem& p = shapes.problem;
  const auto narrow = [](std::int64_t x) { return static_cast<std::int32_t>(x); };
  p.layout = layout;
  p.batch = narrow(reading.q[0]);
  p.heads = narrow(reading.q[1]);
  p.kv_heads = narrow(reading.k[1]);
  p.seqlen_q = narrow(reading.q[2]);
  p.seqlen_k = narrow(reading.k[2]);
  p.head_dim = narrow(reading.q[3]);
  p.head_dim_v = narrow(reading.v[3]);
  if (lse == nullptr) return shapes;
  auto strides = lse_strides(*lse, p.batch, p.heads, p.seqlen_q, false);
  if (!strides) strides = lse_strides(*lse, p.batch, p.heads, p.seqlen_q, true);
  if (!strides)
    throw Error(fmt::format(
        "lse is {}; expected [batch, heads, queries] = [{}, {}, {}]. Found {}.{}", lse->text(),
        p.batch, p.heads, p.seqlen_q, shapes_of(arrays), has_heads ? " Is --layout right?" : ""));
  shapes.lse_strides = *strides;
  return shapes;
}

void understand_bias(const Array& bias, const Problem& p, std::int32_t& batch,
                     std::int32_t& heads) {
  std::vector<std::int64_t> shape = bias.shape;
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  const bool fits = shape.size() == 4 && (shape[0] == 1 || shape[0] == p.batch) &&
                    (shape[1] == 1 || shape[1] == p.heads) && shape[2] == p.seqlen_q &&
                    shape[3] == p.seqlen_k;
  if (!fits)
    throw Error(
        fmt::format("bias is {}; expected [Sq, Sk], [H, Sq, Sk] or [B, H, Sq, Sk], with 1 for a "
                    "B or H that share it, and B, H, Sq, Sk = {}, {}, {}, {}.",
                    bias.text(), p.batch, p.heads, p.seqlen_q, p.seqlen_k));
  batch = static_cast<std::int32_t>(shape[0]);
  heads = static_cast<std::int32_t>(shape[1]);
}

}  // namespace attn_diag::files
