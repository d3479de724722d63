// What the script of the page draws.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "attn_diag/reference/reference.h"
#include "harness/report/page.h"
#include "harness/report/trace_text.h"

namespace attn_diag::report {
namespace {

// A tensor with more tiles gets no picture by tile: the strip of heads remains.
constexpr std::int64_t kMostTiles = 20000;

// Little-endian numbers in base64: exact, with NaN and infinities, and a third of the size of digits.
template <class T>
std::string packed(const std::vector<T>& values) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : kDigits[word >> (18 - 6 * k) & 63];
  }
  return out;
}

std::vector<float> as_floats(const std::vector<double>& values) {
  std::vector<float> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(),
                 [](double x) { return static_cast<float>(x); });
  return out;
}

bool masked(const TensorComparison& t, const Capture& c, std::int64_t tile) {
  const std::int64_t wide = t.picture_shape[3],
                     first = c.region.origin[2] / c.geometry.tile.block_m;
  return wide == num_kv_tiles(c.problem, c.geometry) &&
         reference::tile_fully_masked(
             c.problem, c.geometry,
             static_cast<std::int32_t>(first + tile / wide % t.picture_shape[2]),
             static_cast<std::int32_t>(tile % wide));
}

// The largest err/limit of each tile, of every head; -1 where nothing was judged or all is masked.
Json tiles_json(const TensorComparison& t, const Capture& c) {
  std::vector<float> tiles, heads;
  const std::int64_t per_head = t.picture_shape[2] * t.picture_shape[3];
  for (std::size_t i = 0; i < t.picture.size(); ++i) {
    const TileError& tile = t.picture[i];
    const bool nothing =
        tile.mismatched == 0 && (tile.compared == 0 || masked(t, c, static_cast<std::int64_t>(i)));
    const float worst = nothing ? -1.0F : static_cast<float>(tile.max_err_over_bound);
    tiles.push_back(worst);
    if (static_cast<std::int64_t>(i) % per_head == 0) heads.push_back(-1.0F);
    heads.back() = std::max(heads.back(), worst);
  }
  Json j;
  j["heads"] = packed(heads);
  const TensorInfo& tensor = info(t.tensor);
  j["axis"] = tensor.rank > 3 && tensor.axes[3] == Axis::kSplit ? "split" : "KV tile";
  j["down"] = t.picture_shape[2];
  j["wide"] = t.picture_shape[3];
  j["tiles"] = std::ssize(tiles) <= kMostTiles ? Json(packed(tiles)) : Json(nullptr);
  return j;
}

// The upper halves of floats: enough for a colour. What is beyond 1 stays beyond it.
std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> out;
  for (const float x : values) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const bool up = std::isfinite(x) && x > 1 && (bits & 0xffffU) != 0;
    out.push_back(static_cast<std::uint16_t>((bits >> 16) + (up ? 1 : 0)));
  }
  return out;
}

Json map_json(const ErrorMap& map) {
  Json j;
  j["batch"] = map.batch;
  j["head"] = map.head;
  j["queries"] = map.queries;
  j["columns"] = map.columns;
  j["by_query"] = map.by_query;
  j["by_column"] = map.by_column;
  j["worst"] = packed(halves(map.worst));
  return j;
}

Json window_json(const CellWindow& w) {
  const TensorInfo& t = info(w.tensor);
  Json j;
  j["batch"] = w.first[0];
  j["head"] = w.first[1];
  j["query"] = w.first[2];
  j["column"] = t.rank > 3 ? w.first[static_cast<std::size_t>(t.rank) - 1] : 0;
  j["rows"] = w.rows;
  j["columns"] = w.columns;
  // The tile or split of the values, for a tensor that has them.
  j["of"] = t.rank > 4 ? Json(w.first[3]) : Json(nullptr);
  j["actual"] = packed(as_floats(w.actual));
  j["expected"] = packed(w.expected);
  j["limit"] = packed(as_floats(w.limit));
  return j;
}

Json tensor_json(const PageView& view, const TensorComparison& t) {
  const TensorInfo& tensor = info(t.tensor);
  Json j;
  j["name"] = tensor.name;
  j["stage"] = name(tensor.stage);
  j["across"] = tensor.rank > 3 ? Json(name(tensor.axes[static_cast<std::size_t>(tensor.rank) - 1]))
                                : Json(nullptr);
  j["between"] = tensor.rank > 4 ? Json(name(tensor.axes[3])) : Json(nullptr);
  j["mismatched"] = t.mismatched;
  j["compared"] = t.compared;
  j["max"] = json_number(t.max_err_over_bound);
  j["picture"] = tiles_json(t, *view.capture);
  j["maps"] = Json::array();
  for (const ErrorMap& map : view.maps->maps)
    if (map.tensor == t.tensor) j["maps"].push_back(map_json(map));
  j["windows"] = Json::array();
  for (const CellWindow& w : view.maps->windows)
    if (w.tensor == t.tensor) j["windows"].push_back(window_json(w));
  for (const ErrorHistogram& h : view.maps->histograms) {
    if (h.tensor != t.tensor) continue;
    j["storage"] = name(h.storage);
    j["by_limit"] = h.by_limit;
    j["by_ulp"] = h.by_ulp;
  }
  return j;
}

}  // namespace

Json page_data(const PageView& view) {
  Json j;
  j["tensors"] = Json::array();
  if (view.maps == nullptr || view.capture == nullptr) return j;
  const Capture& c = *view.capture;
  j["tile"] = {c.geometry.tile.block_m, c.geometry.tile.block_n};
  j["heads"] = {c.region.extent[0], c.region.extent[1]};
  j["origin"] = c.region.origin;
  j["batches"] = c.problem.batch;
  j["exponents"] = {ErrorHistogram::kFirstExponent, ErrorHistogram::kLastExponent};
  j["limit"] = view.tolerance.use_bound ? "bound" : "tolerance";
  j["show"] = view.show;
  j["first"] = nullptr;
  if (view.first != nullptr && *view.first) {
    const FirstDivergence& first = **view.first;
    const std::array<std::int64_t, 5> index = index_of(first);
    const int rank = info(first.tensor).rank;
    j["first"] = {{"tensor", name(first.tensor)},
                  {"batch", first.batch},
                  {"head", first.head},
                  {"query", first.query},
                  {"column", rank > 3 ? index[static_cast<std::size_t>(rank) - 1] : 0}};
  }
  for (const TensorComparison& t : view.comparison->tensors)
    j["tensors"].push_back(tensor_json(view, t));
  return j;
}

}  // namespace attn_diag::report
