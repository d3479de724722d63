#include "reference/testing/hand_case.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>

#include "harness/inputs/case_file.h"
#include "reference/testing/expression.h"
#include "reference/testing/float_types.h"

namespace attn_diag::reference::testing {
namespace {

double number(const toml::node& node) {
  if (const auto text = node.value<std::string>()) return evaluate(*text);
  if (const auto value = node.value<double>()) return *value;
  throw std::runtime_error("expected a number or an expression in a string");
}

void flatten(const toml::node& node, std::vector<double>& out) {
  if (const toml::array* const array = node.as_array())
    for (const toml::node& element : *array) flatten(element, out);
  else
    out.push_back(number(node));
}

std::vector<double> values(const toml::table& table, std::string_view key, std::int64_t size) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) throw std::runtime_error(std::string(key) + " is missing");
  std::vector<double> out;
  try {
    flatten(*node, out);
  } catch (const std::exception& e) {
    throw std::runtime_error(std::string(key) + ": " + e.what());
  }
  if (static_cast<std::int64_t>(out.size()) != size)
    throw std::runtime_error(std::string(key) + ": expected " + std::to_string(size) +
                             " numbers, found " + std::to_string(out.size()));
  return out;
}

// A misspelt key would otherwise be a setting that does nothing.
void check_keys(const toml::table& table, const std::set<std::string_view>& known) {
  for (const auto& [key, node] : table)
    if (!known.contains(key.str()))
      throw std::runtime_error("unknown key '" + std::string(key.str()) + "'");
}

const toml::table& section(const toml::table& file, std::string_view key) {
  const toml::node* const node = file.get(key);
  if (node == nullptr || !node->is_table())
    throw std::runtime_error("section [" + std::string(key) + "] is missing");
  return *node->as_table();
}

Problem read_problem(const toml::table& t) {
  check_keys(t, {"batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v",
                 "softmax_scale", "mask"});
  Problem p = problem_of(CaseFields({&t}, ""));
  p.dtype = DType::kFp64;
  return p;
}

Geometry read_geometry(const toml::table& t) {
  check_keys(t,
             {"block_m", "block_n", "num_splits", "tiles_per_split", "frame", "has_split_merge"});
  const CaseFields fields({&t}, "");
  Geometry g;
  g.tile = {fields.number("block_m"), fields.number("block_n")};
  g.num_splits = fields.find<int>("num_splits").value_or(1);
  g.tiles_per_split = fields.find<int>("tiles_per_split").value_or(1);
  const std::string frame = fields.find<std::string>("frame").value_or("running");
  g.frame = frame == "tile" ? Frame::kTile : Frame::kRunning;
  if (frame != "tile" && frame != "running") fields.fail("frame", "running or tile");
  g.has_split_merge = fields.find<bool>("has_split_merge").value_or(false);
  return g;
}

HandCase read(const toml::table& file) {
  check_keys(file, {"title", "problem", "geometry", "inputs", "expected"});
  HandCase c;
  c.title = file["title"].value_or("");
  c.problem = read_problem(section(file, "problem"));
  c.geometry = read_geometry(section(file, "geometry"));
  const Problem& p = c.problem;
  if (p.seqlen_q < 1 || p.seqlen_k < 1 || p.head_dim < 1 || p.head_dim_v < 1 ||
      c.geometry.tile.block_m < 1 || c.geometry.tile.block_n < 1)
    throw std::runtime_error("a size is missing or below 1");
  const toml::table& inputs = section(file, "inputs");
  check_keys(inputs, {"q", "k", "v"});
  c.q = values(inputs, "q", std::int64_t{p.batch} * p.heads * p.seqlen_q * p.head_dim);
  c.k = values(inputs, "k", std::int64_t{p.batch} * p.kv_heads * p.seqlen_k * p.head_dim);
  c.v = values(inputs, "v", std::int64_t{p.batch} * p.kv_heads * p.seqlen_k * p.head_dim_v);
  const toml::table& expected = section(file, "expected");
  std::set<std::string_view> known;
  for (const TensorInfo& t : kTensors) {
    const bool merged = t.id == Tensor::kMergedL || t.id == Tensor::kMergedO;
    if (merged && !c.geometry.has_split_merge) continue;
    known.insert(t.name);
    std::int64_t size = 1;
    for (int i = 0; i < t.rank; ++i)
      size *= axis_extent(t.axes[static_cast<std::size_t>(i)], p, c.geometry);
    c.expected[static_cast<std::size_t>(t.id)] = values(expected, t.name, size);
  }
  check_keys(expected, known);
  return c;
}

}  // namespace

bool HandCase::exact_in(DType type) const {
  const auto exact = [type](double x) { return round_to(type, x) == x; };
  return std::all_of(q.begin(), q.end(), exact) && std::all_of(k.begin(), k.end(), exact) &&
         std::all_of(v.begin(), v.end(), exact);
}

std::vector<std::byte> HandCase::stored(const std::vector<double>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i)
    store(type, values[i], bytes.data() + i * size_of(type));
  return bytes;
}

HandCase load_hand_case(const std::filesystem::path& path) {
  const toml::table file = read_toml(path.string());
  try {
    HandCase c = read(file);
    c.name = path.stem().string();
    return c;
  } catch (const std::exception& e) {
    throw std::runtime_error(path.string() + ": " + e.what());
  }
}

std::vector<HandCase> load_hand_cases() {
  // Where a test is carried to another machine, the cases lie beside it.
  std::error_code ignored;
  std::filesystem::path directory =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() /
      "fixtures/hand";
  if (!std::filesystem::is_directory(directory, ignored)) directory = ATTN_DIAG_HAND_CASES_DIR;
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".toml") paths.insert(entry.path());
  std::vector<HandCase> cases;
  for (const std::filesystem::path& path : paths) cases.push_back(load_hand_case(path));
  if (cases.empty()) throw std::runtime_error("no hand-computed case in " + directory.string());
  return cases;
}

}  // namespace attn_diag::reference::testing
