// What attn-diag shrink leaves for people: a test, and a worked sheet.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "attn_diag/harness/compare.h"
#include "attn_diag/reference/reference.h"
#include "harness/capture/capture_fields.h"
#include "harness/report/shrink_text.h"

namespace attn_diag::report {
namespace {

const char* enumerator(DType t) {
  return t == DType::kFp16 ? "kFp16" : t == DType::kBf16 ? "kBf16" : "kFp32";
}

const char* enumerator(Stage stage) {
  constexpr std::array<const char*, kNumStages> kNames = {"kQk", "kSoftmax", "kPv", "kReduce"};
  return kNames[static_cast<std::size_t>(stage)];
}

// As C++ has it: text with quotes.
std::string literal(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
  return out;
}

std::string cpp_number(double x) {
  if (std::isnan(x)) return "NAN";
  if (std::isinf(x)) return x > 0 ? "INFINITY" : "-INFINITY";
  return fmt::format("{}", x);
}

// "{{0, 1}, {3, 2.5}}": the elements that are not 0, by their index in memory.
std::string elements_of(const std::vector<double>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0 && !std::signbit(values[i])) continue;
    out += fmt::format("{}{{{}, {}}}", out.empty() ? "" : ", ", i, cpp_number(values[i]));
  }
  return '{' + out + '}';
}

std::string problem_code(const Problem& p) {
  std::string s = "  Problem problem;\n";
  const auto set = [&](const char* field, std::int32_t value, std::int32_t otherwise) {
    if (value != otherwise) s += fmt::format("  problem.{} = {};\n", field, value);
  };
  set("batch", p.batch, 1);
  set("heads", p.heads, 1);
  set("kv_heads", p.kv_heads, 1);
  set("seqlen_q", p.seqlen_q, 1);
  set("seqlen_k", p.seqlen_k, 1);
  set("head_dim", p.head_dim, 1);
  set("head_dim_v", p.head_dim_v, 1);
  s += fmt::format("  problem.dtype = DType::{};\n", enumerator(p.dtype));
  if (p.layout == Layout::kBSHD) s += "  problem.layout = Layout::kBSHD;\n";
  if (p.mask.kind == MaskKind::kCausal) s += "  problem.mask.kind = MaskKind::kCausal;\n";
  if (p.mask.kind == MaskKind::kCausal && p.mask.alignment == CausalAlignment::kBottomRight)
    s += "  problem.mask.alignment = CausalAlignment::kBottomRight;\n";
  if (p.mask.kind == MaskKind::kWindow) {
    s += "  problem.mask.kind = MaskKind::kWindow;\n";
    set("mask.window_left", p.mask.window_left, 0);
    set("mask.window_right", p.mask.window_right, 0);
  }
  s += fmt::format("  problem.softmax_scale = static_cast<float>({});\n", p.softmax_scale);
  return s;
}

// Many lines of literals are no test that somebody reads.
constexpr std::size_t kMostLiterals = 400;

std::string inputs_code(const ShrinkView& view) {
  const shrink::TriedCase& one = view.result.smallest;
  if (shrink::made_by_kind(one))
    return fmt::format("  const InputData inputs = make_inputs(problem, {}, {}, {});\n",
                       literal(one.inputs->kind), one.inputs->seed, cpp_number(one.inputs->scale));
  const shrink::Numbers numbers = shrink::numbers_of(one);
  if (static_cast<std::size_t>(view.result.elements[1]) > kMostLiterals)
    return fmt::format(
        "  const Capture dump = read_dump({});{}\n"
        "  InputData inputs;\n"
        "  inputs.q = dump.q;\n  inputs.k = dump.k;\n  inputs.v = dump.v;\n",
        literal(view.dump.empty() ? "FILE.h5" : view.dump),
        view.dump.empty() ? "  // written by attn-diag shrink ... -o FILE.h5" : "");
  std::string s =
      "  using Elements = std::initializer_list<std::pair<std::int64_t, double>>;\n"
      "  const auto tensor = [&](std::size_t size, Elements elements) {\n"
      "    std::vector<std::byte> bytes(size * size_of(problem.dtype));\n"
      "    for (const auto& [at, value] : elements)\n"
      "      store_element(bytes.data(), problem.dtype, at, value);\n"
      "    return bytes;\n"
      "  };\n"
      "  InputData inputs;\n";
  for (std::size_t t = 0; t < 3; ++t)
    s += fmt::format("  inputs.{} = tensor({}, {});\n", "qkv"[t], numbers.values[t].size(),
                     elements_of(numbers.values[t]));
  return s;
}

std::string options_code(const ShrinkView& view) {
  const shrink::ShrinkResult& r = view.result;
  const Provenance& run = r.capture.provenance;
  std::string s = "  RunOptions options;\n";
  s += fmt::format("  options.tile = {{{}, {}}};\n", r.smallest.tile.block_m,
                   r.smallest.tile.block_n);
  if (r.smallest.num_splits > 0)
    s += fmt::format("  options.num_splits = {};\n", r.smallest.num_splits);
  if (!run.schedule.empty() && run.schedule != "forward")
    s += fmt::format("  options.schedule = {};\n", literal(run.schedule));
  if (run.mma_order != 0) s += fmt::format("  options.mma_order = {};\n", run.mma_order);
  if (!run.async_copies.empty() && run.async_copies != "late")
    s += fmt::format("  options.async_copies = {};\n", literal(run.async_copies));
  return s;
}

std::string tolerance_code(const Tolerance& t) {
  return t.use_bound ? "" : fmt::format("Tolerance{{false, {}, {}}}", t.atol, t.rtol);
}

// ---- the sheet ----

std::string toml_number(double x) {
  if (std::isnan(x)) return "\"nan\"";
  if (std::isinf(x)) return x > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{:.9g}", x == 0 ? 0.0 : x);
}

// Nested brackets by shape; leading axes of length 1 are left out.
std::string toml_array(const std::vector<double>& values, std::vector<std::int64_t> shape) {
  while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
  const auto write = [&](const auto& self, std::size_t axis, std::size_t& next) -> std::string {
    std::string s = "[";
    for (std::int64_t i = 0; i < shape[axis]; ++i) {
      if (i > 0) s += ", ";
      s += axis + 1 == shape.size() ? toml_number(values[next++]) : self(self, axis + 1, next);
    }
    return s + "]";
  };
  std::size_t next = 0;
  return write(write, 0, next);
}

// In the order BHSD, whatever the layout.
std::vector<double> in_bhsd(const std::vector<double>& values, const Problem& p, std::int64_t heads,
                            std::int64_t rows, std::int64_t dim) {
  const Strides at = dense_strides(p.layout, heads, rows, dim);
  std::vector<double> out;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t d = 0; d < dim; ++d)
          out.push_back(
              values[static_cast<std::size_t>(b * at.batch + h * at.head + i * at.seq + d)]);
  return out;
}

std::string comments_of(const ShrinkView& view) {
  const shrink::ShrinkResult& r = view.result;
  std::string s = fmt::format("# {} on backend {}, {}; made by attn-diag shrink.\n", view.kernel,
                              view.backend, name(r.smallest.problem.dtype));
  for (const TensorComparison& t : compare_with_reference(r.capture, view.tolerance, 1).tensors) {
    if (t.mismatched == 0 || !t.first) continue;
    s += fmt::format("# {} is wrong in {} of {}: {} is {}, expected {} within {}.\n",
                     attn_diag::name(t.tensor), t.mismatched, t.compared,
                     index_text(t.tensor, t.first->index), exact(t.first->actual),
                     exact(t.first->expected), number(t.first->limit));
  }
  std::map<std::string, std::string> exempt;  // tensors by why
  for (const TensorInfo& t : kTensors) {
    const Coverage& c = r.capture.coverage[static_cast<std::size_t>(t.id)];
    if (c.never > 0)
      s += fmt::format("# {} of {} never written.\n", plural(c.never, "cell"), t.name);
    if (c.repeatedly > 0)
      s +=
          fmt::format("# {} of {} written more than once.\n", plural(c.repeatedly, "cell"), t.name);
    const std::string& why = r.capture.exempt[static_cast<std::size_t>(t.id)];
    if (why.empty()) continue;
    std::string& names = exempt[why];
    names += (names.empty() ? "" : ", ") + std::string(t.name);
  }
  for (const auto& [why, names] : exempt)
    s += fmt::format("# Not known of the kernel: {}: {}.\n", names, why);
  return s;
}

}  // namespace

std::string catch2_test(const ShrinkView& view) {
  const shrink::ShrinkResult& r = view.result;
  const bool by_trace = r.trace && !r.shows_it;
  std::string head = fmt::format("// {}: made by attn-diag shrink.\n", shrink_headline(view));
  head += "#include <attn_diag/harness/catch2.h>\n";
  std::string code = inputs_code(view);
  if (code.find("read_dump") != std::string::npos) head += "#include <attn_diag/harness/dump.h>\n";
  head +=
      by_trace ? "#include <attn_diag/harness/trace.h>\n" : "#include <attn_diag/harness/run.h>\n";
  std::string needed;
  if (code.find("NAN") != code.npos || code.find("INFINITY") != code.npos)
    needed += "#include <cmath>\n";
  if (code.find("Elements") != code.npos)
    needed += "#include <initializer_list>\n#include <utility>\n#include <vector>\n";
  if (!needed.empty()) head += '\n' + needed;
  std::string s = fmt::format(
      "\nTEST_CASE({}) {{\n  using namespace attn_diag;\n",
      literal(fmt::format("{} is right: {}", view.kernel, problem_text(r.smallest.problem))));
  s += problem_code(r.smallest.problem) + code + options_code(view);
  const bool lockstep = r.capture.provenance.schedule.starts_with("lockstep");
  s += fmt::format("  const Kernel kernel = Kernel::load({}, {}{});\n", literal(view.kernel),
                   literal(view.backend), lockstep ? ", true" : "");
  const std::string tolerance = tolerance_code(view.tolerance);
  if (by_trace) {
    s += fmt::format("  CHECK(trace({{kernel, problem, inputs, options{}}}, {{}}).agrees());\n}}\n",
                     tolerance.empty() ? "" : ", " + tolerance);
    return head + s;
  }
  if (!r.with_taps) s += "  options.taps = false;\n";
  if (!r.trace) {
    s += "  // Throws, or does not come back, as long as it is not mended.\n";
  }
  const bool of_stage = r.failure.kind == shrink::FailureKind::kWrong;
  std::string matcher =
      of_stage ? fmt::format("Stage::{}", enumerator(stage_of(r.failure.tensor))) : std::string();
  if (!tolerance.empty()) matcher += (matcher.empty() ? "" : ", ") + tolerance;
  s += fmt::format(
      "  const Capture capture = run_kernel({{kernel, problem, inputs, options}});\n"
      "  CHECK_THAT(capture, matches_reference({}));\n}}\n",
      matcher);
  return head + s;
}

bool worth_a_sheet(const Problem& p) {
  constexpr std::int64_t kMost = 64, kMostHeads = 4;
  return std::int64_t{p.seqlen_q} * p.seqlen_k * std::max(p.head_dim, p.head_dim_v) <= kMost &&
         std::int64_t{p.batch} * p.heads <= kMostHeads;
}

std::string worked_sheet(const ShrinkView& view) {
  const shrink::ShrinkResult& r = view.result;
  if (!r.trace || !worth_a_sheet(r.smallest.problem)) return "";
  const Capture& c = r.capture;
  const Problem& p = c.problem;
  std::string s =
      fmt::format("title = {}\n", literal(fmt::format("{}: {}", problem_text(p), r.failure.what)));
  s += comments_of(view);
  s += "\n[problem]\n";
  const auto set = [&](const char* key, std::int64_t value, std::int64_t otherwise) {
    if (value != otherwise) s += fmt::format("{} = {}\n", key, value);
  };
  set("batch", p.batch, 1);
  set("heads", p.heads, 1);
  set("kv_heads", p.kv_heads, p.heads);
  set("seqlen_q", p.seqlen_q, 0);
  set("seqlen_k", p.seqlen_k, 0);
  set("head_dim", p.head_dim, 0);
  set("head_dim_v", p.head_dim_v, 0);
  s += fmt::format("softmax_scale = {}\n", toml_number(p.softmax_scale));
  s += fmt::format("mask = \"{}\"\n", text(p.mask));
  const Geometry& g = c.geometry;
  s += fmt::format("\n[geometry]\nblock_m = {}\nblock_n = {}\n", g.tile.block_m, g.tile.block_n);
  set("num_splits", g.num_splits, 1);
  set("tiles_per_split", g.tiles_per_split, 1);
  if (g.frame == Frame::kTile) s += "frame = \"tile\"\n";
  if (g.has_split_merge) s += "has_split_merge = true\n";

  s += "\n[inputs]\n";
  const shrink::Numbers numbers = shrink::numbers_of(r.smallest);
  const auto input = [&](std::size_t t, std::int64_t heads, std::int64_t rows, std::int64_t dim) {
    s += fmt::format(
        "{} = {}\n", "qkv"[t],
        toml_array(in_bhsd(numbers.values[t], p, heads, rows, dim), {p.batch, heads, rows, dim}));
  };
  input(0, p.heads, p.seqlen_q, p.head_dim);
  input(1, p.kv_heads, p.seqlen_k, p.head_dim);
  input(2, p.kv_heads, p.seqlen_k, p.head_dim_v);

  reference::Options options;
  options.bounds = false;
  options.threads = 1;
  const reference::Tensors expected =
      reference::compute(p, g, c.arithmetic, {c.q.data(), c.k.data(), c.v.data()}, options);
  s += "\n[expected]\n";
  for (const TensorInfo& t : kTensors) {
    const std::vector<double>& values = expected.value[static_cast<std::size_t>(t.id)];
    if (!values.empty())
      s += fmt::format("{} = {}\n", t.name, toml_array(values, tensor_shape(t.id, p, g)));
  }
  s += "\n[actual]\n";
  for (const TensorInfo& t : kTensors) {
    if (!c.has(t.id)) continue;
    std::vector<double> values;
    for (std::int64_t i = 0; i < c[t.id].size(); ++i) values.push_back(c[t.id].at(i));
    s += fmt::format("{} = {}\n", t.name, toml_array(values, c[t.id].shape));
  }
  return s;
}

}  // namespace attn_diag::report
