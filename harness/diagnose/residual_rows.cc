#include "harness/diagnose/residual_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "harness/diagnose/judge.h"
#include "harness/diagnose/sample.h"

namespace attn_diag::matching {
namespace {

constexpr int kLooked = 24;                        // wrong rows
constexpr std::int64_t kShareNamedRows = 1 << 15;  // right rows they are looked for among
constexpr double kShareNamed = 0.8;                // share of them that a sentence needs
constexpr std::int64_t kRowsAtOnce = 256;

// Whether recorded cells are the right ones of another place, column order[i] for column i.
bool equals(const double* actual, const double* right, const double* bound,
            const std::vector<std::size_t>& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (!(residual_over_bound(actual[i], right[order[i]], bound[order[i]]) <= 1)) return false;
  return true;
}

// Permutations of the columns that fragments and vector types make.
struct ColumnOrder {
  std::string text;  // empty: none
  std::vector<std::size_t> order;
};
std::vector<ColumnOrder> column_orders(std::size_t n) {
  std::vector<ColumnOrder> all;
  const auto add = [&](std::string text, auto from) {
    ColumnOrder o{std::move(text), std::vector<std::size_t>(n)};
    for (std::size_t i = 0; i < n; ++i) o.order[i] = from(i);
    if (std::all_of(o.order.begin(), o.order.end(), [n](std::size_t i) { return i < n; }))
      all.push_back(std::move(o));
  };
  add("", [](std::size_t i) { return i; });
  for (const std::size_t bit : {1, 2, 4, 8, 16, 32, 64})
    add(fmt::format("with columns d and d xor {} swapped", bit),
        [bit](std::size_t i) { return i ^ bit; });
  add("with its columns in reverse", [n](std::size_t i) { return n - 1 - i; });
  return all;
}

struct Found {
  std::int64_t batch = 0, head = 0, query = 0;  // how far off its place
  std::size_t order = 0;
  auto operator<=>(const Found&) const = default;
};

std::string text_of(const Found& f, const std::vector<ColumnOrder>& orders) {
  std::string place;
  const auto add = [&](std::int64_t off, const char* axis) {
    if (off != 0) place += fmt::format("{}{} {:+}", place.empty() ? "" : ", ", axis, off);
  };
  add(f.batch, "batch");
  add(f.head, "head");
  add(f.query, "query");
  std::string s =
      place.empty() ? "the right row" : fmt::format("the right row of another place ({})", place);
  if (!orders[f.order].text.empty()) s += ' ' + orders[f.order].text;
  return s;
}

}  // namespace

std::vector<double> mean_of_v(const Capture& capture, std::int32_t batch, std::int32_t head) {
  const Problem& p = capture.problem;
  const Strides strides = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v);
  const std::int64_t first = batch * strides.batch + head / group_size(p) * strides.head;
  std::vector<double> mean(static_cast<std::size_t>(p.head_dim_v), 0.0);
  for (std::int32_t key = 0; key < p.seqlen_k; ++key)
    for (std::int32_t d = 0; d < p.head_dim_v; ++d)
      mean[static_cast<std::size_t>(d)] +=
          load_element(capture.v.data(), p.dtype, first + key * strides.seq + d) / p.seqlen_k;
  return mean;
}

std::vector<std::string> moved_rows(const Evidence& evidence,
                                    const reference::PredictionInputs& c) {
  const std::int64_t total = evidence.rows();
  if (total > kShareNamedRows) return {};
  std::vector<std::int64_t> wrong;
  for (std::int64_t row = 0; row < total; ++row)
    if (evidence.wrong(row)) wrong.push_back(row);
  wrong = spread(wrong, kLooked);
  const Rows looked = read_rows(evidence, c, wrong);
  const auto n = static_cast<std::size_t>(evidence.cells(Tensor::kO));
  const std::vector<ColumnOrder> orders = column_orders(n);
  const std::vector<double>& actual = looked.actual[static_cast<std::size_t>(Tensor::kO)];

  std::vector<std::optional<Found>> found(looked.size());
  std::vector<std::int64_t> distance(looked.size(), total);
  for (std::int64_t begin = 0; begin < total; begin += kRowsAtOnce) {
    std::vector<reference::RowIndex> rows;
    for (std::int64_t row = begin; row < std::min(total, begin + kRowsAtOnce); ++row)
      rows.push_back(evidence.row(row));
    reference::Prediction right;
    reference::predict(c, rows, {}, tensor_bit(Tensor::kO), right);
    const reference::Prediction::Values& o = right[Tensor::kO];
    for (std::size_t k = 0; k < looked.size(); ++k)
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const std::int64_t off = std::abs(begin + static_cast<std::int64_t>(r) - looked.flat[k]);
        if (off >= distance[k]) continue;
        for (std::size_t i = 0; i < orders.size(); ++i) {
          if (!equals(&actual[k * n], &o.value[r * n], &o.bound[r * n], orders[i].order)) continue;
          const reference::RowIndex& at = looked.row[k];
          found[k] =
              Found{rows[r].batch - at.batch, rows[r].head - at.head, rows[r].query - at.query, i};
          distance[k] = off;
          break;
        }
      }
  }
  std::map<Found, std::int64_t> counts;
  std::int64_t any = 0;
  for (const std::optional<Found>& f : found)
    if (f) ++any, ++counts[*f];
  const auto most = static_cast<double>(looked.size()) * kShareNamed;
  for (const auto& [f, n_rows] : counts)
    if (static_cast<double>(n_rows) >= most)
      return {fmt::format("each wrong row is {}", text_of(f, orders))};
  if (static_cast<double>(any) < most) return {};
  std::vector<std::string> kinds;
  for (const auto& [f, n_rows] : counts)
    if (kinds.size() < 4) kinds.push_back(fmt::format("{} ({} rows)", text_of(f, orders), n_rows));
  return {fmt::format("the wrong rows are right ones in other places: {}", fmt::join(kinds, "; "))};
}

}  // namespace attn_diag::matching
