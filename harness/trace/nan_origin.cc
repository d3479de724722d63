#include "harness/trace/nan_origin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

#include "attn_diag/reference/reference.h"
#include "harness/base/index_ranges.h"
#include "harness/run/run_memory.h"

namespace attn_diag {
namespace {

using Indices = std::vector<std::int64_t>;

// A NaN that was computed: not what lay in o or lse before the run.
bool is_nan(const Capture& c, const TensorData& data, std::int64_t cell) {
  if (!std::isnan(data.at(cell))) return false;
  const std::string& backend = c.provenance.backend;
  const bool poisoned = is_output(data.id, c.arithmetic.part) &&
                        (backend == "host" || backend == "cuda") &&
                        c.coverage[static_cast<std::size_t>(data.id)].never > 0;
  return !poisoned ||
         !is_poison(data.bytes.data() + static_cast<std::size_t>(cell) * size_of(data.dtype),
                    data.dtype);
}

struct NaNs {
  std::int64_t cells = 0, first = -1;
};

NaNs nans_of(const Capture& c, const TensorData& data) {
  NaNs out;
  for (std::int64_t i = 0; i < data.size(); ++i)
    if (is_nan(c, data, i) && out.cells++ == 0) out.first = i;
  return out;
}

std::string index_of(const TensorData& data, std::int64_t cell) {
  Indices index(data.shape.size());
  for (std::size_t axis = data.shape.size(); axis-- > 0;) {
    index[axis] = data.origin[axis] + cell % data.shape[axis];
    cell /= data.shape[axis];
  }
  return fmt::format("{}({})", name(data.id), fmt::join(index, ", "));
}

// Rows of an operand, [batch][head][position], that hold NaN or infinity.
struct BadRows {
  std::int64_t elements = 0;
  Indices positions;  // ascending, of any head
};

BadRows bad_rows(const std::vector<std::byte>& bytes, const Problem& p, std::int32_t heads,
                 std::int32_t seqlen, std::int32_t dim) {
  BadRows bad;
  const Strides strides = dense_strides(p.layout, heads, seqlen, dim);
  for (std::int64_t s = 0; s < seqlen; ++s) {
    std::int64_t here = 0;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t d = 0; d < dim; ++d)
          here += !std::isfinite(load_element(
              bytes.data(), p.dtype, b * strides.batch + h * strides.head + s * strides.seq + d));
    bad.elements += here;
    if (here > 0) bad.positions.push_back(s);
  }
  return bad;
}

void say_inputs(const Capture& c, std::vector<std::string>& out) {
  const Problem& p = c.problem;
  struct Operand {
    const char *name, *row;
    const SharedBytes* bytes;
    std::int32_t heads, seqlen, dim;
  };
  for (const Operand& operand :
       {Operand{"q", "queries", &c.q, p.heads, p.seqlen_q, p.head_dim},
        Operand{"k", "keys", &c.k, p.kv_heads, p.seqlen_k, p.head_dim},
        Operand{"v", "keys", &c.v, p.kv_heads, p.seqlen_k, p.head_dim_v}}) {
    if (operand.bytes->empty()) continue;
    const BadRows bad = bad_rows(*operand.bytes, p, operand.heads, operand.seqlen, operand.dim);
    if (bad.elements > 0)
      out.push_back(fmt::format("{} itself holds {} NaN or infinite elements, of {} {}",
                                operand.name, bad.elements, operand.row,
                                index_ranges(bad.positions)));
  }
}

// How many rows of o hold NaN, and how many nothing else; of_query: whether some row of a query holds NaN.
struct NaNRows {
  std::int64_t rows = 0, whole = 0;
  bool alike = true;  // in every batch entry and head
  std::vector<std::uint8_t> of_query;
};

NaNRows nan_rows(const Capture& c) {
  const TensorData& o = c[Tensor::kO];
  const std::int64_t dims = o.shape[3], queries = o.shape[2];
  NaNRows out;
  out.of_query.assign(static_cast<std::size_t>(queries), 0);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(queries), 0);
  for (std::int64_t row = 0; row < o.size() / dims; ++row) {
    std::int64_t nan = 0;
    for (std::int64_t d = 0; d < dims; ++d) nan += is_nan(c, o, row * dims + d);
    if (nan == 0) continue;
    ++out.rows;
    out.whole += nan == dims;
    ++counts[static_cast<std::size_t>(row % queries)];
  }
  for (std::size_t q = 0; q < counts.size(); ++q) {
    out.of_query[q] = counts[q] > 0 ? 1 : 0;
    out.alike = out.alike && (counts[q] == 0 || counts[q] == o.shape[0] * o.shape[1]);
  }
  return out;
}

// The keys that the queries with NaN see and no other does.
Indices keys_of(const Capture& c, const NaNRows& rows) {
  Indices keys;
  const auto first = static_cast<std::int32_t>(c.region.origin[2]);
  for (std::int32_t key = 0; key < c.problem.seqlen_k; ++key) {
    bool tells = true;
    for (std::size_t q = 0; q < rows.of_query.size() && tells; ++q)
      tells = (rows.of_query[q] != 0) ==
              reference::visible(c.problem, first + static_cast<std::int32_t>(q), key);
    if (tells) keys.push_back(key);
  }
  return keys;
}

void say_rows(const Capture& c, std::vector<std::string>& out) {
  const NaNRows rows = nan_rows(c);
  if (rows.rows == 0) return;
  const TensorData& o = c[Tensor::kO];
  const std::int64_t all = o.shape[0] * o.shape[1] * o.shape[2];
  Indices queries;
  for (std::size_t q = 0; q < rows.of_query.size(); ++q)
    if (rows.of_query[q] != 0) queries.push_back(c.region.origin[2] + static_cast<std::int64_t>(q));
  std::string text = fmt::format("{} of {} rows of o hold NaN, {} of them in every dim", rows.rows,
                                 all, rows.whole);
  if (rows.rows < all)
    text +=
        fmt::format(": {}queries {}", rows.alike ? "of every head, " : "", index_ranges(queries));
  out.push_back(std::move(text));
  if (!rows.alike || queries.size() == rows.of_query.size()) return;
  const Indices keys = keys_of(c, rows);
  if (!keys.empty())
    out.push_back(fmt::format("the rows of o with NaN are those that see key {}, and no others",
                              index_ranges(keys)));
}

}  // namespace

std::vector<std::string> where_nan_begins(const Capture& c) {
  std::vector<std::string> out;
  std::vector<std::string_view> without;
  const TensorData* first = nullptr;
  NaNs nans;
  for (const TensorInfo& t : kTensors) {
    // What an x-ray reconstructed comes from o.
    if (!c.has(t.id) || !c[t.id].uncertainty.empty()) continue;
    nans = nans_of(c, c[t.id]);
    if (nans.cells > 0) {
      first = &c[t.id];
      break;
    }
    without.push_back(t.name);
  }
  if (first == nullptr) return out;
  out.push_back(
      fmt::format("NaN begins in {}: {} of {} cells, first {}; before it {}", name(first->id),
                  nans.cells, first->size(), index_of(*first, nans.first),
                  without.empty() ? "nothing was recorded"
                                  : fmt::format("{} hold none", fmt::join(without, ", "))));
  say_inputs(c, out);
  if (c.has(Tensor::kO)) say_rows(c, out);
  return out;
}

}  // namespace attn_diag
