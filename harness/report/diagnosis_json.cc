#include "harness/report/diagnosis.h"
#include "harness/report/lines_report.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"

namespace attn_diag::report {
namespace {

Json parameters_json(const std::vector<reference::ParameterValue>& parameters) {
  Json all = Json::object();
  for (const reference::ParameterValue& p : parameters) {
    Json one;
    one["value"] = json_number(p.value);
    one["named"] = p.named.empty() ? Json(nullptr) : Json(p.named);
    all[std::string(p.name)] = one;
  }
  return all;
}

Json part_json(const Match::Part& part) {
  Json j;
  j["id"] = part.id;
  j["statement"] = part.statement;
  j["formula"] = part.formula;
  j["stage"] = attn_diag::name(part.stage);
  j["parameters"] = parameters_json(part.parameters);
  j["citation"] = part.citation;
  j["remedy"] = part.remedy;
  return j;
}

Json match_json(const Match& m) {
  Json j;
  std::vector<std::string> ids, statements;
  Json parameters = Json::object();
  for (const Match::Part& part : m.parts) {
    ids.push_back(part.id);
    statements.push_back(part.statement);
    parameters.update(parameters_json(part.parameters));
  }
  j["id"] = join(ids, "+");
  j["label"] = m.label;
  j["statement"] = join(statements, "; and ");
  j["parameters"] = parameters;
  j["parts"] = Json::array();
  for (const Match::Part& part : m.parts) j["parts"].push_back(part_json(part));
  j["rows"] = m.rows;
  j["rows_explained"] = m.rows_explained;
  j["wrong_rows"] = m.wrong_rows;
  j["wrong_rows_explained"] = m.wrong_rows_explained;
  j["residual_over_bound"] = json_number(m.residual_over_bound);
  j["median_residual_over_bound"] = json_number(m.median_residual_over_bound);
  j["telling_rows"] = m.telling_rows;
  j["confirmed"] = m.confirmed;
  j["line"] = m.line == LineSays::kAgrees      ? Json("agrees")
              : m.line == LineSays::kOtherwise ? Json("otherwise")
                                               : Json(nullptr);
  return j;
}

Json why_not_json(const WhyNot& w) {
  Json j = match_json(w.match);
  j["possible"] = w.possible;
  j["stage_agrees"] = w.exonerated;
  j["worst"] = nullptr;
  if (w.worst) {
    Json cell;
    cell["tensor"] = attn_diag::name(w.worst->tensor);
    cell["index"] = Json::array();
    for (int i = 0; i < info(w.worst->tensor).rank; ++i)
      cell["index"].push_back(w.worst->index[static_cast<std::size_t>(i)]);
    cell["actual"] = json_number(w.worst->actual);
    cell["predicted"] = json_number(w.worst->predicted);
    cell["bound"] = json_number(w.worst->bound);
    j["worst"] = cell;
  }
  return j;
}

Json tiles_json(const TileFinding& tiles) {
  Json j;
  j["follows"] = attn_diag::name(tiles.follows);
  j["foretold"] = json_number(tiles.foretold);
  j["statements"] = tiles.statements;
  j["trials"] = Json::array();
  for (const TileTrial& trial : tiles.trials) {
    Json one;
    one["label"] = trial.label;
    one["wrong_rows"] = trial.wrong_rows;
    j["trials"].push_back(one);
  }
  return j;
}

}  // namespace

Json diagnosis_json(const DiagnosisView& view, const CommandContext& context) {
  const Diagnosis& d = *view.diagnosis;
  const Capture& c = *view.capture;
  Json j = json_head(context, view.answer(), c.provenance.stale());
  if (view.trace != nullptr && view.trace->latent()) j["verdict"] = "latent";
  j["shown"] = view.trace == nullptr || view.trace->calmly.empty() ? Json(nullptr)
                                                                   : Json(view.trace->calmly);
  j["diagnosis_verdict"] = name(d.verdict);
  j["subject"] = view.subject;
  j["problem"] = to_json(c.problem);
  j["geometry"] = to_json(c.geometry);
  j["stage"] = attn_diag::name(d.stage);
  j["tensors"] = Json::array();
  for (const Tensor t : d.tensors) j["tensors"].push_back(attn_diag::name(t));
  j["rows"] = d.rows;
  j["wrong_rows"] = d.wrong_rows;
  j["judged"] = d.judged;
  j["cells"] = d.judged + d.unjudged;
  j["input_writes"] = input_writes_json(c);
  j["diagnosis"] = Json::array();
  for (std::size_t i = 0; i < d.best.size(); ++i) {
    Json one = match_json(d.best[i]);
    one["confidence"] = json_number(d.confidence);
    one["equivalent"] = d.best[i].equivalent;
    one["other_parameters"] = d.best[i].other_parameters;
    if (d.verdict == DiagnosisVerdict::kClass)
      for (std::size_t k = 0; k < d.best.size(); ++k)
        if (k != i) one["equivalent"].push_back(d.best[k].label);
    j["diagnosis"].push_back(one);
  }
  j["runner_up"] = d.runner_up ? match_json(*d.runner_up) : Json(nullptr);
  j["ruled_out"] = Json::array();
  for (const Match& match : d.ruled_out) j["ruled_out"].push_back(match_json(match));
  j["residual"] = d.residual;
  j["experiments"] = Json::array();
  for (std::size_t i = 0; i < d.experiments.size(); ++i) {
    const TellingRun& e = d.experiments[i];
    const bool runs = i < view.experiment_commands.size() && !view.experiment_commands[i].empty();
    Json one;
    one["what"] = e.what;
    one["why"] = e.why;
    one["command"] = runs ? Json(view.experiment_commands[i]) : Json(nullptr);
    j["experiments"].push_back(one);
  }
  j["experiments_run"] = view.experiments != nullptr ? Json(*view.experiments) : Json::array();
  j["taps"] = Json::array();
  for (const TapLine& tap : view.taps) {
    Json one;
    one["file"] = tap.path;
    one["line"] = tap.line;
    j["taps"].push_back(one);
  }
  j["tile_trials"] = view.tiles != nullptr ? tiles_json(*view.tiles) : Json(nullptr);
  j["why_not"] = Json::array();
  if (view.why_not != nullptr)
    for (const WhyNot& w : *view.why_not) j["why_not"].push_back(why_not_json(w));
  j["sanity"] = view.trace != nullptr ? to_json(view.trace->sanity, view.check) : Json(nullptr);
  j["same_output"] = to_json(c.same_output);
  j["coverage"] = coverage_json(c);
  j["line_divergence"] =
      view.trace != nullptr && view.trace->lines ? to_json(*view.trace->lines) : Json(nullptr);
  j["notes"] = d.notes;
  j["confirm"] = view.confirm.empty() ? Json(nullptr) : Json(view.confirm);
  j["provenance"] = to_json(c.provenance);
  return j;
}

}  // namespace attn_diag::report
