// The page for terminals and for programs.
#include <fmt/format.h>

#include <algorithm>

#include "harness/report/comparison_text.h"
#include "harness/report/lines_report.h"
#include "harness/report/map_text.h"
#include "harness/report/page.h"
#include "harness/report/picture.h"
#include "harness/report/trace_text.h"

namespace attn_diag::report {
namespace {

constexpr int kColumns = 80;
constexpr std::size_t kMostHistograms = 2;

// The tensor to look at: the first wrong one, else o.
Tensor chosen(const PageView& view) {
  if (view.first != nullptr && *view.first) return (*view.first)->tensor;
  for (const TensorComparison& t : view.comparison->tensors)
    if (t.tensor == Tensor::kO) return t.tensor;
  return view.comparison->tensors.front().tensor;
}

// A wrong tensor of the same stage that has tiles of keys or splits to be seen.
const TensorComparison* tiled(const PageView& view, Tensor tensor) {
  for (const TensorComparison& t : view.comparison->tensors)
    if (stage_of(t.tensor) == stage_of(tensor) && t.mismatched > 0 && t.picture_shape[3] > 1)
      return &t;
  return nullptr;
}

std::string pictures(const PageView& view, const Style& style) {
  const Capture& c = *view.capture;
  const Tensor tensor = chosen(view);
  std::string s;
  for (const TensorComparison& t : view.comparison->tensors)
    if (t.tensor == tensor) s += heads_text(t, c.region, style);
  if (const TensorComparison* t = tiled(view, tensor))
    s += '\n' + picture(*t, c.problem, c.geometry, c.region, style);
  for (const ErrorMap& map : view.maps->maps)
    if (map.tensor == tensor) {
      s += '\n' + map_text(map, c.problem, style);
      break;
    }
  std::size_t shown = 0;
  for (const ErrorHistogram& h : view.maps->histograms)
    if ((h.tensor == tensor || h.tensor == Tensor::kO) && shown++ < kMostHistograms)
      s += '\n' + histogram_text(h, style);
  return s;
}

}  // namespace

std::string page_text(const PageView& view, const Style& wide) {
  Style style = wide;
  style.width = std::min(style.width, kColumns);
  const auto paragraph = [&](const std::string& text) {
    return text.empty() ? "" : "  " + wrap(text, style.width - 2, 4) + '\n';
  };
  std::string s = view.capture == nullptr ? "" : stale_text(view.capture->provenance, style);
  s += paint(style, view.latent ? Colour::kYellow : colour_of(view.answer),
             wrap(view.headline, style.width, 2)) +
       '\n';
  if (view.first != nullptr && *view.first)
    s += paragraph(first_cell_text(**view.first, view.tolerance, style));
  if (view.lines != nullptr) s += paragraph(lines_line(*view.lines));
  if (view.diagnosis != nullptr) s += paragraph(diagnosis_headline(*view.diagnosis));
  if (view.check != nullptr) s += paragraph("Memory: " + check_headline(*view.check));
  if (view.maps != nullptr) s += '\n' + pictures(view, style);
  if (view.maps == nullptr) s += paragraph(view.no_maps);
  return s + "  Reproduce: " + view.reproduce + '\n';
}

Json page_json(const PageView& view, const CommandContext& context) {
  Json j =
      json_head(context, view.answer, view.capture != nullptr && view.capture->provenance.stale());
  if (view.latent) j["verdict"] = "latent";
  j["subject"] = view.subject;
  j["headline"] = view.headline;
  j["diagnosis"] =
      view.diagnosis == nullptr ? Json(nullptr) : Json(diagnosis_headline(*view.diagnosis));
  j["line"] = view.lines == nullptr ? Json(nullptr) : Json(lines_line(*view.lines));
  j["check"] = view.check == nullptr ? Json(nullptr) : Json(check_headline(*view.check));
  j["tensors"] = Json::array();
  if (view.maps == nullptr) return j;
  for (const ErrorHistogram& h : view.maps->histograms) {
    Json one;
    one["name"] = name(h.tensor);
    one["storage"] = name(h.storage);
    one["by_limit"] = h.by_limit;
    one["by_ulp"] = h.by_ulp;
    j["tensors"].push_back(one);
  }
  return j;
}

}  // namespace attn_diag::report
