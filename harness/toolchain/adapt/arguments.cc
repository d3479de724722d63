#include "harness/toolchain/adapt/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/toolchain/adapt/role_names.h"

namespace attn_diag::adapt {
namespace {

bool is_optional(const Parameter& p) { return p.element.find("optional") != std::string::npos; }

// The offset of one head, for a kernel that is called for each head.
std::string offset_of(char tensor) {
  return fmt::format(" + head * c.seqlen_{}() * c.head_dim{}()",
                     tensor == 'q' || tensor == 'o' ? 'q' : 'k',
                     tensor == 'v' || tensor == 'o' ? "_v" : "");
}

}  // namespace

std::string stride_expression(const std::string& stride) {
  const std::string axis = stride.substr(2);
  return axis == "dim" ? "1" : fmt::format("c.{}_strides().{}", stride[0], axis);
}

std::string size_expression(Role role, const Facts& facts) {
  switch (role) {
    case Role::kBatch:
      return facts.batch_is_slices ? "c.batch() * c.heads()" : "c.batch()";
    case Role::kHeads:
      return "c.heads()";
    case Role::kKvHeads:
      return "c.kv_heads()";
    case Role::kGroup:
      return "c.heads() / c.kv_heads()";
    case Role::kSeqlen:
      return facts.one_query        ? "c.seqlen_k()"
             : facts.other_seqlen_k ? "c.seqlen_q()"
                                    : "c.seqlen()";
    case Role::kSeqlenQ:
      return "c.seqlen_q()";
    case Role::kSeqlenK:
      return "c.seqlen_k()";
    case Role::kTokens:
      return "c.batch() * c.seqlen_q()";
    case Role::kHeadDim:
      return "c.head_dim()";
    case Role::kHeadDimV:
      return "c.head_dim_v()";
    case Role::kBatchHeads:
      return "c.batch() * c.heads()";
    case Role::kHidden:
      return "c.heads() * c.head_dim()";
    case Role::kNumSplits:
      return "c.num_splits()";
    case Role::kSplitLength:
      return "(c.seqlen_k() + c.num_splits() - 1) / c.num_splits()";
    case Role::kPageSize:
      return facts.cache && facts.cache->page > 0 ? std::to_string(facts.cache->page) : "";
    case Role::kPagesPerBatch:
      return facts.cache ? "cache.pages_per_batch()" : "";
    case Role::kPages:
      return facts.cache ? "cache.pages()" : "";
    case Role::kPosition:
      return facts.one_query ? "c.seqlen_k() - 1" : "";
    case Role::kKvHidden:
      return "c.kv_heads() * c.head_dim()";
    case Role::kZero:
      return "0";
    case Role::kTileM:
      return "c.tile().block_m";
    case Role::kTileN:
      return "c.tile().block_n";
    case Role::kTilesM:
      return "(c.seqlen_q() + c.tile().block_m - 1) / c.tile().block_m";
    case Role::kTilesN:
      return "(c.seqlen_k() + c.tile().block_n - 1) / c.tile().block_n";
    case Role::kScale:
      return "c.scale()";
    case Role::kScaleLog2:
      return "c.scale() * 1.44269504f";
    case Role::kCausal:
      return facts.bottom_right && facts.other_seqlen_k
                 ? "c.problem().mask.kind == attn_diag::MaskKind::kCausal"
                 : "c.is_causal()";
    case Role::kIsFp16:
      return "c.dtype() == attn_diag::DType::kFp16";
    case Role::kIsBf16:
      return "c.dtype() == attn_diag::DType::kBf16";
    case Role::kWindowLeft:
      return "c.window_left()";
    case Role::kWindow:
      return facts.window_counts_itself ? "c.window_left() + 1" : "c.window_left()";
    case Role::kWindowRight:
      return "c.window_right()";
    case Role::kDropout:
      return "0.0f";
    case Role::kStream:
      return "c.stream()";
    default:
      return "";
  }
}

// Of memory whose elements are of another type.
static bool is_byte_type(const std::string& element) {
  static const std::set<std::string> bytes = {"char",   "signed char", "unsigned char", "uint8_t",
                                              "int8_t", "std::byte",   "std::uint8_t"};
  return bytes.count(element) > 0;
}

std::string Arguments::tensor(const char* which, const Parameter& p) {
  if (is_tensor_class(p)) return fmt::format("attn_diag::torch_{}(c)", which);
  const auto named = x_names.find(p.element);
  const std::string element = named == x_names.end() ? p.element : named->second;
  const std::string offset = x_facts.single_head ? offset_of(which[0])
                             : x_facts.per_batch
                                 ? fmt::format(" + one_batch * c.{}_strides().batch", which)
                                 : "";
  if (x_facts.codes.count(which[0]) > 0) {
    const bool bytes = element != "void" && !element.ends_with("4");
    return bytes ? fmt::format("{}.codes<{}>()", coded(which[0]), element)
                 : fmt::format("reinterpret_cast<{}*>({}.codes<signed char>())", element,
                               coded(which[0]));
  }
  if (x_facts.cache && (which[0] == 'k' || which[0] == 'v'))
    return fmt::format("{}.{}()", cache(element == "void" ? type_of_case() : element), which);
  if (x_facts.other_output_layout && which[0] == 'o') {
    const std::string line = fmt::format("attn_diag::OutputInOtherLayout<{}> output(c);", element);
    if (add_once(line)) x_around.after.emplace_back("output.store();");
    return "output.data()";
  }
  const bool wide = element.ends_with("2") || element.ends_with("4");
  const bool plain = !wide && element != "void" && !is_byte_type(element);
  const char* const of = x_facts.host_memory ? "host" : "c";
  if (plain) return fmt::format("{}.{}<{}>(){}", of, which, element, offset);
  const std::string bytes =
      fmt::format("{}.{}{}()", of, which, x_facts.host_memory ? "<void>" : "");
  return element == "void" ? bytes : fmt::format("static_cast<{}*>({})", element, bytes);
}

// For memory without a type.
const char* Arguments::type_of_case() const {
  if (x_facts.dtypes.count("fp16") > 0) return "half";
  return x_facts.dtypes.count("bf16") > 0 ? "__nv_bfloat16" : "float";
}

// The variable that holds the codes of a tensor and their scales.
std::string Arguments::coded(char tensor) {
  add_once(fmt::format("attn_diag::CodedInput {0}_coded = attn_diag::coded_{0}(c);", tensor));
  return fmt::format("{}_coded", tensor);
}

bool Arguments::add_once(const std::string& line) {
  const auto& lines = x_around.before;
  if (std::find(lines.begin(), lines.end(), line) != lines.end()) return false;
  x_around.before.push_back(line);
  return true;
}

// The variable that holds K and V as a cache.
std::string Arguments::cache(const std::string& element) {
  const CacheFact& fact = *x_facts.cache;
  const auto order = [](const std::string& name) { return "attn_diag::CacheOrder::" + name; };
  add_once(fmt::format("attn_diag::KvCache<{}> cache(c, {{{}, {}, {}, {}}});", element, fact.page,
                       order(fact.k), order(fact.v), fact.chunk));
  return "cache";
}

// Strides in an array, in the order in which the code names them.
std::string Arguments::strides(const Parameter& p, const std::vector<std::string>& order) {
  std::vector<std::string> values;
  for (const std::string& stride : order)
    values.push_back(fmt::format("static_cast<{}>({})", p.element, stride_expression(stride)));
  add_once(
      fmt::format("const {} {}_values[] = {{{}}};", p.element, p.name, fmt::join(values, ", ")));
  return p.name + "_values";
}

std::string Arguments::buffer(const Parameter& p, const std::string& count, const char* fill) {
  const auto named = x_names.find(p.element);
  std::string element = named == x_names.end() ? p.element : named->second;
  if (element == "void") element = "float";
  x_around.needs_rows = true;
  x_around.needs_buffer = x_around.needs_buffer || !is_tensor_class(p);
  // Kernels pad what they keep to whole tiles of queries.
  if (count.find("padded_rows") != std::string::npos)
    add_once("const std::size_t padded_rows = rows + std::size_t(128) * c.batch() * c.heads();");
  if (is_tensor_class(p)) {
    x_notes.push_back(
        {NoteKind::kUnknown, fmt::format("the shape of '{}': it is flat, of fp32", p.name)});
    return fmt::format("torch::empty({{static_cast<std::int64_t>({})}}, torch::kFloat32){}", count,
                       fill[0] == 0 ? "" : fmt::format(".fill_({})", fill));
  }
  x_around.before.push_back(
      fmt::format("attn_diag::DeviceBuffer<{}> {}_buffer({});", element, p.name, count));
  if (fill[0] != 0) x_around.before.push_back(fmt::format("{}_buffer.fill({});", p.name, fill));
  return p.name + "_buffer.data()";
}

// Where batches begin, or how long they are: all alike here.
std::string Arguments::integers(const Parameter& p, Role role) {
  // Lengths without a word of queries are those of the keys that each batch has.
  const bool about_keys =
      is_about_keys(p.name) || (role == Role::kLengths && !is_about_queries(p.name));
  const bool keys = about_keys && x_facts.other_seqlen_k;
  const char* length = keys ? "c.seqlen_k()" : "c.seqlen_q()";
  x_around.needs_buffer = true;
  const bool offsets = role == Role::kOffsets;
  x_around.before.push_back(fmt::format("std::vector<{}> {}_values;", p.element, p.name));
  x_around.before.push_back(
      fmt::format("for (int i = 0; i < c.batch(){}; ++i)\n  {}_values.push_back({}{});",
                  offsets ? " + 1" : "", p.name, offsets ? "i * " : "", length));
  x_around.before.push_back(fmt::format(
      "attn_diag::DeviceBuffer<{0}> {1}_buffer({1}_values.size());", p.element, p.name));
  x_around.before.push_back(fmt::format(
      "cudaMemcpy({0}_buffer.data(), {0}_values.data(), {0}_values.size() * sizeof({1}), "
      "cudaMemcpyHostToDevice);",
      p.name, p.element));
  x_notes.push_back(
      {NoteKind::kGuessed,
       fmt::format("'{}' holds {}, which are all of one length here", p.name, words(role))});
  return p.name + "_buffer.data()";
}

std::string Arguments::packed(const char* type, const char* axes, const Parameter& p) {
  const auto named = x_names.find(p.element);
  const std::string element = named == x_names.end() ? p.element : named->second;
  x_around.before.push_back(fmt::format("attn_diag::{}<{}> {}_packed(c);", type, element, p.name));
  x_notes.push_back({NoteKind::kGuessed, fmt::format("'{}' is packed as {}", p.name, axes)});
  return p.name + "_packed.data()";
}

// Room for what attention kernels keep: scores, or a sum, a maximum and a few more numbers a row and split.
std::string Arguments::workspace(const Parameter& p, const std::string& question, bool is_zero) {
  const std::string count =
      "(padded_rows * (c.seqlen_k() + (c.num_splits() + 1) * (c.head_dim_v() + 4)) + 4096)";
  const bool is_bytes = is_byte_type(p.element);
  x_notes.push_back(
      {NoteKind::kUnknown,
       fmt::format("{}{}: it has seqlen_k + (num_splits + 1) * (head_dim_v + 4) {} a row{}",
                   question, is_zero ? "" : ", and whether it must be zero",
                   is_bytes ? "floats" : "elements", is_zero ? ", all 0" : ", not set")});
  return buffer(p, is_bytes ? "sizeof(float) * " + count : count, is_zero ? "0" : "");
}

// Whether a class of this name keeps no numbers of attention, and is rather left out: "TimerManager".
static bool is_service(const std::string& element) {
  const std::string name = join(split_name(element));
  const auto ends = {"timer", "manager", "profiler", "logger", "context", "handle", "stats"};
  return std::any_of(ends.begin(), ends.end(),
                     [&](const char* end) { return name.ends_with(end); });
}

std::string Arguments::unknown(const Parameter& p, const Classified& c) {
  if (p.is_pointer && p.name.empty()) return "nullptr";  // nobody reads it
  // A null pointer would end the first run; counters and flags begin at zero.
  if (p.is_pointer && !p.is_const && !is_tensor_class(p) && !is_service(p.element))
    return workspace(p, fmt::format("what '{}' is and how large it must be", p.name),
                     is_integer(p.element));
  // As tests of block sizes pass it.
  if (const std::string name = join(split_name(p.name));
      !p.is_pointer && is_integer(p.element) &&
      (name == "blocksize" || name == "blockdim" || name == "threads" || name == "numthreads" ||
       name == "nthreads" || name == "threadsperblock")) {
    x_notes.push_back({NoteKind::kGuessed, fmt::format("'{}' is 128 threads a block", p.name)});
    return "128";
  }
  const std::string why = c.guess.empty() ? "" : " (" + c.guess + ")";
  x_notes.push_back(
      {NoteKind::kUnknown, fmt::format("what to pass for '{} {}'{}: it stands as {}", p.type,
                                       p.name, why, p.is_pointer ? "nullptr" : "0")});
  if (p.is_pointer) return fmt::format("nullptr /* {}? */", p.name);
  if (is_optional(p) || is_tensor_class(p)) return fmt::format("{{}} /* {}? */", p.name);
  if (p.element == "bool") return fmt::format("false /* {}? */", p.name);
  // An enumeration may end in _t as well: nothing converts to it.
  const bool number = p.element == "float" || p.element == "double" || p.element.find("int") == 0 ||
                      p.element.starts_with("uint") || p.element.ends_with("size_t") ||
                      p.element.find("long") != std::string::npos ||
                      p.element.starts_with("unsigned");
  if (!number) return fmt::format("{}{{}} /* {}? */", p.element, p.name);
  return fmt::format("0 /* {}? */", p.name);
}

std::string Arguments::of(const Parameter& p, const Classified& c) {
  if (!c.guess.empty() && c.role != Role::kUnknown)
    x_notes.push_back(
        {NoteKind::kGuessed, fmt::format("'{}' is {}: {}", p.name, words(c.role), c.guess)});
  switch (c.role) {
    case Role::kQ:
      return tensor("q", p);
    case Role::kK:
      return tensor("k", p);
    case Role::kV:
      return tensor("v", p);
    case Role::kO:
      return is_optional(p) ? "{}" : tensor("o", p);
    case Role::kLse:
      if (is_optional(p)) return "{}";
      if (is_tensor_class(p)) return "attn_diag::torch_lse(c)";
      if (x_facts.host_memory) return "host.lse()";
      if (x_facts.lse_heads_first) {
        if (add_once("attn_diag::LseHeadsFirst lse(c);"))
          x_around.after.emplace_back("lse.store();");
        return "lse.data()";
      }
      return std::string("c.lse()") + (x_facts.single_head ? " + head * c.seqlen_q()"
                                       : x_facts.per_batch
                                           ? " + one_batch * c.heads() * c.seqlen_q()"
                                           : "");
    case Role::kQkv:
      return packed("PackedQkv", "[batch][seqlen][3][heads][head_dim]", p);
    case Role::kKv:
      return packed("PackedKv", "[batch][seqlen_k][2][kv_heads][head_dim]", p);
    case Role::kRowMax:
      x_around.zero_output = true;
      return buffer(p, "rows", "-INFINITY");
    case Role::kRowSum:
      return buffer(p, "rows", "0.0f");
    case Role::kScores:
    case Role::kProbs:
      if (x_facts.part != Part::kAttention)
        return tensor(c.role == Role::kScores ? "scores" : "probs", p);
      return buffer(p, "rows * c.seqlen_k()", "");
    case Role::kPartialO:
      return buffer(p, "padded_rows * c.num_splits() * c.head_dim_v()", "");
    case Role::kPartialLse:
    case Role::kPartialMax:
    case Role::kPartialSum:
      return buffer(p, "padded_rows * c.num_splits()", "");
    case Role::kScale:
      return p.is_pointer ? buffer(p, "rows", "c.scale()") : "c.scale()";
    case Role::kUnitScale:
      return p.is_pointer ? buffer(p, "rows * c.head_dim()", "1.0f") : "1.0f";
    case Role::kCodeScale:
    case Role::kCodeZero: {
      const char* const what = c.role == Role::kCodeScale ? "scale" : "zero";
      if (!p.is_pointer) return fmt::format("{}.{}()", coded(c.tensor), what);
      const auto named = x_names.find(p.element);
      return fmt::format("{}.{}s<{}>()", coded(c.tensor), what,
                         named == x_names.end() ? p.element : named->second);
    }
    case Role::kWorkspace:
      return workspace(p, fmt::format("how large '{}' must be", p.name), false);
    case Role::kOptionalTensor:
      x_notes.push_back({NoteKind::kGuessed, fmt::format("'{}' may be absent", p.name)});
      return p.is_pointer ? "nullptr" : "{}";
    case Role::kPaged:
      if (!x_facts.cache || x_facts.cache->page == 0 || !p.is_pointer || !is_page_table(p.name))
        return unknown(p, c);
      return fmt::format("reinterpret_cast<{}*>(cache.table())", p.element);
    case Role::kOffsets:
    case Role::kLengths:
      return is_tensor_class(p) ? unknown(p, c) : integers(p, c.role);
    case Role::kDropout:
      x_notes.push_back({NoteKind::kGuessed, fmt::format("'{}' is 0: no dropout", p.name)});
      return "0.0f";
    case Role::kStride:
      if (const auto order = x_facts.stride_arrays.find(p.name);
          p.is_pointer && order != x_facts.stride_arrays.end())
        return strides(p, order->second);
      return p.is_pointer ? unknown(p, c) : stride_expression(c.stride);
    default: {
      const std::string expression = is_tensor(c.role) ? "" : size_expression(c.role, x_facts);
      return expression.empty() ? unknown(p, c) : expression;
    }
  }
}

}  // namespace attn_diag::adapt
