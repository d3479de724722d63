// A row of o depends on its own q, its own head's k and v, and of those on visible keys alone. What it
// does not depend on is changed, by other and larger numbers; the row has to stay as it is.
#include <array>
#include <cmath>
#include <functional>

#include "attn_diag/reference/reference.h"
#include "harness/xray/properties.h"

namespace attn_diag::xraying {
namespace {

// Larger where that overflows nothing that the number itself does not.
double other(double x) { return std::fabs(x) > 64.0 ? -0.5 * x : 1.0 - 4.0 * x; }

void change_key(Operands& to, std::int64_t b, std::int64_t h, std::int64_t j) {
  const Problem& p = to.problem();
  for (std::int64_t d = 0; d < p.head_dim; ++d) to.k(b, h, j, d) = other(to.k(b, h, j, d));
  for (std::int64_t d = 0; d < p.head_dim_v; ++d) to.v(b, h, j, d) = other(to.v(b, h, j, d));
}

void change_query(Operands& to, const RowIndex& row) {
  for (std::int64_t d = 0; d < to.problem().head_dim; ++d) {
    double& x = to.q(row[0], row[1], row[2], d);
    x = other(x);
  }
}

// Runs with everything changed of one half; rows of the other half must stay.
template <class Change>
void halves(const Subject& s, Judge& judge, const Change& change,
            const std::function<bool(const RowIndex&, int half)>& stays) {
  for (const int half : {0, 1}) {
    Operands changed = s.operands;
    change(changed, half);
    const TrialOutcome run = s.run(changed);
    for_each_row(s.operands.problem(), [&](const RowIndex& row) {
      if (stays(row, half)) judge.same_bits(run, s.base, row);
    });
  }
}

}  // namespace

PropertyResult other_heads(const Subject& s) {
  Judge judge(Property::kOtherHeads);
  const Problem& p = s.operands.problem();
  if (p.batch * p.kv_heads == 1)
    return judge.not_tried("there is one batch entry and one KV head; take --heads 2 or --batch 2");
  // Every second KV head, with its queries.
  const auto half_of = [&](std::int64_t b, std::int64_t kv_head) {
    return static_cast<int>((b * p.kv_heads + kv_head) % 2);
  };
  halves(
      s, judge,
      [&](Operands& to, int half) {
        for_each_row(p, [&](const RowIndex& row) {
          if (half_of(row[0], row[1] / group_size(p)) == half) change_query(to, row);
        });
        to.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
          if (half_of(b, h) == half) change_key(to, b, h, j);
        });
      },
      [&](const RowIndex& row, int half) {
        return half_of(row[0], row[1] / group_size(p)) != half;
      });
  return judge.finish();
}

PropertyResult other_queries(const Subject& s) {
  Judge judge(Property::kOtherQueries);
  const Problem& p = s.operands.problem();
  if (p.seqlen_q == 1) return judge.not_tried("there is one query; take --seqlen-q 2 or more");
  halves(
      s, judge,
      [&](Operands& to, int half) {
        for_each_row(p, [&](const RowIndex& row) {
          if (row[2] % 2 == half) change_query(to, row);
        });
      },
      [](const RowIndex& row, int half) { return row[2] % 2 != half; });
  return judge.finish();
}

PropertyResult masked_keys(const Subject& s) {
  Judge judge(Property::kMaskedKeys);
  const Problem& p = s.operands.problem();
  if (p.mask.kind == MaskKind::kNone)
    return judge.not_tried("no key is masked; take --mask causal");
  // Not at a tile's edge.
  const std::int64_t middle = (p.seqlen_k / 2) | 1;
  const auto half_of = [&](std::int64_t key) { return key < middle ? 0 : 1; };
  const auto sees = [&](std::int64_t query, int half) {
    for (std::int64_t j = 0; j < p.seqlen_k; ++j)
      if (half_of(j) == half &&
          reference::visible(p, static_cast<std::int32_t>(query), static_cast<std::int32_t>(j)))
        return true;
    return false;
  };
  halves(
      s, judge,
      [&](Operands& to, int half) {
        to.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
          if (half_of(j) == half) change_key(to, b, h, j);
        });
      },
      [&](const RowIndex& row, int half) { return !sees(row[2], half); });
  return judge.finish();
}

}  // namespace attn_diag::xraying
