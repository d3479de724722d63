#include "harness/lines/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "harness/base/index_ranges.h"

namespace attn_diag::lines {

using host::ValueNode;
using host::ValueOp;
using host::ValueSite;

namespace {

constexpr const char* kBuffers[] = {"q", "k", "v"};

struct NamedLine {
  std::string name;
  int line;
  std::string sources;             // as value_callouts::Site has them
  std::optional<double> constant;  // that is assigned there
};
struct Condition {
  bool loop;
  int line;
  std::vector<NamedLine> tests;
};

std::vector<std::string_view> split(std::string_view words, char by) {
  std::vector<std::string_view> out;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(by), words.size());
    if (end > 0) out.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return out;
}

// "row@12:yt"
std::vector<NamedLine> variables_in(std::string_view words, char by) {
  std::vector<NamedLine> out;
  for (const std::string_view word : split(words, by)) {
    const std::size_t at = word.find('@'), colon = word.find(':');
    if (at == word.npos) continue;
    const std::size_t equals = word.find('=', at);
    std::optional<double> constant;
    if (equals != word.npos && equals < colon)
      constant = std::atof(std::string(word.substr(equals + 1)).c_str());
    out.push_back({std::string(word.substr(0, at)),
                   std::atoi(std::string(word.substr(at + 1)).c_str()),
                   colon == word.npos ? "" : std::string(word.substr(colon + 1)), constant});
  }
  return out;
}

// "loop 12 n@9: n@11:x,if 30 row@4:yt,"
std::vector<Condition> conditions_in(const std::string& words) {
  std::vector<Condition> out;
  for (const std::string_view word : split(words, ',')) {
    const std::vector<std::string_view> parts = split(word, ' ');
    if (parts.size() < 2) continue;
    out.push_back(
        {parts[0] == "loop", std::atoi(std::string(parts[1]).c_str()), variables_in(word, ' ')});
  }
  return out;
}

enum class What : std::uint8_t {
  kIll,
  kUnstored,
  kNothing,  // a number that comes of no input
  kOtherRow,
  kOtherColumn,
  kMissing,
  kExtra,
  kFrame,
  kOther,  // ill-formed in no way, and wrong all the same
};

// Why an element is wrong.
struct Cause {
  What what = What::kOther;
  Ill ill = Ill::kNot;
  std::uint32_t node = 0;  // where it began
  std::uint32_t site = 0;
  std::uint32_t row = 0, column = 0;
  std::vector<unsigned> keys;  // of kMissing, kExtra
  bool of_l = false;           // of these: in the sum that o is divided by

  auto kind() const { return std::tuple(what, ill, site); }
};

class Explainer {
 public:
  Explainer(const Terms& terms, const std::vector<OutputElement>& elements, LineDivergence& out)
      : x_terms(terms),
        x_graph(terms.graph()),
        x_attention(terms.attention()),
        x_elements(elements),
        x_out(out) {}

  void run() {
    std::map<std::tuple<What, Ill, std::uint32_t>, std::vector<Cause>> causes;
    std::map<std::tuple<What, Ill, std::uint32_t>, std::int64_t> of_right;
    std::size_t wrong = 0;
    for (const OutputElement& element : x_elements) {
      const Cause cause = cause_of(element);
      if (!element.wrong) {
        ++x_out.right;
        if (cause.what == What::kOther)
          ++x_out.understood;
        else
          ++of_right[cause.kind()];
        continue;
      }
      ++wrong;
      causes[cause.kind()].push_back(cause);
    }
    if (wrong == 0) {
      x_out.answer = LineAnswer::kNone;
      return;
    }
    // What is as common where all is right is no cause.
    const auto is_innocent = [&](const auto& kind, std::size_t count) {
      const auto found = of_right.find(kind);
      return found != of_right.end() &&
             static_cast<double>(found->second) / static_cast<double>(x_out.right) >
                 0.5 * static_cast<double>(count) / static_cast<double>(wrong);
    };
    // The cause of most elements that right ones do not have; of two alike, the one that began first.
    const std::vector<Cause>* most = nullptr;
    bool seen_in_right = false;
    for (const bool with_innocent : {false, true}) {
      for (const auto& [kind, list] : causes) {
        if (std::get<0>(kind) == What::kOther || is_innocent(kind, list.size()) != with_innocent)
          continue;
        if (most == nullptr || list.size() > most->size() ||
            (list.size() == most->size() && list.front().node < most->front().node))
          most = &list;
      }
      if (most != nullptr) {
        seen_in_right = with_innocent;
        break;
      }
    }
    if (most == nullptr) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason =
          "every number is made as attention asks for, and o is wrong all the same: a matter of "
          "rounding, of a "
          "number that comes of no input, or of what the watch build does not see";
      return;
    }
    suspect(*most);
    const double share = static_cast<double>(most->size()) / static_cast<double>(wrong);
    x_out.answer = x_out.suspects.empty() ? LineAnswer::kUnsure : LineAnswer::kLine;
    if (!x_sure) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason = "the first of these lines is the likeliest";
    }
    if (seen_in_right) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason = "rows that are right are made the same way";
    } else if (share < 0.25) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason = fmt::format("this explains {:.0f} % of the wrong elements", share * 100);
    } else if (x_out.right > 0 && 2 * x_out.understood < x_out.right) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason = "of the elements that are right most are made in a way that is not understood";
    } else if (most->front().ill == Ill::kMeaningless && x_out.understood == 0) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason =
          "no element is right: whether that is the kernel's own way or its fault cannot be told";
    } else if (most->front().ill == Ill::kUnknown) {
      x_out.answer = LineAnswer::kUnsure;
      x_out.reason = "an operation that is not known stands there";
    }
  }

 private:
  const ValueNode& node(std::uint32_t n) const { return x_graph.nodes[n]; }
  const ValueSite& site(std::uint32_t n) const { return x_graph.sites[n]; }
  ValueOp op(std::uint32_t n) const {
    return node(n).site == 0 ? ValueOp::kBits : site(node(n).site).op;
  }

  bool is_load(std::uint32_t n) const {
    return op(n) == ValueOp::kLoad || op(n) == ValueOp::kLoadNumber;
  }

  // Causes.

  Cause cause_of(const OutputElement& element) {
    const host::ValueOutput& output = x_graph.outputs[element.of_lse ? 1 : 0][element.index];
    Cause cause;
    if (element.of_lse)
      cause.row = static_cast<std::uint32_t>(element.index);
    else
      x_attention.locate_output(element.index, cause.row, cause.column);
    if (output.block == ~0u) {
      cause.what = What::kUnstored;
      return cause;
    }
    cause.site = output.site;
    cause.node = output.node;
    const Term term = output.node == 0 ? Term{} : x_terms[output.node];
    if (term.kind == TermKind::kIll) {
      cause.what = What::kIll;
      cause.ill = term.ill;
      cause.node = term.root;
      cause.site = node(term.root).site;
      return cause;
    }
    if (element.of_lse) return cause_of_lse(term, cause, element.wrong);
    if (term.kind != TermKind::kWeight || term.column == kNone) {
      // Of a row without keys o is 0.
      if (term.kind == TermKind::kNumber && sees_nothing(cause.row)) return cause;
      cause.what = What::kNothing;
      if (term.kind == TermKind::kNumber)
        for (unsigned j = 0; j < x_terms.keys().size(); ++j)
          if (x_attention.visible(cause.row, j)) cause.keys.push_back(j);
      return cause;
    }
    if (term.row != cause.row) {
      cause.what = What::kOtherRow;
      return cause;
    }
    if (term.column != cause.column) {
      cause.what = What::kOtherColumn;
      return cause;
    }
    if (keys_differ(term, cause)) return cause;
    if (std::fabs(term.x - x_attention.lse(cause.row)) > 0.01) {
      cause.what = What::kFrame;
      frame_cause(cause);
      return cause;
    }
    return cause;
  }

  Cause cause_of_lse(const Term& term, Cause cause, bool wrong) const {
    if (term.kind == TermKind::kNumber && sees_nothing(cause.row)) return cause;
    if (term.kind != TermKind::kLog) {
      cause.what = What::kNothing;
      return cause;
    }
    if (term.row != cause.row) {
      cause.what = What::kOtherRow;
      return cause;
    }
    if (keys_differ(term, cause)) {
      cause.of_l = true;
      return cause;
    }
    if (wrong) cause.what = What::kFrame;
    return cause;
  }

  bool sees_nothing(std::uint32_t row) const {
    for (unsigned j = 0; j < x_terms.keys().size(); ++j)
      if (x_attention.visible(row, j)) return false;
    return true;
  }

  // Of a sum over keys: whether it lacks some, or has some it should not.
  bool keys_differ(const Term& term, Cause& cause) const {
    std::vector<unsigned> missing, extra;
    for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
      const bool has = x_terms.keys().has(term.set, j), should = x_attention.visible(cause.row, j);
      if (has && !should) extra.push_back(j);
      if (!has && should) missing.push_back(j);
    }
    if (missing.empty() && extra.empty()) return false;
    cause.what = extra.empty() ? What::kMissing : What::kExtra;
    cause.keys = extra.empty() ? missing : extra;
    // Weights that are 0 in float count as nothing.
    if (extra.empty()) {
      const double lse = x_attention.lse(cause.row);
      std::erase_if(cause.keys, [&](unsigned j) {
        return x_attention.score(cause.row, key_row(cause.row, j)) - lse < -80;
      });
      if (cause.keys.empty()) {
        cause.what = What::kOther;
        return false;
      }
    }
    return true;
  }

  std::uint32_t key_row(std::uint32_t row, unsigned key) const {
    const auto sk = static_cast<std::uint32_t>(x_attention.problem().seqlen_k);
    std::uint32_t first = 0;
    while (!x_attention.same_head(row, first)) first += sk;
    return first + key;
  }

  // What was only moved.
  std::uint32_t made_by(std::uint32_t n) const {
    for (;;) {
      const ValueOp is = op(n);
      const bool moved =
          node(n).site != 0 && !node(n).is_input() && node(n).operand[0] != 0 &&
          (is == ValueOp::kStore || is == ValueOp::kLoad || is == ValueOp::kLoadNumber ||
           is == ValueOp::kRound || is == ValueOp::kPick ||
           (is == ValueOp::kBits && node(n).operand[1] == 0));
      if (!moved) return n;
      n = node(n).operand[0];
    }
  }

  // o is what it should be but for a factor: is it the sum that it is divided by?
  void frame_cause(Cause& cause) {
    std::vector<std::uint32_t> pending = {made_by(cause.node)};
    bool placed = false;
    for (std::size_t i = 0; i < pending.size() && i < 256; ++i) {
      const std::uint32_t at = pending[i];
      if (node(at).site == 0 || node(at).is_input()) continue;
      const ValueOp is = op(at);
      if (is == ValueOp::kDivide || is == ValueOp::kMultiply) {
        for (const unsigned side : {1u, 0u}) {
          const std::uint32_t by = node(at).operand[side];
          if (by == 0) continue;
          const Term& term = x_terms[by];
          const bool is_sum = term.kind == TermKind::kInverse ||
                              (is == ValueOp::kDivide && side == 1 &&
                               term.kind == TermKind::kWeight && term.column == kNone);
          if (!is_sum) continue;
          Cause of_sum = cause;
          if (keys_differ(term, of_sum) && of_sum.what != What::kOther) {
            cause = of_sum;
            cause.of_l = true;
            cause.node = by;
            cause.site = node(at).site;
            return;
          }
        }
        if (!placed) {
          placed = true;
          cause.node = at;
          cause.site = node(at).site;
        }
      }
      if (is == ValueOp::kProduct) {
        const std::uint32_t* pair = x_graph.products.data() + node(at).operand[1];
        if (node(at).operand[2] > 0) pending.push_back(made_by(pair[0]));
        continue;
      }
      for (const std::uint32_t operand : node(at).operand)
        if (operand != 0 && operand < at && x_terms[operand].kind == TermKind::kWeight)
          pending.push_back(made_by(operand));
    }
  }

  // Suspects.

  // Of the suspect that comes next, if it is the first: nothing else explains what is seen.
  void be_sure() { x_sure = x_sure || x_out.suspects.empty(); }

  void suggest(const std::string& file, const std::string& function, int line, int column,
               const std::string& variable, const std::string& why) {
    if (line == 0) return;
    const bool own = variable.find("attn_diag_") != std::string::npos;
    for (LineSuspect& known : x_out.suspects)
      if (known.place.line == line && known.place.file == file) {
        if (known.place.variable.empty() && !own) known.place.variable = variable;
        return;
      }
    LineSuspect one;
    one.place = {file, function, line, column, "", own ? "" : variable};
    one.why = why;
    x_out.suspects.push_back(std::move(one));
  }
  void suggest(std::uint32_t site_number, const std::string& why) {
    const ValueSite& s = site(site_number);
    suggest(s.file, s.function, s.line, s.column, s.variable, why);
  }
  void suggest_node(std::uint32_t n, const std::string& why) {
    if (n == 0 || node(n).site == 0) return;
    // Of inline assembly in a helper the call says more.
    if (op(n) == ValueOp::kProduct) suggest_callers(node(n).site, why);
    suggest(node(n).site, why);
  }
  void suggest_indices(std::uint32_t site_number, const std::string& why) {
    const ValueSite& s = site(site_number);
    for (const NamedLine& use : variables_in(s.uses, ','))
      suggest(s.file, s.function, use.line, 0, use.name, why);
  }
  void suggest_callers(std::uint32_t site_number, const std::string& why) {
    const ValueSite& s = site(site_number);
    for (std::size_t begin = 0; begin < s.callers.size();) {
      suggest(s.file, s.function, std::atoi(s.callers.c_str() + begin), 0, "", why);
      begin = s.callers.find(',', begin) + 1;
    }
  }
  void suggest_conditions(std::uint32_t site_number, const char* kind, const std::string& why) {
    const ValueSite& s = site(site_number);
    for (const Condition& condition : conditions_in(s.conditions))
      if (kind == nullptr || condition.loop == (std::string_view(kind) == "loop")) {
        suggest(s.file, s.function, condition.line, 0, "", why);
        for (const NamedLine& test : condition.tests)
          suggest(s.file, s.function, test.line, 0, test.name, why);
      }
  }

  std::string place_of(std::uint32_t n) const {
    return fmt::format("block {}, thread {}", node(n).where >> 10, node(n).where & 1023);
  }
  std::string query_text(std::uint32_t row) const {
    const Problem& p = x_attention.problem();
    const std::uint32_t head = row / static_cast<std::uint32_t>(p.seqlen_q);
    std::string text = fmt::format("query {}", x_attention.query_of(row));
    if (p.batch * p.heads > 1)
      text = fmt::format("batch {}, head {}, {}", head / static_cast<std::uint32_t>(p.heads),
                         head % static_cast<std::uint32_t>(p.heads), text);
    return text;
  }
  static std::string keys_text(const std::vector<unsigned>& keys) {
    std::vector<std::int64_t> numbers(keys.begin(), keys.end());
    return (keys.size() == 1 ? "key " : "keys ") + index_ranges(numbers);
  }

  // The load of the input that an element is.
  std::uint32_t input_of(std::uint32_t n) const {
    n = made_by(n);
    for (int steps = 0; steps < 64 && !node(n).is_input(); ++steps) {
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(n).operand)
        if (operand != 0 && operand < n && x_terms[operand].kind == TermKind::kElement)
          next = operand;
      if (next == 0) break;
      n = made_by(next);
    }
    return n;
  }

  // Whether the watched blocks loaded every element of these rows of k or v, or of their own rows of q.
  bool loads_all(unsigned buffer, std::uint32_t row) {
    note_loads();
    const auto& seen = x_loaded[buffer];
    const Problem& p = x_attention.problem();
    const auto dim = static_cast<std::uint32_t>(buffer == 2 ? p.head_dim_v : p.head_dim);
    if (buffer == 0) {
      for (std::uint32_t d = 0; d < dim; ++d)
        if (seen.count(std::uint64_t{row} << 32 | d) == 0) return false;
      return true;
    }
    for (unsigned j = 0; j < static_cast<unsigned>(p.seqlen_k); ++j)
      if (x_attention.visible(row, j))
        for (std::uint32_t d = 0; d < dim; ++d)
          if (seen.count(std::uint64_t{key_row(row, j)} << 32 | d) == 0) return false;
    return true;
  }

  void note_loads() {
    if (x_loads_known) return;
    x_loads_known = true;
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
      const Term& term = x_terms[n];
      if (node(n).is_input()) {
        x_loaded[term.buffer].insert(std::uint64_t{term.row} << 32 | term.column);
        if (site(node(n).site).line != 0) x_loaders[term.buffer].insert(node(n).site);
      } else if (term.kind == TermKind::kElement && is_load(n) && node(n).operand[0] != 0 &&
                 site(node(node(n).operand[0]).site).line == 0) {
        // Of what the host copied.
        x_loaders[term.buffer].insert(node(n).site);
      }
    }
  }

  // The loads of an input and what they are made of.
  void suggest_loader(std::uint32_t loader, const std::string& why) {
    suggest(loader, why);
    suggest_indices(loader, why);
    suggest_callers(loader, why);
  }
  void suggest_loaders(unsigned buffer, const std::string& why) {
    note_loads();
    for (const std::uint32_t loader : x_loaders[buffer]) suggest_loader(loader, why);
  }

  // Two operands that do not fit together, each with the way it came.
  void suggest_pair(std::uint32_t at, std::uint32_t a, std::uint32_t b, std::uint32_t row,
                    const std::string& why) {
    if (x_terms[a].kind == TermKind::kWeight && !loads_all(1, row)) be_sure();
    if (x_terms[a].kind == TermKind::kWeight && !loads_all(1, row))
      suggest_loaders(1, "does not load all of k");
    for (const std::uint32_t operand : {b, a}) {
      const std::uint32_t input = input_of(operand);
      if (!node(input).is_input()) continue;
      const unsigned buffer = x_terms[input].buffer;
      if (!loads_all(buffer, row))
        suggest_loader(node(input).site, fmt::format("does not load all of {}", kBuffers[buffer]));
    }
    suggest_node(at, why);
    for (const std::uint32_t operand : {a, b}) {
      // Where it was read last, and where it was put there.
      for (std::uint32_t n = operand; n != 0; n = node(n).operand[0]) {
        suggest_node(n, why);
        if (node(n).site != 0) suggest_indices(node(n).site, why);
        if (node(n).is_input() || node(n).site == 0 || n == made_by(n)) break;
      }
    }
    suggest_callers(node(at).site, why);
  }

  // The two numbers of a product of matrices, or of a product, that do not fit.
  std::pair<std::uint32_t, std::uint32_t> operands_of(std::uint32_t n) const {
    if (op(n) != ValueOp::kProduct) return {node(n).operand[0], node(n).operand[1]};
    const std::uint32_t* pair = x_graph.products.data() + node(n).operand[1];
    std::pair<std::uint32_t, std::uint32_t> last = {0, 0};
    for (std::uint32_t i = 0; i < node(n).operand[2]; ++i, pair += 2) {
      last = {pair[0], pair[1]};
      const Term &a = x_terms[pair[0]], &b = x_terms[pair[1]];
      if (a.kind == TermKind::kElement && b.kind == TermKind::kElement && a.column != b.column)
        break;
      if (a.kind == TermKind::kWeight && b.kind == TermKind::kElement &&
          (x_terms.keys().count(a.set) != 1 ||
           !x_terms.keys().has(a.set, x_attention.key_of(b.row))))
        break;
      if (a.kind == TermKind::kElement && b.kind == TermKind::kWeight) break;
    }
    return last;
  }

  void suspect(const std::vector<Cause>& list) {
    const Cause& cause = list.front();
    x_out.where = cause.node == 0 ? query_text(cause.row)
                                  : place_of(cause.node) + ", " + query_text(cause.row);
    switch (cause.what) {
      case What::kIll:
        return suspect_ill(cause);
      case What::kUnstored:
        return suspect_store(list);
      case What::kNothing:
        x_out.what = fmt::format("{} holds a number that comes of no input",
                                 x_elements.front().of_lse ? "lse" : "o");
        if (cause.node != 0 && std::isnan(node(cause.node).value)) suggest_nan(cause.node);
        return suspect_missing(cause);
      case What::kOtherRow:
        return suspect_place(cause, true);
      case What::kOtherColumn:
        return suspect_place(cause, false);
      case What::kMissing:
        x_out.what =
            fmt::format("a sum of {} lacks {}", query_text(cause.row), keys_text(cause.keys));
        return suspect_missing(cause);
      case What::kExtra:
        x_out.what = fmt::format("a sum of {} has {}, which it should not see",
                                 query_text(cause.row), keys_text(cause.keys));
        return suspect_extra(cause);
      case What::kFrame:
        if (x_elements.front().of_lse) return suspect_lse(cause);
        x_out.what = "o is the right sum times a wrong factor";
        suggest(cause.site, "gives o another factor than 1 / l");
        suggest_scale(cause.node);
        return;
      case What::kOther:
        return;
    }
  }

  // lse is the logarithm of the right sum, and a wrong number.
  void suspect_lse(const Cause& cause) {
    x_out.what = "lse is made of the right sum and the wrong number";
    std::uint32_t at = cause.node;
    for (int steps = 0; steps < 64 && node(at).site != 0; ++steps) {
      suggest_node(at, "makes lse");
      suggest_uses(node(at).site, "is an operand of lse");
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(at).operand)
        if (operand != 0 && operand < at && next == 0 && x_terms[operand].kind == TermKind::kLog)
          next = operand;
      if (next == 0) break;
      at = next;
    }
  }

  void suggest_scale(std::uint32_t n) {
    for (const std::uint32_t operand : node(n).operand) {
      if (operand == 0 || operand >= n) continue;
      const Term& term = x_terms[operand];
      if (term.kind == TermKind::kWeight && term.column != kNone) continue;
      suggest_node(made_by(operand), "makes that factor");
    }
  }

  static const char* ill_text(Ill why) {
    switch (why) {
      case Ill::kColumns:
        return "multiplies different columns, or adds such";
      case Ill::kHeads:
        return "multiplies elements of different heads";
      case Ill::kKeys:
        return "multiplies the weight of one key with v of another";
      case Ill::kRows:
        return "puts together numbers of different query rows";
      case Ill::kTwice:
        return "adds what was added before";
      case Ill::kFactors:
        return "adds parts of a score that are scaled differently";
      case Ill::kFrames:
        return "adds parts of a sum that are relative to different maxima";
      case Ill::kPartial:
        return "takes the exponential of a score that lacks columns";
      case Ill::kScale:
        return "takes the exponential of a score that is scaled wrongly";
      case Ill::kSumOfScores:
        return "adds scores of different keys";
      case Ill::kOffset:
        return "adds a number to a sum that should begin with 0";
      case Ill::kUnwritten:
        return "computes with memory that nobody wrote";
      case Ill::kSign:
        return "makes a weight that is not positive and finite";
      case Ill::kMeaningless:
        return "computes what has no place in attention";
      default:
        return "computes in a way that is not known";
    }
  }

  void suspect_ill(const Cause& cause) {
    const std::uint32_t n = cause.node;
    const std::string why = ill_text(cause.ill);
    x_out.what = why;
    const auto [a, b] = operands_of(n);
    switch (cause.ill) {
      case Ill::kHeads:
        for (const std::uint32_t operand : {a, b}) {
          if (operand == 0 || operand >= n || x_terms[operand].kind != TermKind::kElement) continue;
          const Term& element = x_terms[operand];
          if (element.buffer == 0 || x_attention.same_head(cause.row, element.row)) continue;
          const std::uint32_t input = input_of(operand);
          const std::uint32_t end =
              key_row(cause.row, 0) + static_cast<std::uint32_t>(x_terms.keys().size());
          // The rows behind the head's own: who runs past the end?
          if (element.row >= end && element.row < end + x_terms.keys().size())
            for (const std::uint32_t s : {node(n).site, node(operand).site, node(input).site})
              suggest_conditions(s, nullptr, "lets rows behind the last key through");
        }
        return suggest_pair(n, a, b, cause.row, why);
      case Ill::kColumns:
      case Ill::kKeys:
        return suggest_pair(n, a, b, cause.row, why);
      case Ill::kTwice:
        // Parts that were summed before they were put together: their loops may overlap.
        for (const std::uint32_t operand : {a, b}) {
          if (operand == 0 || operand >= n) continue;
          const Term& term = x_terms[operand];
          const bool many =
              (term.kind == TermKind::kWeight && x_terms.keys().count(term.set) > 1) ||
              (term.kind == TermKind::kScore && x_terms.columns().count(term.set) > 1);
          const std::uint32_t made = made_by(operand);
          if (!many || node(made).site == 0 || node(made).site == cause.site) continue;
          suggest_conditions(node(made).site, "loop", "decides what a part is the sum of");
          suggest_node(made, "sums a part");
        }
        // Parts that were summed before they were put together: their loops may overlap.
        for (const std::uint32_t operand : {a, b}) {
          if (operand == 0 || operand >= n) continue;
          const Term& term = x_terms[operand];
          const bool many =
              (term.kind == TermKind::kWeight && x_terms.keys().count(term.set) > 1) ||
              (term.kind == TermKind::kScore && x_terms.columns().count(term.set) > 1);
          const std::uint32_t made = made_by(operand);
          if (!many || node(made).site == 0 || node(made).site == cause.site) continue;
          suggest_conditions(node(made).site, "loop", "decides what a part is the sum of");
          suggest_node(made, "sums a part");
        }
        for (const unsigned buffer : {1u, 2u, 0u})
          if (!loads_all(buffer, cause.row))
            suggest_loaders(buffer, fmt::format("does not load all of {}", kBuffers[buffer]));
        be_sure();
        suggest_node(n, why);
        suggest_conditions(cause.site, "loop", "decides how often that is done");
        suggest_callers(cause.site, why);
        return;
      case Ill::kFrames:
        return suspect_frames(n, a, b, why);
      case Ill::kPartial:
        return suspect_partial(a, n, cause.row);
      case Ill::kScale:
        return suspect_scale(a, n, why);
      case Ill::kOffset: {
        // Where the sum begins, then where it goes on.
        suggest_constants(cause.site, "gives the sum its first value",
                          [](double x) { return x != 0; });
        for (const NamedLine& use : variables_in(site(cause.site).uses, ','))
          if (use.line != site(cause.site).line && !use.constant)
            suggest(site(cause.site).file, site(cause.site).function, use.line, 0, use.name,
                    "gives the sum its first value");
        for (const std::uint32_t operand : {a, b})
          if (operand != 0 && operand < n && x_terms[operand].kind == TermKind::kNumber)
            suggest_foreign(operand);
        suggest_node(n, why);
        for (const std::uint32_t operand : {a, b})
          if (operand != 0 && operand < n) suggest_moves(operand, "hands on an operand");
        return;
      }
      case Ill::kSign: {
        suggest_node(n, why);
        for (const std::uint32_t operand : {a, b, node(n).operand[2]})
          if (operand != 0 && operand < n &&
              !(node(operand).value > 0 && std::isfinite(node(operand).value)))
            suggest_origin(operand, "makes an operand that is not finite");
        suggest_uses(cause.site, "is an operand");
        return;
      }
      case Ill::kUnwritten: {
        for (const std::uint32_t operand : {a, b, node(n).operand[2]})
          if (operand != 0 && operand < n && std::isnan(node(operand).value) &&
              x_terms[operand].kind == TermKind::kNumber)
            suggest_nan(operand);
        if (x_out.suspects.empty())
          suggest_constants(cause.site, "is a number of which NaN is made",
                            [](double x) { return !(x < 1e30); });
        suggest_node(n, why);
        suggest_uses(cause.site, "is an operand");
        return;
      }
      default:
        suggest_what_others_do(n, a, b);
        suggest_node(n, why);
        for (const std::uint32_t operand : {a, b}) {
          if (operand == 0 || operand >= n) continue;
          if (x_terms[operand].kind == TermKind::kNumber) suggest_foreign(operand);
          suggest_moves_with_indices(operand, "hands on an operand");
        }
        suggest_callers(cause.site, why);
    }
  }

  void suggest_uses(std::uint32_t s, const std::string& why) {
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      suggest(site(s).file, site(s).function, use.line, 0, use.name, why);
  }

  // Variables that are given a constant that should not be.
  template <class Bad>
  void suggest_constants(std::uint32_t s, const std::string& why, const Bad& bad) {
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (use.constant && bad(*use.constant)) {
        be_sure();
        suggest(site(s).file, site(s).function, use.line, 0, use.name, why);
      }
  }

  // The loads, stores and choices that a number went through.
  void suggest_moves(std::uint32_t n, const std::string& why) {
    const std::uint32_t made = made_by(n);
    for (; n != made; n = node(n).operand[0]) {
      suggest_node(n, why);
      if (node(n).site == 0) return;
    }
    suggest_node(made, why);
  }

  void suggest_moves_with_indices(std::uint32_t n, const std::string& why) {
    const std::uint32_t made = made_by(n);
    for (std::uint32_t at = n; at != made && node(at).site != 0; at = node(at).operand[0])
      if (op(at) == ValueOp::kStore) suggest_node(at, why);
    for (std::uint32_t at = n; at != made && node(at).site != 0; at = node(at).operand[0]) {
      suggest_node(at, why);
      suggest_uses(node(at).site, "makes the index of an operand");
    }
    suggest_node(made, why);
  }

  // Where others have a weight and this one has not: what made theirs is not done for it.
  void suggest_what_others_do(std::uint32_t n, std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other) {
      if (other == n || node(other).site != node(n).site || op(n) == ValueOp::kProduct) continue;
      const TermKind kind = x_terms[other].kind;
      if (kind == TermKind::kIll || kind == TermKind::kNumber) continue;
      for (unsigned i = 0; i < 2; ++i) {
        const std::uint32_t mine = i == 0 ? a : b, theirs = node(other).operand[i];
        if (mine == 0 || theirs == 0 || x_terms[mine].kind == x_terms[theirs].kind ||
            x_terms[theirs].kind == TermKind::kNumber || x_terms[theirs].kind == TermKind::kIll)
          continue;
        for (std::uint32_t at = theirs; node(at).site != 0; at = node(at).operand[0]) {
          if (op(at) == ValueOp::kStore) {
            suggest_conditions(node(at).site, "loop", "is not done for all");
            suggest_node(at, "is not done for all");
            return;
          }
          if (at == made_by(at)) break;
        }
      }
      return;
    }
  }

  // A number where something of the inputs should be: a choice, or memory that holds it.
  void suggest_foreign(std::uint32_t n) {
    for (int steps = 0; steps < 64 && node(n).site != 0; ++steps) {
      if (op(n) == ValueOp::kPick) {
        suggest_node(n, "chooses a number that comes of no input");
        return;
      }
      if (is_load(n) && node(n).operand[0] == 0) {
        suggest_node(n, "reads a number that comes of no input");
        suggest_stores_to(site(node(n).site).variable);
        return;
      }
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(n).operand)
        if (operand != 0 && operand < n && next == 0 && node(operand).site != 0) next = operand;
      if (next == 0) break;
      n = next;
    }
    if (node(n).site != 0) {
      suggest_node(n, "makes a number that comes of no input");
      suggest_uses(node(n).site, "is an operand of it");
    }
  }

  // Where a number became what it is: back through operations on numbers that are no better.
  void suggest_origin(std::uint32_t n, const std::string& why) {
    for (int steps = 0; steps < 32; ++steps) {
      if (node(n).site == 0) return;
      suggest_node(n, why);
      suggest_uses(node(n).site, "is an operand of what is not finite");
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(n).operand)
        if (operand != 0 && operand < n && next == 0 && !node(n).is_input() &&
            !(std::isfinite(node(operand).value)))
          next = operand;
      if (next == 0) return;
      n = next;
    }
  }

  // NaN: memory that nobody wrote, or an operation on infinities.
  void suggest_nan(std::uint32_t n) {
    for (int steps = 0; steps < 64 && node(n).site != 0; ++steps) {
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(n).operand)
        if (operand != 0 && operand < n && next == 0 && std::isnan(node(operand).value))
          next = operand;
      if (next == 0) break;
      n = next;
    }
    if (node(n).site == 0) return;
    const bool unwritten = is_load(n) && node(n).operand[0] == 0;
    if (!unwritten) {
      x_out.what = "makes NaN";
      suggest_constants(node(n).site, "is a number of which NaN is made",
                        [](double x) { return !(x < 1e30); });
      suggest_uses(node(n).site, "makes an operand of NaN");
      suggest_node(n, "makes NaN");
      return;
    }
    suggest_node(n, "reads memory that nobody wrote");
    suggest_stores_to(site(node(n).site).variable);
    suggest_uses(node(n).site, "makes the index");
  }

  void suspect_scale(std::uint32_t score, std::uint32_t n, const std::string& why) {
    std::uint32_t at = score;
    bool scaled = false;
    std::vector<std::uint32_t> passed;
    for (int steps = 0; steps < 128 && node(at).site != 0 && !node(at).is_input(); ++steps) {
      const ValueOp is = op(at);
      if (is == ValueOp::kMultiply || is == ValueOp::kDivide) {
        const bool by_number = x_terms[node(at).operand[0]].kind == TermKind::kNumber ||
                               x_terms[node(at).operand[1]].kind == TermKind::kNumber;
        if (by_number) {
          scaled = true;
          be_sure();
          suggest_node(at, "scales the score");
          suggest_uses(node(at).site, "is a factor of the score");
        }
      }
      passed.push_back(at);
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(at).operand)
        if (operand != 0 && operand < at && next == 0 &&
            (x_terms[operand].kind == TermKind::kScore ||
             x_terms[operand].kind == TermKind::kElement))
          next = operand;
      if (is == ValueOp::kProduct) next = x_graph.products[node(at).operand[1]];
      if (next == 0) break;
      at = next;
    }
    // It was scaled, and stored elsewhere.
    if (!scaled) {
      const Term& raw = x_terms[score];
      for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other)
        if (op(other) == ValueOp::kStore && x_terms[other].kind == TermKind::kScore &&
            x_terms[other].row == raw.row && x_terms[other].column == raw.column &&
            !(std::fabs(x_terms[other].x - raw.x) <= 0.01F * std::fabs(raw.x))) {
          be_sure();
          suggest_node(other, "stores the score that is scaled");
          suggest_uses(node(other).site, "makes the index of that store");
          break;
        }
    }
    // Nobody does: where the score goes from its sum to the exponential.
    if (!scaled)
      for (const std::uint32_t one : passed)
        if (x_terms[one].kind == TermKind::kScore &&
            x_terms.columns().count(x_terms[one].set) == x_terms.columns().size() &&
            (op(one) == ValueOp::kPick || op(one) == ValueOp::kStore || op(one) == ValueOp::kRound))
          suggest_node(one, "hands on the score, which nobody scales");
    suggest_node(n, why);
    suggest_uses(node(n).site, "is an operand");
    if (!scaled)
      for (const std::uint32_t one : passed)
        if (x_terms[one].kind == TermKind::kScore) suggest_node(one, "makes the score");
  }

  void suggest_stores_to(const std::string& variable) {
    if (variable.empty()) return;
    for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
      if (site(s).op == ValueOp::kStore && site(s).variable == variable) {
        suggest(s, "stores to it");
      }
    const bool any = std::any_of(
        x_graph.sites.begin(), x_graph.sites.end(),
        [&](const ValueSite& s) { return s.op == ValueOp::kStore && s.variable == variable; });
    if (!any) suggest_stores_of_elements();
    for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
      if (site(s).op == ValueOp::kStore && site(s).variable == variable) {
        suggest_conditions(s, nullptr, "decides what is stored to it");
        suggest_indices(s, "makes the index of a store to it");
      }
  }

  // Where q, k and v are put.
  void suggest_stores_of_elements() {
    std::set<std::uint32_t> stores;
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
      if (op(n) == ValueOp::kStore && x_terms[n].kind == TermKind::kElement)
        stores.insert(node(n).site);
    for (const std::uint32_t s : stores) suggest(s, "stores elements");
  }

  void suspect_frames(std::uint32_t n, std::uint32_t a, std::uint32_t b, const std::string& why) {
    if (op(n) == ValueOp::kFma) b = node(n).operand[2];
    // What was there before has more keys than what is added.
    const auto keys = [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight ? x_terms.keys().count(x_terms[of].set) : 0;
    };
    const std::uint32_t before = keys(a) >= keys(b) ? a : b;
    const std::uint32_t scaled = made_by(before);
    if (op(scaled) == ValueOp::kMultiply || op(scaled) == ValueOp::kDivide) {
      for (const std::uint32_t operand : node(scaled).operand) {
        if (operand == 0 || operand >= scaled) continue;
        const std::uint32_t made = made_by(operand);
        const ValueOp is = op(made);
        if (is == ValueOp::kExp || is == ValueOp::kExp2 ||
            x_terms[operand].kind == TermKind::kNumber) {
          suggest_node(made, "makes the factor of the sum so far");
          if (node(made).site != 0 && node(made).operand[0] != 0)
            suggest_node(made_by(node(made).operand[0]), "makes its exponent");
        }
      }
      suggest_node(scaled, "rescales the sum so far");
    } else {
      // Nothing was rescaled. Of parts that other threads made it is the maximum that differs.
      const std::uint32_t thread = node(n).where;
      const bool of_others =
          std::any_of(std::begin({a, b}), std::end({a, b}), [&](std::uint32_t operand) {
            return operand != 0 && operand < n && node(made_by(operand)).site != 0 &&
                   node(made_by(operand)).where != thread;
          });
      if (of_others)
        for (const std::uint32_t operand : {a, b}) suggest_maximum(operand);
    }
    suggest_node(n, why);
    suggest_callers(node(n).site, why);
    for (const std::uint32_t operand : {a, b})
      if (operand != 0 && operand < n) {
        suggest_node(made_by(operand), "makes a part of the sum");
        suggest_maximum(operand);
      }
  }

  // What was subtracted in the exponent of a weight.
  void suggest_maximum(std::uint32_t n) {
    for (int steps = 0; steps < 32 && n != 0; ++steps) {
      n = made_by(n);
      const ValueOp is = op(n);
      if (is == ValueOp::kExp || is == ValueOp::kExp2) {
        const std::uint32_t exponent = made_by(node(n).operand[0]);
        if (op(exponent) != ValueOp::kSubtract) return;
        const std::uint32_t most = node(exponent).operand[1];
        if (most == 0) return;
        suggest_moves(most, "makes the maximum");
        suggest_uses(node(exponent).site, "is an operand of the exponent");
        return;
      }
      std::uint32_t next = 0;
      if (node(n).site == 0 || is == ValueOp::kProduct || node(n).is_input()) return;
      for (const std::uint32_t operand : node(n).operand)
        if (operand != 0 && operand < n && next == 0 && x_terms[operand].kind == TermKind::kWeight)
          next = operand;
      n = next;
    }
  }

  // A score that lacks columns.
  void suspect_partial(std::uint32_t score, std::uint32_t at, std::uint32_t row) {
    for (const unsigned buffer : {1u, 0u})
      if (!loads_all(buffer, row))
        suggest_loaders(buffer, fmt::format("does not load all of {}", kBuffers[buffer]));
    std::uint32_t sum = made_by(score);
    for (int steps = 0; steps < 32; ++steps) {
      const ValueOp is = op(sum);
      if (node(sum).site == 0 || is == ValueOp::kAdd || is == ValueOp::kFma ||
          is == ValueOp::kProduct)
        break;
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(sum).operand)
        if (operand != 0 && operand < sum && next == 0 && x_terms[operand].kind == TermKind::kScore)
          next = operand;
      if (next == 0) break;
      sum = made_by(next);
    }
    // Were the columns that lack multiplied at all? Then they were not added.
    const Term& partial = x_terms[score];
    bool computed = false;
    for (std::uint32_t n = 1; n < x_graph.nodes.size() && !computed; ++n) {
      const Term& term = x_terms[n];
      if (term.kind != TermKind::kScore || term.row != partial.row || term.column != partial.column)
        continue;
      for (unsigned d = 0; d < x_terms.columns().size() && !computed; ++d)
        computed = x_terms.columns().has(term.set, d) && !x_terms.columns().has(partial.set, d);
    }
    if (computed) {
      be_sure();
      suggest_node(sum, "adds the columns of a score, and loses some");
    }
    // Lanes may each have a part: then it is the loop in which each makes its own.
    std::uint32_t inner = sum;
    for (int steps = 0; steps < 64; ++steps) {
      if (node(inner).site == 0) break;
      const bool multiplies =
          op(inner) == ValueOp::kProduct || op(inner) == ValueOp::kFma ||
          (op(inner) == ValueOp::kAdd && op(made_by(node(inner).operand[1])) == ValueOp::kMultiply);
      if (multiplies) break;
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(inner).operand)
        if (operand != 0 && operand < inner && x_terms[operand].kind == TermKind::kScore)
          next = operand;
      if (next == 0) break;
      inner = made_by(next);
    }
    if (node(inner).site != 0) {
      bool first = true;
      for (const Condition& condition : conditions_in(site(node(inner).site).conditions)) {
        if (!condition.loop && !first) continue;
        suggest(site(node(inner).site).file, site(node(inner).site).function, condition.line, 0, "",
                "decides which columns are added");
        first = false;
        break;
      }
      suggest_node(inner, "adds the columns of a score");
    }
    suggest_node(sum, "adds the columns of a score");
    suggest_node(at, ill_text(Ill::kPartial));
    if (node(inner).site != 0)
      suggest_conditions(node(inner).site, "loop", "decides which columns are added");
  }

  void suspect_store(const std::vector<Cause>& list) {
    std::set<std::uint32_t> rows;
    for (const Cause& cause : list) rows.insert(cause.row);
    const auto dim =
        static_cast<std::size_t>(x_elements.front().of_lse ? 1 : x_attention.problem().head_dim_v);
    const bool whole_rows = list.size() >= rows.size() * dim;
    x_out.what = fmt::format(
        "{} of {} are stored by nobody",
        whole_rows ? fmt::format("{} rows", rows.size()) : fmt::format("{} elements", list.size()),
        x_elements.front().of_lse ? "lse" : "o");
    std::set<std::uint32_t> sites;
    for (const host::ValueOutput& output : x_graph.outputs[x_elements.front().of_lse ? 1 : 0])
      if (output.site != 0) sites.insert(output.site);
    // Where others are stored twice, or hold what belongs elsewhere, it is the index.
    std::size_t misplaced = 0;
    for (const OutputElement& element : x_elements) {
      const What what = cause_of(element).what;
      misplaced += what == What::kOtherRow || what == What::kOtherColumn;
    }
    const bool by_index = misplaced > 0 || x_graph.stored_twice > 0;
    for (const std::uint32_t s : sites) {
      if (by_index) {
        suggest_indices_of_place(s, list);
        suggest(s, "stores o");
        suggest_indices(s, "makes the index of the store");
      }
      suggest_conditions(s, whole_rows ? "if" : "loop", "decides which elements are stored");
      suggest(s, "stores o");
      suggest_indices(s, "makes the index of the store");
      suggest_conditions(s, nullptr, "decides which elements are stored");
      suggest_callers(s, "stores o");
    }
  }

  // Of whole heads that lack: what depends on the block alone.
  void suggest_indices_of_place(std::uint32_t s, const std::vector<Cause>& list) {
    const auto queries = static_cast<std::size_t>(x_attention.problem().seqlen_q);
    std::map<std::uint32_t, std::set<std::uint32_t>> by_head;
    for (const Cause& cause : list)
      by_head[cause.row / static_cast<std::uint32_t>(queries)].insert(cause.row);
    // The first head is as it should be, whatever a head is multiplied by.
    const bool heads = by_head.count(0) == 0;
    for (const NamedLine& use : variables_in(site(s).uses, ',')) {
      const bool of_block = !use.sources.empty() && use.sources.find('t') == std::string::npos &&
                            use.sources.find('x') == std::string::npos;
      if (of_block == heads)
        suggest(site(s).file, site(s).function, use.line, 0, use.name,
                "makes the index of the store");
    }
  }

  void suspect_place(const Cause& cause, bool rows) {
    const Term& term = x_terms[cause.node];
    if (rows)
      x_out.what = fmt::format("what is stored as o of {} was made of q of {}",
                               query_text(cause.row), query_text(term.row));
    else
      x_out.what =
          fmt::format("what is stored in column {} of o is column {}", cause.column, term.column);
    const unsigned buffer = rows ? 0 : 2;
    const std::string why = rows ? "loads the row of q" : "loads the column of v";
    const auto& outputs = x_graph.outputs[x_elements.front().of_lse ? 1 : 0];
    const bool by_store = x_graph.stored_twice > 0 ||
                          std::any_of(outputs.begin(), outputs.end(),
                                      [](const auto& output) { return output.block == ~0u; });
    if (by_store) {
      suggest_indices_of_place(cause.site, {cause});
      suggest_indices(cause.site, "makes the index of the store");
    }
    if (!loads_all(buffer, cause.row)) suggest_loaders(buffer, why);
    suggest(cause.site, "stores it");
    if (rows) suggest_loaders(buffer, why);
    suggest_moves_with_indices(cause.node, "hands on the column");
    suggest_indices(cause.site, "makes the index of the store");
    suggest_loaders(buffer, why);
  }

  // l lacks keys.
  void suspect_sum_of_weights(const Cause& cause) {
    std::uint32_t at = made_by(cause.node);
    for (int steps = 0; steps < 8; ++steps) {
      const ValueOp is = op(at);
      if (is == ValueOp::kAdd || is == ValueOp::kFma || is == ValueOp::kAtomicAdd) break;
      std::uint32_t next = 0;
      if (node(at).site == 0 || is == ValueOp::kProduct) break;
      for (const std::uint32_t operand : node(at).operand)
        if (operand != 0 && operand < at && next == 0 && x_terms[operand].kind == TermKind::kWeight)
          next = operand;
      if (next == 0) break;
      at = made_by(next);
    }
    // How far did the weight of a key come?
    std::uint32_t furthest = 0;
    unsigned most = 0;
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
      const Term& term = x_terms[n];
      if (term.kind != TermKind::kWeight || term.column != kNone || term.row != cause.row ||
          !x_terms.keys().has(term.set, cause.keys.front()) || n == made_by(cause.node))
        continue;
      if (x_terms.keys().count(term.set) < most) continue;
      if (x_terms.keys().count(term.set) == most && made_by(n) != n) continue;
      most = x_terms.keys().count(term.set);
      furthest = n;
    }
    suggest_node(furthest, "makes what l then lacks");
    suggest_node(at, "sums l");
    suggest_moves(cause.node, "hands on l");
    if (node(at).site != 0) {
      suggest_conditions(node(at).site, nullptr, "decides which weights are summed");
      suggest_uses(node(at).site, "is an operand");
    }
    suggest(cause.site, "divides by l");
  }

  // Keys that have a weight and are lost on the way to o.
  bool suspect_lost(const Cause& cause, unsigned key) {
    const std::uint32_t dim = cause.column;
    std::uint32_t last = 0;
    bool with_v = false;
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
      const Term& term = x_terms[n];
      if (term.kind != TermKind::kWeight || term.row != cause.row ||
          !x_terms.keys().has(term.set, key))
        continue;
      if (term.column != kNone && term.column != dim) continue;
      if (with_v && term.column == kNone) continue;
      with_v = term.column != kNone;
      last = n;
    }
    if (last == 0 || !with_v) return false;
    // What takes it, and loses it?
    for (std::uint32_t n = last + 1; n < x_graph.nodes.size(); ++n) {
      if (node(n).is_input() || op(n) == ValueOp::kProduct) continue;
      const auto& operand = node(n).operand;
      if (std::find(operand.begin(), operand.end(), last) == operand.end()) continue;
      if (op(n) != ValueOp::kMultiply && op(n) != ValueOp::kFma && op(n) != ValueOp::kDivide)
        continue;
      x_out.what += "; their sum is multiplied by 0 or lost";
      const std::uint32_t by = operand[operand[0] == last ? 1 : 0];
      const std::uint32_t made = made_by(by);
      if (node(made).site != 0) {
        suggest_node(made, "makes the factor that takes all away");
        // The exponent: what was the maximum before?
        std::uint32_t exponent = node(made).operand[0] != 0 && node(made).operand[0] < made
                                     ? made_by(node(made).operand[0])
                                     : 0;
        if (exponent != 0 && node(exponent).site != 0) {
          suggest_node(exponent, "makes its exponent");
          suggest_uses(node(exponent).site, "is an operand of its exponent");
        }
      } else {
        suggest_node(n, "multiplies by 0");
        suggest_uses(node(n).site, "is an operand");
      }
      suggest_node(n, "multiplies by 0");
      return true;
    }
    x_out.what += "; their sum is not taken further";
    if (op(made_by(last)) != ValueOp::kProduct) be_sure();
    suggest_moves(last, "holds them last");
    suggest_node(last, "holds them last");
    suggest_conditions(node(last).site, nullptr, "decides what is taken further");
    suggest_uses(node(last).site, "is an operand");
    return true;
  }

  // Of a row: how far each key came.
  struct Way {
    std::uint32_t score = 0, weight = 0, part = 0;  // a whole score, a weight, a part of a score
    std::uint32_t times_v = 0;
  };
  Way way_of(std::uint32_t row, unsigned key) {
    auto& known = x_ways[row];
    if (known.empty()) {
      known.resize(x_terms.keys().size());
      for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
        const Term& term = x_terms[n];
        if (term.row != row || node(n).site == 0) continue;
        const ValueOp is = op(n);
        if (term.kind == TermKind::kScore) {
          Way& way = known[x_attention.key_of(term.column)];
          if (!x_attention.same_head(row, term.column)) continue;
          if (is == ValueOp::kAdd || is == ValueOp::kFma || is == ValueOp::kProduct ||
              is == ValueOp::kMultiply)
            (x_terms.columns().count(term.set) == x_terms.columns().size() ? way.score : way.part) =
                n;
        } else if (term.kind == TermKind::kWeight && x_terms.keys().count(term.set) == 1) {
          for (unsigned j = 0; j < known.size(); ++j)
            if (x_terms.keys().has(term.set, j)) {
              if (is == ValueOp::kExp || is == ValueOp::kExp2) known[j].weight = n;
              if (term.column != kNone && is == ValueOp::kMultiply) known[j].times_v = n;
            }
        }
      }
    }
    return known[key];
  }

  // A key that did come through, of the same or another row.
  std::optional<Way> way_of_another(std::uint32_t row, const std::vector<unsigned>& not_these) {
    const std::unordered_set<unsigned> missing(not_these.begin(), not_these.end());
    for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
      if (missing.count(j) != 0) continue;
      const Way way = way_of(row, j);
      if (way.score != 0 || way.weight != 0) return way;
    }
    for (const OutputElement& element : x_elements) {
      std::uint32_t other = 0, column = 0;
      x_attention.locate_output(element.index, other, column);
      if (column != 0 || other == row) continue;
      if (x_ways.size() > 8) break;
      for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
        const Way way = way_of(other, j);
        if (way.score != 0 || way.weight != 0) return way;
      }
    }
    return std::nullopt;
  }

  // The loops around a sum over keys: those at the tail of all keys are cut by the outer one.
  void suggest_loops(std::uint32_t s, const std::vector<unsigned>& keys, bool skip_columns,
                     const std::string& why) {
    std::vector<Condition> loops;
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop) loops.push_back(condition);
    if (skip_columns && loops.size() > 1) loops.erase(loops.begin());
    const bool tail = !keys.empty() && keys.back() + 1 == x_terms.keys().size() &&
                      keys.back() - keys.front() + 1 == keys.size();
    if (tail) std::reverse(loops.begin(), loops.end());
    for (const Condition& loop : loops) {
      suggest(site(s).file, site(s).function, loop.line, 0, "", why);
      for (const NamedLine& test : loop.tests)
        suggest(site(s).file, site(s).function, test.line, 0, test.name, why);
    }
  }

  void suspect_missing(const Cause& cause) {
    if (cause.keys.empty()) {
      suggest(cause.site, "stores it");
      return;
    }
    const unsigned key = cause.keys.front();
    if (const std::uint32_t masked = x_terms.masked_at(cause.row, key); masked != 0) {
      const std::string why = fmt::format("masks {}, which is visible", keys_text({key}));
      suggest_node(masked, why);
      suggest_indices(node(masked).site, "makes what is compared there");
      suggest_conditions(node(masked).site, "if", why);
      return;
    }
    if (cause.of_l) return suspect_sum_of_weights(cause);
    // Who has a weight, and no row of v?
    const Way before = way_of(cause.row, key);
    if (before.weight != 0 && before.times_v == 0 && !loads_all(2, cause.row))
      suggest_loaders(2, "does not load all of v");
    if (suspect_lost(cause, key)) return;
    const Way way = way_of(cause.row, key);
    const std::string why = "decides which keys take part";
    std::uint32_t at = 0;  // what is done for others
    if (way.times_v != 0 || way.weight != 0) {
      // It has a weight, which was not added.
      at = way.times_v != 0 ? way.times_v : way.weight;
      if (const auto other = way_of_another(cause.row, cause.keys);
          other && other->times_v != 0 && way.times_v == 0)
        at = other->times_v;
    } else if (const auto other = way_of_another(cause.row, cause.keys)) {
      if (way.score == 0 && way.part != 0) return suspect_partial(way.part, way.part, cause.row);
      at = way.score == 0 ? other->score : other->weight;
      if (at == 0) at = other->score != 0 ? other->score : other->weight;
    } else if (way.part != 0) {
      return suspect_partial(way.part, way.part, cause.row);
    }
    if (way.score == 0 && !loads_all(1, cause.row)) x_out.what += "; not all of k is loaded";
    if (at != 0) {
      const std::uint32_t s = node(at).site;
      const bool of_products = op(at) == ValueOp::kAdd || op(at) == ValueOp::kFma ||
                               op(at) == ValueOp::kProduct || op(at) == ValueOp::kMultiply;
      suggest_loops(s, cause.keys, of_products, why);
      suggest_conditions(s, nullptr, why);
      if (!loads_all(1, cause.row)) suggest_loaders(1, "does not load all of k");
      if (!loads_all(2, cause.row)) suggest_loaders(2, "does not load all of v");
      suggest_node(at, "is not done for these keys");
    }
    if (cause.site != 0) suggest(cause.site, "stores the sum");
  }

  void suspect_extra(const Cause& cause) {
    const unsigned key = cause.keys.front();
    const Way way = way_of(cause.row, key);
    const std::string why = fmt::format("lets {} through", keys_text({key}));
    if (!loads_all(1, cause.row)) suggest_loaders(1, "does not load all of k");
    std::uint32_t at = way.weight != 0 ? node(way.weight).operand[0] : way.score;
    for (int steps = 0; at != 0 && steps < 64; ++steps) {
      if (op(at) == ValueOp::kPick) {
        suggest_node(at, why);
        suggest_indices(node(at).site, "makes what is compared there");
      }
      std::uint32_t next = 0;
      for (const std::uint32_t operand : node(at).operand)
        if (operand != 0 && operand < at && next == 0 && x_terms[operand].kind == TermKind::kScore)
          next = operand;
      if (next == 0 || node(at).site == 0 || op(at) == ValueOp::kProduct) break;
      at = next;
    }
    for (const std::uint32_t n : {way.weight, way.score})
      if (n != 0) {
        suggest_conditions(node(n).site, "if", why);
        suggest_loops(node(n).site, cause.keys, n == way.score, why);
      }
    suggest_node(way.weight, "makes its weight");
  }

  const Terms& x_terms;
  const host::ValueGraph& x_graph;
  Attention& x_attention;
  const std::vector<OutputElement>& x_elements;
  LineDivergence& x_out;
  bool x_sure = false;
  bool x_loads_known = false;
  std::unordered_set<std::uint64_t> x_loaded[3];
  std::set<std::uint32_t> x_loaders[3];
  std::unordered_map<std::uint32_t, std::vector<Way>> x_ways;
};

}  // namespace

void explain(const Terms& terms, const std::vector<OutputElement>& elements, LineDivergence& out) {
  Explainer(terms, elements, out).run();
}

}  // namespace attn_diag::lines
