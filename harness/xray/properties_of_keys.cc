// What may be done to all keys together.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/reference/reference.h"
#include "harness/inputs/draw.h"
#include "harness/xray/properties.h"

namespace attn_diag::xraying {
namespace {

bool visible(const Problem& p, std::int64_t query, std::int64_t key) {
  return reference::visible(p, static_cast<std::int32_t>(query), static_cast<std::int32_t>(key));
}

bool sees_all(const Problem& p, std::int64_t query) {
  for (std::int64_t j = 0; j < p.seqlen_k; ++j)
    if (!visible(p, query, j)) return false;
  return true;
}

using Map = std::function<std::int64_t(std::int64_t)>;

// The operands of another problem: each key and query is one of `from`.
Operands with_problem(const Operands& from, const Problem& problem, const Map& key_of,
                      const Map& query_of) {
  Operands source = from, out(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.heads; ++h)
      for (std::int64_t i = 0; i < problem.seqlen_q; ++i)
        for (std::int64_t d = 0; d < problem.head_dim; ++d)
          out.q(b, h, i, d) = source.q(b, h, query_of(i), d);
  out.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    const std::int64_t from_key = key_of(j);
    for (std::int64_t d = 0; d < problem.head_dim; ++d)
      out.k(b, h, j, d) = source.k(b, h, from_key, d);
    for (std::int64_t d = 0; d < problem.head_dim_v; ++d)
      out.v(b, h, j, d) = source.v(b, h, from_key, d);
  });
  return out;
}

std::int64_t same(std::int64_t key) { return key; }

// A permutation that depends on the number of keys alone.
std::vector<std::int64_t> permutation(std::int64_t keys) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(keys));
  std::iota(order.begin(), order.end(), 0);
  const inputs::Draw draw(0, 6, 0, 0, keys);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::pair(draw.bits(a), a) < std::pair(draw.bits(b), b);
  });
  return order;
}

}  // namespace

PropertyResult shifted_keys(const Subject& s) {
  Judge judge(Property::kShiftedKeys);
  const Problem& p = s.operands.problem();
  // Sixteenths up to 3, and a shift of sixteenths up to 3: exact in every type.
  Operands plain = s.operands;
  plain.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    for (std::int64_t d = 0; d < p.head_dim; ++d)
      plain.k(b, h, j, d) = std::clamp(std::round(16 * plain.k(b, h, j, d)) / 16, -3.0, 3.0);
  });
  Operands shifted = plain;
  const inputs::Draw draw(0, 7, 0, 0, 0);
  const auto shift = [&](std::int64_t d) {
    return draw.sign(d) * static_cast<double>(17 + draw.below(32, d, 1)) / 16;
  };
  shifted.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    for (std::int64_t d = 0; d < p.head_dim; ++d) shifted.k(b, h, j, d) += shift(d);
  });
  const TrialOutcome before = s.run(plain), after = s.run(shifted);
  for_each_row(p, [&](const RowIndex& row) {
    const std::size_t at = before.flat(row);
    judge.o_of(
        after, row, [&](std::int64_t d) { return before.o[before.flat(row, d)]; },
        [&](std::int64_t d) {
          return before.o_bound[before.flat(row, d)] + after.o_bound[after.flat(row, d)];
        });
    if (before.lse.empty()) return;
    double moved = 0;
    for (std::int64_t d = 0; d < p.head_dim; ++d)
      moved += plain.q(row[0], row[1], row[2], d) * shift(d);
    judge.lse_of(after, row, before.lse[at] + moved * static_cast<double>(p.softmax_scale),
                 before.lse_bound[at] + after.lse_bound[at]);
  });
  return judge.finish();
}

PropertyResult permuted_keys(const Subject& s) {
  Judge judge(Property::kPermutedKeys);
  Problem p = s.operands.problem();
  p.mask = Mask{};
  const std::vector<std::int64_t> order = permutation(p.seqlen_k);
  const auto permuted = [&](std::int64_t j) { return order[static_cast<std::size_t>(j)]; };
  const auto try_with = [&](const Problem& problem) {
    const TrialOutcome before = s.run(with_problem(s.operands, problem, same, same));
    const TrialOutcome after = s.run(with_problem(s.operands, problem, permuted, same));
    for_each_row(problem, [&](const RowIndex& row) {
      if (sees_all(problem, row[2])) judge.same_within_bounds(after, before, row);
    });
    return judge.finish();
  };
  try {
    return try_with(p);
  } catch (const Error&) {
    // The kernel does not run without its mask; then rows that see every key have to do.
    PropertyResult result = try_with(s.operands.problem());
    if (result.compared == 0)
      return judge.not_tried("under this mask no row sees every key, and the kernel needs a mask");
    return result;
  }
}

PropertyResult duplicated_keys(const Subject& s) {
  Judge judge(Property::kDuplicatedKeys);
  Problem once = s.operands.problem();
  once.mask = Mask{};
  const auto half = [](std::int64_t i) { return i / 2; };
  // Kernels that take square problems alone get every query twice, too.
  const auto try_with = [&](std::int32_t queries) {
    Problem twice = once;
    twice.seqlen_k *= 2;
    twice.seqlen_q *= queries;
    const TrialOutcome after =
        s.run(with_problem(s.operands, twice, half, queries == 1 ? Map(same) : Map(half)));
    const TrialOutcome before = s.run(with_problem(s.operands, once, same, same));
    for_each_row(once, [&](const RowIndex& row) {
      const RowIndex other = {row[0], row[1], row[2] * queries};
      const std::size_t at = before.flat(row), there = after.flat(other);
      judge.o_of(
          after, other, [&](std::int64_t d) { return before.o[before.flat(row, d)]; },
          [&](std::int64_t d) {
            return before.o_bound[before.flat(row, d)] + after.o_bound[after.flat(other, d)];
          });
      if (!before.lse.empty())
        judge.lse_of(after, other, before.lse[at] + std::log(2.0),
                     before.lse_bound[at] + after.lse_bound[there]);
    });
    return judge.finish();
  };
  try {
    return try_with(1);
  } catch (const Error&) {
  }
  try {
    return try_with(2);
  } catch (const Error& e) {
    return judge.not_tried(e.what());
  }
}

PropertyResult zero_q(const Subject& s) {
  Judge judge(Property::kZeroQ);
  const Problem& p = s.operands.problem();
  Operands zero = s.operands;
  for_each_row(p, [&](const RowIndex& row) {
    for (std::int64_t d = 0; d < p.head_dim; ++d) zero.q(row[0], row[1], row[2], d) = 0;
  });
  const TrialOutcome run = s.run(zero);
  for_each_row(p, [&](const RowIndex& row) {
    std::vector<double> mean(static_cast<std::size_t>(p.head_dim_v), 0.0);
    double keys = 0;
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
      if (!visible(p, row[2], j)) continue;
      ++keys;
      for (std::int64_t d = 0; d < p.head_dim_v; ++d)
        mean[static_cast<std::size_t>(d)] += zero.v(row[0], row[1] / group_size(p), j, d);
    }
    if (keys > 0)
      for (double& x : mean) x /= keys;
    judge.o_of(
        run, row, [&](std::int64_t d) { return mean[static_cast<std::size_t>(d)]; },
        [&](std::int64_t d) { return run.o_bound[run.flat(row, d)]; });
    judge.lse_of(run, row, std::log(keys), run.lse_bound[run.flat(row)]);
  });
  return judge.finish();
}

}  // namespace attn_diag::xraying
