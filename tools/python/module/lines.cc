#include "tools/python/module/lines.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "attn_diag/harness/error.h"
#include "harness/capture/element.h"
#include "harness/lines/judged.h"

namespace attn_diag::python {
namespace {

namespace py = pybind11;
using host::ValueGraph;
using host::ValueNode;

using SiteWords = std::tuple<int, int, int, std::string, std::string, std::string, std::string,
                             std::string, std::string>;

static_assert(sizeof(ValueNode) == 24 && sizeof(host::ValuePair) == 8 &&
                  sizeof(host::ReplacedValue) == 12 && sizeof(host::MaskedLoad) == 16,
              "as _values.py has them");

template <class T>
std::vector<T> elements_of(const py::handle& object) {
  const py::buffer_info info = py::reinterpret_borrow<py::buffer>(object).request();
  std::vector<T> out(static_cast<std::size_t>(info.size * info.itemsize) / sizeof(T));
  if (!out.empty()) std::memcpy(static_cast<void*>(out.data()), info.ptr, out.size() * sizeof(T));
  return out;
}

ValueGraph graph_of(const py::dict& from) {
  ValueGraph graph;
  graph.sites.emplace_back();
  for (const py::handle one : from["sites"]) {
    const auto [op, line, column, file, function, variable, conditions, uses, callers] =
        one.cast<SiteWords>();
    const bool ran = op >= 0;
    graph.sites.push_back({static_cast<host::ValueOp>(ran ? op : -1 - op), line, column, file,
                           function, variable, conditions, uses, callers, file, ran});
  }
  graph.nodes = elements_of<ValueNode>(from["nodes"]);
  graph.products = elements_of<host::ValuePair>(from["products"]);
  graph.replaced = elements_of<host::ReplacedValue>(from["replaced"]);
  for (const py::handle one : from["outputs"]) {
    const auto parts = one.cast<py::tuple>();
    const auto nodes = elements_of<std::uint32_t>(parts[0]);
    const auto blocks = elements_of<std::uint32_t>(parts[1]);
    const auto sites = elements_of<std::uint32_t>(parts[2]);
    auto& output = graph.outputs.emplace_back(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) output[i] = {nodes[i], blocks[i], sites[i]};
  }
  graph.outputs.resize(2);
  graph.masked = elements_of<host::MaskedLoad>(from["masked"]);
  for (const py::handle one : from["remarks"]) {
    const auto [site, text] = one.cast<std::tuple<std::uint32_t, std::string>>();
    graph.remarks.push_back({site, text});
  }
  graph.unread = from["unread"].cast<std::vector<std::uint32_t>>();
  graph.unseen = from["unseen"].cast<std::uint64_t>();
  graph.stored_twice = from["stored_twice"].cast<std::uint64_t>();
  graph.full = from["full"].cast<bool>();
  graph.instrumented = true;
  graph.whole_blocks = true;
  return graph;
}

// Findings for accesses outside of all memory that a kernel was given: (site, offset, number, sentence).
host::CheckReport findings_of(const py::dict& from, const ValueGraph& graph) {
  host::CheckReport report;
  for (const py::handle one : from["outside"]) {
    const auto [site, offset, count, text] =
        one.cast<std::tuple<std::uint32_t, std::int64_t, std::uint64_t, std::string>>();
    const host::ValueSite& at = graph.sites.at(site);
    host::CheckFinding finding;
    finding.kind = host::CheckKind::kOutOfBounds;
    finding.array = at.variable;
    finding.offset = offset;
    finding.folded = count - 1;
    finding.access.places.push_back({at.file, at.line, at.function});
    finding.message = text;
    report.findings.push_back(std::move(finding));
  }
  return report;
}

void check(const ValueGraph& graph, const Problem& p) {
  const auto rows = static_cast<std::size_t>(p.batch * p.heads * p.seqlen_q);
  const auto cells = rows * static_cast<std::size_t>(p.head_dim_v);
  if (graph.nodes.empty() || graph.outputs[0].size() != cells ||
      !(graph.outputs[1].empty() || graph.outputs[1].size() == rows))
    throw Error("The recorded graph does not fit o.");
}

// o in memory order, as fp32.
std::vector<std::byte> bytes_of_o(const Capture& c) {
  const Problem& p = c.problem;
  const TensorData& o = c[Tensor::kO];
  std::vector<std::byte> out(static_cast<std::size_t>(o.size()) * sizeof(float));
  const Strides to = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  std::int64_t from = 0;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t s = 0; s < p.seqlen_q; ++s)
        for (std::int64_t d = 0; d < p.head_dim_v; ++d)
          store_element(out.data(), DType::kFp32, b * to.batch + h * to.head + s * to.seq + d,
                        o.at(from++));
  return out;
}

}  // namespace

LineDivergence lines_of(const ForeignCase& of, const py::dict& recorded) {
  const Capture& c = of.capture;
  lines::WatchedRun run;
  run.graph = graph_of(recorded);
  run.reason = recorded["reason"].cast<std::string>();
  check(run.graph, c.problem);
  const host::CheckReport found = findings_of(recorded, run.graph);
  const py::gil_scoped_release released;
  run.o = bytes_of_o(c);
  if (c.has(Tensor::kLse))
    for (std::int64_t i = 0; i < c[Tensor::kLse].size(); ++i)
      run.lse.push_back(static_cast<float>(c[Tensor::kLse].at(i)));
  return lines::tell_lines(run, c, of.extras, found);
}

}  // namespace attn_diag::python
