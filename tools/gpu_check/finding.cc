#include "tools/gpu_check/finding.h"

#include <fmt/format.h>

#include <cmath>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/reference/reference.h"
#include "harness/inputs/case_file.h"

namespace attn_diag::gpu_check {
namespace {

// By the reference, in the cut into tiles and splits that the trace reports.
std::int64_t first_query_whose_max_rises(const StatedFinding& finding, const Json& geometry) {
  const int tile = *finding.max_rises_in_kv_tile;
  const std::string shape = geometry.at("tile").get<std::string>();
  Geometry g;
  g.tile = {std::stoi(shape), std::stoi(shape.substr(shape.find('x') + 1))};
  g.num_splits = geometry.at("num_splits").get<int>();
  g.tiles_per_split = geometry.at("kv_tiles_per_split").get<int>();
  const InputData inputs = make_inputs(finding.problem, "randn", finding.seed, 1.0);
  reference::Options options;
  options.tensors = tensor_bit(Tensor::kRunningM);
  options.bounds = false;
  options.batch_end = options.head_end = 1;
  const reference::Tensors tensors =
      reference::compute(finding.problem, g, Arithmetic{},
                         {inputs.q.data(), inputs.k.data(), inputs.v.data()}, options);
  const std::vector<double>& m = tensors.value[static_cast<std::size_t>(Tensor::kRunningM)];
  const int tiles = num_kv_tiles(finding.problem, g);
  for (int query = 0; query < finding.problem.seqlen_q; ++query) {
    const double before = m[static_cast<std::size_t>(query * tiles + tile - 1)];
    if (std::isfinite(before) && m[static_cast<std::size_t>(query * tiles + tile)] > before)
      return query;
  }
  throw Error("No row max rises: the case cannot show the fault.");
}

}  // namespace

StatedFinding read_finding(const std::string& path, const std::string& kernel) {
  const toml::table file = read_toml(path);
  const CaseFields what(file, "case", kernel, path);
  StatedFinding finding;
  finding.problem = problem_of(what);
  finding.seed = static_cast<std::uint64_t>(what.number("seed"));
  const auto add = [&](const char* flag, const std::string& value) {
    finding.flags.emplace_back(flag);
    finding.flags.push_back(value);
  };
  const std::pair<const char*, const char*> numbers[] = {
      {"--batch", "batch"},       {"--heads", "heads"},          {"--kv-heads", "kv_heads"},
      {"--seqlen-q", "seqlen_q"}, {"--seqlen-k", "seqlen_k"},    {"--head-dim", "head_dim"},
      {"--seed", "seed"},         {"--head-dim-v", "head_dim_v"}};
  for (const auto& [flag, key] : numbers) add(flag, std::to_string(what.number(key)));
  for (const auto& [flag, key] :
       {std::pair{"--layout", "layout"}, std::pair{"--mask", "mask"}, std::pair{"--tile", "tile"}})
    add(flag, what.text(key));
  add("--dtype", "fp16");
  add("--inputs", "randn");
  if (what.number("num_splits") > 0) add("--num-splits", std::to_string(what.number("num_splits")));

  const CaseFields stated(file, "finding", kernel, path);
  // When a copy lands on a GPU is chance, as is the order of threads; the host executor decides both.
  finding.race = stated.text("schedules") != "same" ||
                 CaseFields(file, "check", kernel, path).find<std::string>("kind") == "async-copy";
  finding.expected["stage"] = stated.text("stage");
  finding.expected["tensor"] = stated.text("tensor");
  if (const auto tile = stated.find<int>("query_whose_max_rises_in_kv_tile"))
    finding.max_rises_in_kv_tile = *tile;
  for (const char* key : {"batch", "head", "query", "query_tile", "kv_tile", "split", "key", "dim"})
    if (const auto value = stated.find<std::int64_t>(key)) finding.expected[key] = *value;
  return finding;
}

std::string difference(const StatedFinding& finding, const Json& trace) {
  const Json& first = trace.at("first_divergence");
  if (first.is_null())
    return fmt::format("diverges, but in no stage: {}", trace.at("schedules").dump());
  Json expected = finding.expected;
  if (finding.max_rises_in_kv_tile)
    expected["query"] = first_query_whose_max_rises(finding, trace.at("geometry"));
  std::string s;
  for (const auto& [key, value] : expected.items()) {
    const Json found = first.contains(key) ? first[key] : Json(nullptr);
    if (found != value)
      s += fmt::format("{}{} {} instead of {}", s.empty() ? "" : ", ", key, found.dump(),
                       value.dump());
  }
  return s;
}

}  // namespace attn_diag::gpu_check
