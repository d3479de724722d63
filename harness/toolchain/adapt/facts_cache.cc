// K and V in a cache: pages that a table lists, chunks of the head dimension; strides in arrays.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "harness/toolchain/adapt/axes.h"
#include "harness/toolchain/adapt/facts_code.h"
#include "harness/toolchain/adapt/role_names.h"

namespace attn_diag::adapt {
namespace {

using source::Syntax;

constexpr std::int64_t kAnyPage = 16;  // of code that is given the size of its pages

bool has_page_table(const FactsCode& code) {
  for (const FunctionModel* f : code.functions())
    for (const Parameter& p : f->parameters)
      if (p.is_pointer && is_integer(p.element) && is_page_table(p.name)) return true;
  return std::any_of(code.candidate().members.begin(), code.candidate().members.end(),
                     [](const Parameter& p) { return p.is_pointer && is_page_table(p.name); });
}

// The page size that constants and template arguments say; 0: they say none.
std::int64_t page_size(const FactsCode& code) {
  const Model& model = code.model();
  const auto usable = [](std::optional<std::int64_t> value) {
    return value && *value >= 1 && *value <= 4096;
  };
  for (const FunctionModel* f : code.functions())
    for (std::size_t i = 0; i < f->templates.size(); ++i) {
      if (classify_constant(f->templates[i].name).role != Role::kPageSize) continue;
      for (const auto& instance : model.instances(f->name))
        if (i < instance.size() && usable(model.value(instance[i])))
          return *model.value(instance[i]);
    }
  for (const std::string& name : model.constants())
    if (classify_constant(name).role == Role::kPageSize && usable(model.value(name)))
      return *model.value(name);
  return 0;
}

// An axis of a cache, as a comment has it.
enum class Axis { kOther, kPages, kTokens, kHeads, kDims, kChunks };
Axis axis_of(std::string text, std::string& divisor) {
  text = lower(text);
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    divisor = text.substr(slash + 1);
    text.resize(slash);
  }
  std::string word;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) word += c;
  const auto holds = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (holds("headdim") || holds("headsize") || holds("dimhead") || holds("sizeperhead") ||
      word == "d" || word == "dh" || word == "hd" || word == "dim")
    return slash == std::string::npos ? Axis::kDims : Axis::kChunks;
  if (slash != std::string::npos) return Axis::kOther;
  if (holds("head") || word == "h" || word == "hkv" || word == "nh") return Axis::kHeads;
  if (holds("numblock") || holds("numpage") || holds("nblock") || holds("npage") ||
      word == "blocks" || word == "pages")
    return Axis::kPages;
  if (holds("blocksize") || holds("pagesize") || holds("token") || holds("len") || holds("seq") ||
      holds("slot") || holds("perpage") || holds("perblock"))
    return Axis::kTokens;
  return Axis::kOther;
}

// What comments say of the order of axes: "[num_blocks, num_kv_heads, head_size / x, block_size, x]".
void read_orders(FactsCode& code, bool paged, CacheFact& cache, bool& chunks) {
  for (const std::string& text : comments_of(code.model()))
    for (std::size_t open = text.find('['); open != std::string::npos;
         open = text.find('[', open + 1)) {
      const std::size_t close = text.find(']', open);
      if (close == std::string::npos || close - open > 200) continue;
      std::vector<Axis> axes;
      std::string divisor;
      for (const std::string& part : Model::split_text(text.substr(open + 1, close - open - 1)))
        axes.push_back(axis_of(part, divisor));
      const auto at = [&](Axis axis) {
        return std::find(axes.begin(), axes.end(), axis) - axes.begin();
      };
      const auto end = static_cast<std::ptrdiff_t>(axes.size());
      const auto tokens = at(Axis::kTokens), heads = at(Axis::kHeads), dims = at(Axis::kDims);
      if (tokens == end || heads == end) continue;
      if (at(Axis::kChunks) < tokens && axes.size() == 5) {
        chunks = true;
        cache.k = "kChunks";
        divisor.erase(0, divisor.find_first_not_of(' '));
        auto value = code.model().value(divisor);
        std::string upper = divisor;
        for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        if (!value) value = code.model().value(upper);
        if (value && *value >= 1 && *value <= 64) cache.chunk = *value;
      } else if (axes.size() == 4 && dims < tokens) {
        cache.v = "kHeadsDims";
      } else if (axes.size() == 4 && paged && at(Axis::kPages) == 0) {
        const char* const order = heads < tokens ? "kHeadsTokens" : "kTokensHeads";
        if (cache.k != "kChunks") cache.k = order;
        if (cache.v != "kHeadsDims") cache.v = order;
      }
    }
}

// What the page of a table is multiplied by: "(page * num_heads + head) * ..." or "(page * PAGE_SIZE + token) * ...";
// empty: nothing says it, or not always the same.
std::string order_of_index(const FactsCode& code) {
  const Syntax& s = code.syntax();
  std::set<std::string> found;
  code.each_token([&](const FunctionModel&, std::size_t i) {
    const std::string page = lower(std::string(s[i].text));
    const auto has = [](const std::string& name, std::initializer_list<const char*> parts) {
      return std::any_of(parts.begin(), parts.end(),
                         [&](const char* part) { return name.find(part) != std::string::npos; });
    };
    if (!s[i].is_identifier() || !has(page, {"block", "page"}) ||
        has(page, {"size", "num", "blockidx", "blockdim", "table"}))
      return;
    std::size_t at = i + 1;
    if (s.is(at, ")")) ++at;
    if (!s.is(at, "*") || at + 2 >= s.size() || !s.is(at + 2, "+")) return;
    const std::string times = lower(std::string(s[at + 1].text));
    if (has(times, {"head"}) && !has(times, {"dim", "size"}))
      found.insert("kHeadsTokens");
    else if (has(times, {"size", "token"}))
      found.insert("kTokensHeads");
  });
  return found.size() == 1 ? *found.begin() : "";
}

}  // namespace

void read_cache(FactsCode& code, Facts& facts) {
  const bool paged = has_page_table(code);
  CacheFact cache;
  cache.page = !paged ? 0 : page_size(code);
  if (paged && cache.page == 0) cache.page = kAnyPage;
  if (facts.bshd) cache.k = cache.v = "kTokensHeads";
  if (const std::string order = paged ? order_of_index(code) : ""; !order.empty())
    cache.k = cache.v = order;
  if (facts.dtypes == std::set<std::string>{"fp32"}) cache.chunk = 4;
  bool chunks = false;
  read_orders(code, paged, cache, chunks);
  if (!paged && !chunks) return;
  facts.cache = cache;
  code.note(NoteKind::kGuessed,
            fmt::format("K and V lie in a cache{}: K as {}, V as {} (kv_cache.h){}",
                        paged ? fmt::format(" of pages of {} tokens", cache.page) : "", cache.k,
                        cache.v, chunks ? fmt::format(", chunks of {}", cache.chunk) : ""));
}

// const int q_strides[3], by the parameters that q_strides[0] and its like are passed for.
void read_stride_arrays(FactsCode& code, Facts& facts) {
  const Model& model = code.model();
  const FunctionModel& f = *code.candidate().function;
  for (std::size_t k = 0; k < code.candidate().roles.size(); ++k) {
    const Parameter& p = f.parameters[k];
    if (!p.is_pointer || code.candidate().roles[k].role != Role::kStride) continue;
    std::map<std::int64_t, std::string> order;
    for (const Launch& launch : f.launches) {
      const FunctionModel* const kernel = model.function(launch.kernel);
      for (std::size_t i = 0; kernel != nullptr && i < launch.arguments.size(); ++i) {
        const std::string& given = launch.arguments[i];
        if (!given.starts_with(p.name + "[") || i >= kernel->parameters.size()) continue;
        const auto index =
            model.value(given.substr(p.name.size() + 1, given.find(']') - p.name.size() - 1));
        const std::string stride = stride_of(kernel->parameters[i].name);
        if (index && *index >= 0 && *index < 4 && !stride.empty()) order[*index] = stride;
      }
    }
    std::vector<std::string>& strides = facts.stride_arrays[p.name];
    for (const auto& [index, stride] : order)
      if (index == static_cast<std::int64_t>(strides.size())) strides.push_back(stride);
    if (strides.size() == order.size() && strides.size() >= 2) continue;
    const std::string tensor =
        tensor_role(p.name.substr(0, 1)) == Role::kUnknown ? "q" : p.name.substr(0, 1);
    strides = {tensor + " batch", tensor + " head", tensor + " seq", tensor + " dim"};
    code.note(NoteKind::kGuessed,
              fmt::format("'{}' holds strides of batch, head, row, dim", p.name));
  }
  if (!facts.stride_arrays.empty() && !facts.both_layouts) {
    facts.both_layouts = true;
    code.note(NoteKind::kFound, "strides of heads and rows are parameters: both layouts");
  }
}

}  // namespace attn_diag::adapt
