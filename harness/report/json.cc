#include "harness/report/json.h"

#include "harness/report/lines_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "harness/base/printable.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"
#include "harness/report/summary.h"
#include "harness/report/text.h"

namespace attn_diag::report {
namespace {

Json index_json(Tensor tensor, const std::array<std::int64_t, 5>& index) {
  Json j = Json::object();
  const TensorInfo& t = info(tensor);
  for (int i = 0; i < t.rank; ++i)
    j[std::string(name(t.axes[static_cast<std::size_t>(i)]))] = index[static_cast<std::size_t>(i)];
  return j;
}

Json mismatch_json(Tensor tensor, const std::optional<Mismatch>& m) {
  if (!m) return nullptr;
  Json j = index_json(tensor, m->index);
  j["expected"] = json_number(m->expected);
  j["actual"] = json_number(m->actual);
  j["bound"] = json_number(m->limit);
  return j;
}

Json optional_json(const std::optional<std::int64_t>& x) { return x ? Json(*x) : Json(nullptr); }

// Null where cells are wrong and no two numbers differ: all of these are NaN or infinite.
Json greatest_json(double greatest, std::int64_t mismatched) {
  return mismatched > 0 && greatest == 0 ? Json(nullptr) : json_number(greatest);
}

void add_figures(Json& j, const Summary& s) {
  j["max_err_over_bound"] = json_number(s.max_err_over_bound);
  j["max_abs_err"] = greatest_json(s.max_abs_err, s.mismatched);
  j["max_ulp"] =
      has_ulps(s.max_ulp, s.max_abs_err) ? greatest_json(s.max_ulp, s.mismatched) : Json(nullptr);
  j["mismatched"] = s.mismatched;
  j["compared"] = s.compared;
  j["not_judged"] = s.unjudged;
  j["zeros_err_over_bound"] = json_number(s.zeros_err_over_bound);
}

Json tensors_json(const Comparison& comparison, Stage stage) {
  Json j = Json::array();
  for (const TensorComparison& t : comparison.tensors)
    if (stage_of(t.tensor) == stage) j.push_back(to_json(t));
  return j;
}

Json stage_json(const StageReport& stage) {
  Json j;
  j["name"] = name(stage.stage);
  j["verdict"] = json_name(stage.verdict);
  if (!stage.exempt_reason.empty()) j["exempt_reason"] = stage.exempt_reason;
  Json figures;
  add_figures(figures, summarise(stage.prefix));
  j.update(figures);
  j["isolated_verdict"] = json_name(stage.isolated);
  j["isolated_max_err_over_bound"] = json_number(summarise(stage.isolation).max_err_over_bound);
  j["tensors"] = tensors_json(stage.prefix, stage.stage);
  return j;
}

Json first_json(const std::optional<FirstDivergence>& first) {
  if (!first) return nullptr;
  Json j;
  j["stage"] = name(first->stage);
  j["tensor"] = name(first->tensor);
  j["batch"] = first->batch;
  j["head"] = first->head;
  j["query"] = first->query;
  j["query_tile"] = first->query_tile;
  j["kv_tile"] = optional_json(first->kv_tile);
  j["split"] = optional_json(first->split);
  j["key"] = optional_json(first->key);
  j["dim"] = optional_json(first->dim);
  j["expected"] = json_number(first->expected);
  j["actual"] = json_number(first->actual);
  j["bound"] = json_number(first->bound);
  if (first->writes) j["writes"] = *first->writes;
  return j;
}

}  // namespace

Json json_number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

Json to_json(const Problem& p) {
  Json j;
  j["batch"] = p.batch;
  j["heads"] = p.heads;
  j["kv_heads"] = p.kv_heads;
  j["seqlen_q"] = p.seqlen_q;
  j["seqlen_k"] = p.seqlen_k;
  j["head_dim"] = p.head_dim;
  j["head_dim_v"] = p.head_dim_v;
  j["dtype"] = name(p.dtype);
  j["layout"] = name(p.layout);
  j["mask"] = mask_text(p);
  j["softmax_scale"] = json_number(p.softmax_scale);
  return j;
}

Json to_json(const Geometry& g) {
  Json j;
  j["tile"] = fmt::format("{}x{}", g.tile.block_m, g.tile.block_n);
  j["num_splits"] = g.num_splits;
  j["kv_tiles_per_split"] = g.tiles_per_split;
  return j;
}

Json to_json(const Region& r) {
  Json j;
  const std::array<const char*, 3> axes = {"batch", "head", "query"};
  for (std::size_t i = 0; i < 3; ++i) j[axes[i]] = {r.origin[i], r.origin[i] + r.extent[i]};
  return j;
}

Json to_json(const Provenance& p) {
  Json j;
  j["kernel"] = p.kernel;
  j["library"] = p.library;
  j["build_id"] = p.build_id;
  j["compiler"] = p.compiler;
  j["flags"] = p.flags;
  j["backend"] = p.backend;
  j["device"] = p.device;
  j["driver"] = p.driver;
  j["gate"] = p.gate;
  j["schedule"] = p.schedule;
  j["mma_order"] = p.mma_order;
  j["async_copies"] = p.async_copies;
  j["command_line"] = p.command_line;
  j["created"] = p.created;
  j["generator_version"] = p.generator_version;
  j["host"] = p.host;
  j["inputs"] = p.inputs;
  j["seed"] = p.seed;
  j["stale"] = p.stale();
  j["sources_missing"] = p.sources_missing();
  j["sources"] = Json::array();
  for (const SourceState& s : p.sources) {
    Json source;
    source["path"] = s.path;
    source["built_xxh3"] = fmt::format("{:016x}", s.built_hash);
    source["disk_xxh3"] = s.found ? Json(fmt::format("{:016x}", s.disk_hash)) : Json(nullptr);
    j["sources"].push_back(source);
  }
  return j;
}

Json to_json(const TensorComparison& t) {
  Json j;
  j["name"] = name(t.tensor);
  j["verdict"] = t.compared == 0 ? "not_judged" : json_name(t.answer());
  j["max_err_over_bound"] = json_number(t.max_err_over_bound);
  j["max_abs_err"] = greatest_json(t.max_abs_err, t.mismatched);
  j["max_rel_err"] = greatest_json(t.max_rel_err, t.mismatched);
  j["max_ulp"] =
      has_ulps(t.max_ulp, t.max_abs_err) ? greatest_json(t.max_ulp, t.mismatched) : Json(nullptr);
  j["mismatched"] = t.mismatched;
  j["compared"] = t.compared;
  j["nan"] = t.nan_actual;
  j["not_judged"] = t.unjudged;
  j["zeros_err_over_bound"] = json_number(t.zeros_err_over_bound);
  j["first_mismatch"] = mismatch_json(t.tensor, t.first);
  j["worst_mismatch"] = mismatch_json(t.tensor, t.worst);
  j["wrong_rows"] = t.wrong_rows.size();
  return j;
}

Json json_head(const CommandContext& context) {
  return {{"schema", kJsonSchema}, {"version", context.version}, {"command", context.command}};
}

Json json_head(const CommandContext& context, Answer answer, bool stale) {
  Json j = json_head(context);
  j["verdict"] = json_name(answer);
  j["stale"] = stale;
  j["reproduce"] = context.reproduce;
  return j;
}

Json stages_json(const Comparison& comparison) {
  Json j = Json::array();
  for (int i = 0; i < kNumStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    const Summary s = summarise(comparison, stage);
    if (s.compared + s.unjudged == 0) continue;
    Json entry;
    entry["name"] = name(stage);
    entry["verdict"] = s.compared == 0 ? "not_judged" : json_name(s.answer());
    add_figures(entry, s);
    entry["tensors"] = tensors_json(comparison, stage);
    j.push_back(entry);
  }
  return j;
}

Json input_writes_json(const Capture& capture) {
  Json j = Json::array();
  for (const InputWrite& w : capture.input_writes) {
    Json entry;
    entry["input"] = std::string(1, w.input);
    entry["cells"] = w.cells;
    entry["first"] = w.index;
    entry["before"] = json_number(w.before);
    entry["after"] = json_number(w.after);
    j.push_back(entry);
  }
  return j;
}

Json coverage_json(const Capture& capture) {
  Json j = Json::array();
  for (const TensorInfo& t : kTensors) {
    const Coverage& c = capture.coverage[static_cast<std::size_t>(t.id)];
    if (c.never + c.repeatedly == 0) continue;
    Json entry;
    entry["tensor"] = t.name;
    entry["never_written"] = c.never;
    entry["repeatedly_written"] = c.repeatedly;
    entry["first_never"] = c.first_never ? index_json(t.id, c.first_never->index) : Json(nullptr);
    entry["first_repeated"] =
        c.first_repeated ? index_json(t.id, c.first_repeated->index) : Json(nullptr);
    j.push_back(entry);
  }
  return j;
}

Json trace_json(const TraceResult& r, const CommandContext& context) {
  const Capture& c = r.capture;
  Json j = json_head(context, r.answer(), c.provenance.stale());
  if (r.latent()) j["verdict"] = "latent";
  j["shown"] = r.calmly.empty() ? Json(nullptr) : Json(r.calmly);
  j["same_output"] = to_json(c.same_output);
  j["sanity"] = to_json(r.sanity, context.check);
  j["kernel"] = c.provenance.kernel;
  j["backend"] = c.provenance.backend;
  j["problem"] = to_json(c.problem);
  j["geometry"] = to_json(c.geometry);
  j["region"] = to_json(c.region);
  j["judged"] = r.judged();
  j["cells"] = r.cells();
  j["input_writes"] = input_writes_json(c);
  j["stages"] = Json::array();
  for (const StageReport& s : r.stages) j["stages"].push_back(stage_json(s));
  j["first_divergence"] = first_json(r.first);
  j["line_divergence"] = r.lines ? to_json(*r.lines) : Json(nullptr);
  j["memory_errors"] = r.memory_errors ? Json(*r.memory_errors) : Json(nullptr);
  j["pattern"] = Json::array();
  for (const PatternStatement& p : r.pattern) {
    Json statement;
    statement["kind"] = p.kind == StatementKind::kWrong   ? "wrong"
                        : p.kind == StatementKind::kExact ? "exact"
                                                          : "hint";
    statement["text"] = p.text;
    j["pattern"].push_back(statement);
  }
  j["coverage"] = coverage_json(c);
  j["runs"] = c.repetition.runs;
  j["moved_cells"] = c.repetition.moved_cells();

  j["closure"] = nullptr;
  if (r.closure) {
    Json closure;
    closure["second_fault"] = r.second_fault;
    closure["stages"] = stages_json(*r.closure);
    j["closure"] = closure;
  }
  Json observer;
  observer["checked"] = r.observer_checked;
  observer["identical"] = r.observer_checked ? Json(r.observer_identical) : Json(nullptr);
  observer["differing"] = r.observer_differing;
  observer["production_verdict"] =
      r.production.tensors.empty() ? "not_run" : json_name(r.production.answer());
  j["observer"] = observer;
  Json schedules;
  schedules["finding"] = json_name(r.schedules);
  schedules["detail"] = r.schedules_detail;
  j["schedules"] = schedules;

  double zeros = 0;
  for (const StageReport& s : r.stages)
    for (const TensorComparison& t : s.prefix.tensors)
      if (t.tensor == Tensor::kO) zeros = t.zeros_err_over_bound;
  j["zeros_err_over_bound"] = json_number(zeros);
  j["notes"] = r.notes;
  for (const std::string& note : c.notes) j["notes"].push_back(note);
  j["provenance"] = to_json(c.provenance);
  return j;
}

std::string dump_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  // JSON itself escapes the control characters of ASCII, except DEL.
  for (std::size_t i = 0, n; i < text.size(); i += n) {
    const CodePoint first = first_code_point(std::string_view(text).substr(i));
    n = std::max<std::size_t>(1, first.bytes);
    if (is_control(first.value) && first.value != '\n')
      out += fmt::format("\\u{:04x}", first.value);
    else
      out.append(text, i, n);
  }
  return out + '\n';
}

}  // namespace attn_diag::report
