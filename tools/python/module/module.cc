// attn_diag._native: what the Python package asks of the harness. Records and their renderings; all arguments are
// checked and explained here or below, never in Python.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/files.h"
#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/pattern.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/harness/xray.h"
#include "harness/capture/capture_fields.h"
#include "harness/diagnose/key_lengths.h"
#include "harness/files/said.h"
#include "harness/report/comparison_report.h"
#include "harness/report/diagnosis.h"
#include "harness/report/lines_report.h"
#include "harness/report/summary.h"
#include "harness/report/xray_report.h"
#include "harness/run/repetition.h"
#include "tools/python/module/arrays.h"
#include "tools/python/module/function.h"
#include "tools/python/module/lines.h"
#include "tools/python/module/shrink.h"

namespace attn_diag::python {
namespace {

namespace py = pybind11;
using report::CommandContext;

using MaybeText = std::optional<std::string>;
using MaybeReal = std::optional<double>;
using SharedCase = std::shared_ptr<ForeignCase>;

template <class T>
T parsed(const char* what, const std::string& text, const char* expected) {
  T value{};
  if (!from_text(text, value))
    throw Error(fmt::format("{} is '{}'; expected {}.", what, text, expected));
  return value;
}
DType dtype_of(const std::string& text) {
  return parsed<DType>("dtype", text, "fp16, bf16 or fp32");
}
Layout layout_of(const std::string& text) { return parsed<Layout>("layout", text, "BHSD or BSHD"); }

Tolerance tolerance_of(const MaybeReal& atol, const MaybeReal& rtol) {
  for (const auto& [what, value] : {std::pair{"atol", atol}, {"rtol", rtol}})
    if (value && !(*value >= 0 && std::isfinite(*value)))
      throw Error(fmt::format("{} is {}; expected a number that is not negative.", what, *value));
  return {!atol && !rtol, atol.value_or(0), rtol.value_or(0)};
}

// So that Ctrl-C ends long work.
void check_signals(int, int, const std::string&) {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

SharedCase take_case(const py::dict& arrays, const MaybeText& layout, const MaybeText& dtype,
                     const MaybeReal& scale, const MaybeText& mask, const MaybeReal& softcap,
                     std::optional<std::vector<std::int32_t>> kv_lens) {
  ForeignHints hints;
  if (layout) hints.layout = layout_of(*layout);
  if (dtype) hints.dtype = dtype_of(*dtype);
  if (scale) hints.softmax_scale = static_cast<float>(*scale);
  hints.mask = mask;
  hints.softcap = softcap;
  hints.kv_lens = std::move(kv_lens);
  const BorrowedCase borrowed(arrays);
  const py::gil_scoped_release released;
  return std::make_shared<ForeignCase>(take_foreign(borrowed.arrays(), hints));
}

// What every result can be asked for.
struct Rendered {
  Answer answer = Answer::kNotJudged;
  std::string headline, text, json;
  std::string line = {};  // of traced lines: the first suspect, in one line
};

// --- comparisons ------------------------------------------------------------------------------------

class Compared {
 public:
  Compared(SharedCase of, std::string subject, const Tolerance& tolerance, int threads)
      : x_case(std::move(of)), x_subject(std::move(subject)), x_tolerance(tolerance) {
    x_comparison = compare_case(*x_case, tolerance, threads);
    if (x_comparison.judged() + x_comparison.unjudged() == 0)
      throw Error("Nothing was compared: o has no cells.");
  }

  const SharedCase& of() const { return x_case; }

  // `file`, where the case was written, and `reproduce`, the line that judges it again; both may be empty.
  Rendered rendered(const std::string& file, const std::string& reproduce) const {
    report::ComparisonView view;
    view.comparison = &x_comparison;
    view.capture = &x_case->capture;
    view.actual = file.empty() ? x_subject : file;
    view.rule = report::rule_text(x_tolerance);
    view.assumed = x_case->assumed;
    view.reproduce = reproduce;
    const CommandContext context{"compare", reproduce, ATTN_DIAG_VERSION};
    return {view.answer(), report::comparison_headline(view),
            report::comparison_text(view, {}, false),
            report::dump_json(report::comparison_json(view, context))};
  }

  // Where o or lse is first wrong.
  py::object first() const {
    const TensorComparison* const t = report::summarise(x_comparison).first_wrong;
    if (t == nullptr || !t->first) return py::none();
    const TensorInfo& tensor = info(t->tensor);
    py::dict out;
    out["stage"] = std::string(name(tensor.stage));
    out["tensor"] = std::string(tensor.name);
    for (int axis = 0; axis < tensor.rank; ++axis) {
      const Axis which = tensor.axes[static_cast<std::size_t>(axis)];
      out[py::str(std::string(kAxisNames[static_cast<std::size_t>(which)]))] =
          t->first->index[static_cast<std::size_t>(axis)];
    }
    out["actual"] = t->first->actual;
    out["expected"] = t->first->expected;
    out["bound"] = t->first->limit;
    return out;
  }

  // Rows with a wrong cell of the first wrong tensor: batch, head, query, wrong cells, largest err/bound.
  std::vector<std::tuple<int, int, int, std::int64_t, double>> wrong_rows() const {
    std::vector<std::tuple<int, int, int, std::int64_t, double>> rows;
    if (const TensorComparison* const t = report::summarise(x_comparison).first_wrong)
      for (const TensorComparison::WrongRow& r : t->wrong_rows)
        rows.emplace_back(r.batch, r.head, r.query, r.mismatched, r.max_err_over_bound);
    return rows;
  }

  // Kind and sentence. Empty where nothing is wrong, and for a formula that the reference does not have; with lengths of
  // keys, other lengths that fit.
  std::vector<std::pair<std::string, std::string>> pattern() const {
    const TensorComparison* const wrong = report::summarise(x_comparison).first_wrong;
    const Capture& c = x_case->capture;
    std::vector<std::pair<std::string, std::string>> out;
    if (wrong == nullptr) return out;
    if (!x_case->kv_lens.empty())
      for (std::string& words : lengths_that_fit(*x_case, x_tolerance))
        out.emplace_back("hint", std::move(words));
    if (!x_case->kv_lens.empty() || !x_case->extras.bias.empty() || x_case->extras.softcap != 0)
      return out;
    for (const PatternStatement& s : describe_pattern(
             collect_wrong_cells(c, wrong->tensor, x_tolerance), c.problem, c.geometry))
      out.emplace_back(s.kind == StatementKind::kWrong   ? "wrong"
                       : s.kind == StatementKind::kExact ? "exact"
                                                         : "hint",
                       s.text);
    return out;
  }

 private:
  SharedCase x_case;
  std::string x_subject;
  Tolerance x_tolerance;
  Comparison x_comparison;
};

// --- diagnoses --------------------------------------------------------------------------------------

class Diagnosed {
 public:
  Diagnosed(const SharedCase& of, std::string subject, DiagnoseOptions options,
            const std::optional<std::pair<int, int>>& tile, int num_splits,
            const std::vector<std::string>& why_not_ids)
      : x_subject(std::move(subject)) {
    CaseToDiagnose taken = case_to_diagnose(*of, options.tolerance, options.threads);
    x_case = std::move(taken.one);
    std::optional<TileShape> said;
    if (tile) said = TileShape{tile->first, tile->second};
    if ((said && (said->block_m < 1 || said->block_n < 1)) || num_splits < 0)
      throw Error("tile takes two sizes of at least 1, and num_splits a number of at least 1.");
    options.geometries = cuts_to_try(x_case, said, num_splits);
    options.extras = x_case.extras;
    options.on_step = check_signals;
    x_diagnosis = diagnose(x_case.capture, options);
    if (!taken.note.empty()) x_diagnosis.notes.push_back(taken.note);
    for (const std::string& phrase : x_case.assumed)
      x_diagnosis.notes.push_back("Assumed: " + phrase + '.');
    for (const std::string& id : why_not_ids)
      x_why_not.push_back(why_not(x_case.capture, options, id));
  }

  std::string verdict() const { return std::string(report::name(x_diagnosis.verdict)); }

  std::vector<std::string> named() const {
    std::vector<std::string> labels;
    if (x_diagnosis.verdict == DiagnosisVerdict::kNamed ||
        x_diagnosis.verdict == DiagnosisVerdict::kClass)
      for (const Match& match : x_diagnosis.best) labels.push_back(match.label);
    return labels;
  }

  Rendered rendered(const std::string& file, const std::string& reproduce) const {
    report::DiagnosisView view;
    view.diagnosis = &x_diagnosis;
    view.capture = &x_case.capture;
    view.why_not = &x_why_not;
    view.subject = file.empty() ? x_subject : file;
    view.reproduce = reproduce;
    return {view.answer(), report::diagnosis_headline(x_diagnosis),
            report::diagnosis_text(view, {}),
            report::dump_json(
                report::diagnosis_json(view, {"diagnose", reproduce, ATTN_DIAG_VERSION, ""}))};
  }

 private:
  ForeignCase x_case;
  std::string x_subject;
  Diagnosis x_diagnosis;
  std::vector<WhyNot> x_why_not;
};

// --- functions --------------------------------------------------------------------------------------

// Work on a function: what it raised is raised again, in place of the Error that was made of it.
template <class Work>
auto with(const Function& function, const Work& work) {
  try {
    const py::gil_scoped_release released;
    return work();
  } catch (const Error&) {
    function.rethrow();
    throw;
  }
}

SharedCase run_again(const std::string& name, const py::function& call, const SharedCase& example,
                     int runs) {
  if (runs < 1) throw Error(fmt::format("runs is {}; expected at least 1.", runs));
  const Function function(name, call, *example);
  RunOptions options;
  options.taps = false;
  options.gate = Gate::kFull;
  return with(function, [&] {
    const Kernel kernel = function.kernel();
    const Problem& p = example->capture.problem;
    auto out = std::make_shared<ForeignCase>(*example);
    const Experiment experiment{kernel, p, function.inputs(), options};
    Capture first = run_kernel(experiment);
    for (int i = 1; i < runs && !first.repetition.moved(); ++i) {
      add_repetition(first, run_kernel(experiment));
      first.repetition.runs = i + 1;
      if (first.repetition.moved())
        first.repetition.within_rounding =
            near_each_other(first, *first.repetition.second, Tolerance{});
    }
    out->capture = std::move(first);
    return out;
  });
}

Rendered xray_function(const std::string& name, const py::function& call, const SharedCase& example,
                       const Tolerance& tolerance, bool with_properties) {
  const Function function(name, call, *example);
  XrayOptions options;
  options.on_step = check_signals;
  return with(function, [&] {
    const Experiment experiment{
        function.kernel(), example->capture.problem, function.inputs(), {}, tolerance};
    report::XrayView view;
    view.kernel = name;
    view.backend = "Python";
    view.xray = xray(experiment, options);
    if (with_properties) view.properties = check_properties(experiment, options);
    return Rendered{view.answer(), report::xray_headline(view), report::xray_text(view, {}, false),
                    report::dump_json(report::xray_json(view, {"xray", "", ATTN_DIAG_VERSION}))};
  });
}

Rendered properties_of(const std::string& name, const py::function& call,
                       const SharedCase& example) {
  const Function function(name, call, *example);
  XrayOptions options;
  options.on_step = check_signals;
  return with(function, [&] {
    const std::vector<PropertyResult> all =
        check_properties({function.kernel(), example->capture.problem, function.inputs()}, options);
    std::int64_t tried = 0, broken = 0;
    for (const PropertyResult& r : all) {
      tried += r.verdict != PropertyResult::Verdict::kNotTried ? 1 : 0;
      broken += r.verdict == PropertyResult::Verdict::kBroken ? 1 : 0;
    }
    const Answer answer = answer_of(tried, broken);
    Rendered out;
    out.answer = answer;
    const std::string of_tried = fmt::format("{} of {} tried", tried, all.size());
    out.headline =
        answer == Answer::kAgrees
            ? fmt::format("AGREES: {} has the properties of attention, {}", name, of_tried)
        : answer == Answer::kDiverges
            ? fmt::format("DIVERGES: {} of attention {} broken in {}, {}",
                          broken == 1 ? "a property" : fmt::format("{} properties", broken),
                          broken == 1 ? "is" : "are", name, of_tried)
            : fmt::format("COULD NOT COMPARE: no property was tried on {}", name);
    out.text = out.headline + "\n  Properties of attention:\n" + report::properties_text(all, {});
    report::Json j = report::json_head({"properties", "", ATTN_DIAG_VERSION}, answer, false);
    j["function"] = name;
    j["problem"] = report::to_json(example->capture.problem);
    j["properties"] = report::properties_json(all);
    out.json = report::dump_json(j);
    return out;
  });
}

// --- lines ------------------------------------------------------------------------------------------

// The comparison, and below it what is known of lines. `graph`: as lines_of() takes it, or why there is none.
Rendered lines_rendered(const Compared& compared, const std::string& name,
                        const std::variant<py::dict, std::string>& graph) {
  LineDivergence lines;
  if (const auto* const recorded = std::get_if<py::dict>(&graph))
    lines = lines_of(*compared.of(), *recorded);
  else
    lines.reason = std::get<std::string>(graph);
  Rendered out = compared.rendered("", "");
  report::Json j = report::json_head({"trace_lines", "", ATTN_DIAG_VERSION}, out.answer, false);
  j["function"] = name;
  j["problem"] = report::to_json(compared.of()->capture.problem);
  j["line_divergence"] = report::to_json(lines);
  out.text = out.headline + '\n' + report::lines_text(lines, {}, true);
  out.line = report::lines_line(lines);
  out.json = report::dump_json(j);
  return out;
}

// --- inputs -----------------------------------------------------------------------------------------

py::tuple inputs_of(const std::string& kind, const std::array<int, 7>& sizes,
                    const std::string& dtype, const std::string& layout, const std::string& mask,
                    const MaybeReal& scale, std::uint64_t seed, double input_scale) {
  Problem p;
  p.batch = sizes[0];
  p.heads = sizes[1];
  p.kv_heads = sizes[2];
  p.seqlen_q = sizes[3];
  p.seqlen_k = sizes[4];
  p.head_dim = sizes[5];
  p.head_dim_v = sizes[6];
  p.dtype = dtype_of(dtype);
  p.layout = layout_of(layout);
  p.mask = files::mask_of(mask, p.seqlen_q, p.seqlen_k);
  p.softmax_scale = static_cast<float>(scale.value_or(default_softmax_scale(p.head_dim)));
  InputData data;
  {
    const py::gil_scoped_release released;
    data = make_inputs(p, kind, seed, input_scale);
  }
  const auto bytes = [](const std::vector<std::byte>& from) {
    return py::bytearray(reinterpret_cast<const char*>(from.data()), from.size());
  };
  return py::make_tuple(bytes(data.q), bytes(data.k), bytes(data.v));
}

std::string text_of(Answer answer) { return report::json_name(answer); }

}  // namespace

PYBIND11_MODULE(_native, m) {
  m.attr("__version__") = ATTN_DIAG_VERSION;
  py::register_exception<Error>(m, "Error", PyExc_ValueError);
  m.attr("Error").attr("__module__") = "attn_diag";
  m.attr("Error").doc() =
      "What was asked for cannot be done: what was expected, what was found, what to do. The words "
      "are those of the "
      "attn-diag command.";

  py::class_<Rendered>(m, "Rendered")
      .def_property_readonly("verdict", [](const Rendered& r) { return text_of(r.answer); })
      .def_readonly("headline", &Rendered::headline)
      .def_readonly("text", &Rendered::text)
      .def_readonly("line", &Rendered::line)
      .def_readonly("json", &Rendered::json);

  py::class_<ForeignCase, SharedCase>(m, "Case")
      .def(py::init(&take_case), py::arg("arrays"), py::kw_only(), py::arg("layout"),
           py::arg("dtype"), py::arg("scale"), py::arg("mask"), py::arg("softcap"),
           py::arg("kv_lens"))
      .def_property_readonly("problem",
                             [](const ForeignCase& c) {
                               return report::dump_json(report::to_json(c.capture.problem));
                             })
      .def(
          "write",
          [](const ForeignCase& c, const std::string& path, bool force) {
            write_foreign(path, c, force);
          },
          py::arg("path"), py::arg("force"), py::call_guard<py::gil_scoped_release>());

  py::class_<Compared>(m, "Compared")
      .def(py::init([](const SharedCase& c, const std::string& subject, const MaybeReal& atol,
                       const MaybeReal& rtol, int threads) {
             const Tolerance tolerance = tolerance_of(atol, rtol);
             const py::gil_scoped_release released;
             return std::make_unique<Compared>(c, subject, tolerance, threads);
           }),
           py::arg("case"), py::arg("subject"), py::arg("atol"), py::arg("rtol"),
           py::arg("threads"))
      .def("rendered", &Compared::rendered, py::arg("file"), py::arg("reproduce"))
      .def("first", &Compared::first)
      .def("wrong_rows", &Compared::wrong_rows)
      .def("pattern", &Compared::pattern, py::call_guard<py::gil_scoped_release>());

  py::class_<Diagnosed>(m, "Diagnosed")
      .def(py::init([](const SharedCase& c, const std::string& subject, const MaybeReal& atol,
                       const MaybeReal& rtol, const std::optional<std::pair<int, int>>& tile,
                       int num_splits, bool pairs, const std::vector<std::string>& why_not_ids,
                       int threads) {
             DiagnoseOptions options;
             options.tolerance = tolerance_of(atol, rtol);
             options.pairs = pairs;
             options.threads = threads;
             const py::gil_scoped_release released;
             return std::make_unique<Diagnosed>(c, subject, options, tile, num_splits, why_not_ids);
           }),
           py::arg("case"), py::arg("subject"), py::arg("atol"), py::arg("rtol"), py::arg("tile"),
           py::arg("num_splits"), py::arg("pairs"), py::arg("why_not"), py::arg("threads"))
      .def_property_readonly("verdict", &Diagnosed::verdict)
      .def_property_readonly("named", &Diagnosed::named)
      .def("rendered", &Diagnosed::rendered, py::arg("file"), py::arg("reproduce"));

  m.def("run_again", &run_again, py::arg("name"), py::arg("call"), py::arg("example"),
        py::arg("runs"));
  m.def(
      "xray",
      [](const std::string& name, const py::function& call, const SharedCase& example,
         const MaybeReal& atol, const MaybeReal& rtol, bool properties) {
        return xray_function(name, call, example, tolerance_of(atol, rtol), properties);
      },
      py::arg("name"), py::arg("call"), py::arg("example"), py::arg("atol"), py::arg("rtol"),
      py::arg("properties"));
  py::class_<Shrunk>(m, "Shrunk")
      .def_readonly("fails", &Shrunk::fails)
      .def_readonly("headline", &Shrunk::headline)
      .def_readonly("text", &Shrunk::text)
      .def_readonly("json", &Shrunk::json)
      .def_readonly("sized", &Shrunk::sized)
      .def_readonly("elements", &Shrunk::elements);
  m.def(
      "shrink",
      [](const std::string& name, const py::function& call, const SharedCase& example,
         const MaybeReal& atol, const MaybeReal& rtol, int runs, double seconds, bool keep_values,
         bool square, std::vector<std::string> hold, const py::object& on_step) {
        return shrink_function(
            name, call, *example,
            {tolerance_of(atol, rtol), runs, seconds, keep_values, square, std::move(hold)},
            on_step);
      },
      py::arg("name"), py::arg("call"), py::arg("example"), py::arg("atol"), py::arg("rtol"),
      py::arg("runs"), py::arg("seconds"), py::arg("keep_values"), py::arg("square"),
      py::arg("hold"), py::arg("on_step"));
  m.def("trace_lines", &lines_rendered, py::arg("compared"), py::arg("name"), py::arg("graph"));
  m.def("properties", &properties_of, py::arg("name"), py::arg("call"), py::arg("example"));
  m.def("inputs", &inputs_of, py::arg("kind"), py::arg("sizes"), py::arg("dtype"),
        py::arg("layout"), py::arg("mask"), py::arg("scale"), py::arg("seed"),
        py::arg("input_scale"));
  m.def("input_kinds", [] {
    py::dict kinds;
    for (const InputKindInfo& kind : input_kinds()) kinds[kind.name] = kind.summary;
    return kinds;
  });
}

}  // namespace attn_diag::python
