#include "harness/report/check_report.h"

namespace attn_diag::report {
namespace {

using host::CheckAccess;
using host::CheckFinding;

Json places_json(const std::vector<host::SourcePlace>& places) {
  Json j = Json::array();
  for (const host::SourcePlace& p : places)
    j.push_back({{"file", p.file}, {"line", p.line}, {"function", p.function}});
  return j;
}

Json access_json(const CheckAccess& a) {
  Json j;
  j["block"] = a.block;
  j["thread"] = a.thread;
  j["barriers_passed"] = a.interval;
  j["bytes"] = a.bytes;
  j["write"] = a.write;
  j["atomic"] = a.atomic;
  j["volatile"] = a.is_volatile;
  j["async"] = a.async;
  j["places"] = places_json(a.places);
  j["symbol"] = a.symbol.empty() ? Json(nullptr) : Json(a.symbol);
  return j;
}

Json finding_json(const CheckFinding& f) {
  const auto or_null = [](const std::string& s) { return s.empty() ? Json(nullptr) : Json(s); };
  Json j;
  j["kind"] = host::name(f.kind);
  j["severity"] = host::name(f.severity);
  j["kernel"] = f.kernel;
  j["space"] = or_null(f.space);
  j["array"] = or_null(f.array);
  j["offset"] = f.space.empty() ? Json(nullptr) : Json(f.offset);
  j["element"] = or_null(f.element);
  j["byte_of_element"] = f.element.empty() ? Json(nullptr) : Json(f.byte_of_element);
  j["extents"] = or_null(f.extents);
  j["message"] = f.message;
  j["advice"] = f.advice;
  j["access"] = access_json(f.access);
  j["other"] = f.has_other ? access_json(f.other) : Json(nullptr);
  j["others_wait"] = Json::array();
  for (const std::vector<host::SourcePlace>& places : f.others_wait)
    j["others_wait"].push_back(places_json(places));
  j["further"] = f.folded;
  return j;
}

}  // namespace

Json check_json(const CheckView& view, const CommandContext& context) {
  Json j = json_head(context);
  j["verdict"] = view.clean() ? "clean" : "found";
  j["stale"] = view.result.provenance.stale();
  j["reproduce"] = context.reproduce;
  j["kernel"] = view.kernel;
  j["problem"] = to_json(view.problem);
  j["geometry"] = to_json(view.result.geometry);
  j["schedule"] = view.schedule;
  j["schedules"] = view.result.schedules;
  j["errors"] = view.count(host::Severity::kError);
  j["latent"] = view.count(host::Severity::kLatent);
  j["benign"] = view.count(host::Severity::kBenign);
  j["findings"] = Json::array();
  for (const CheckFinding& f : view.result.report.findings)
    j["findings"].push_back(finding_json(f));
  j["suppressed"] = Json::array();
  for (const SuppressedFinding& f : view.suppressed) {
    Json entry = finding_json(f.finding);
    entry["reason"] = f.reason;
    entry["suppression_line"] = f.line;
    j["suppressed"].push_back(entry);
  }
  j["unseen"] = Json::array();
  for (const host::UnseenCall& call : view.result.report.unseen)
    j["unseen"].push_back({{"what", call.what}, {"from", access_json(call.from)["places"]}});
  j["unused_suppressions"] = view.unused_suppressions;
  const host::CheckSummary& s = view.result.report.summary;
  j["checked"] = {{"launches", s.launches},     {"blocks", s.blocks},
                  {"loads", s.loads},           {"stores", s.stores},
                  {"local", s.local},           {"block_barriers", s.block_barriers},
                  {"warp_syncs", s.warp_syncs}, {"atomics", s.atomics},
                  {"fences", s.fences},         {"async_copies", s.async_copies},
                  {"unknown", s.unknown},       {"dropped", s.dropped}};
  j["notes"] = view.result.notes;
  return j;
}

}  // namespace attn_diag::report
