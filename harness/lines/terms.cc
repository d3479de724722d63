#include "harness/lines/terms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "attn_diag/reference/reference.h"
#include "harness/capture/element.h"

namespace attn_diag::lines {

using host::ValueNode;
using host::ValueOp;

// Sets.

Sets::Sets(unsigned size) : x_size(size) { intern(Words((size + 63) / 64, 0)); }

std::uint32_t Sets::intern(const Words& words) {
  const auto [found, is_new] = x_numbers.emplace(words, static_cast<std::uint32_t>(x_sets.size()));
  if (is_new) {
    x_sets.push_back(words);
    unsigned count = 0;
    for (const std::uint64_t word : words) count += static_cast<unsigned>(std::popcount(word));
    x_counts.push_back(count);
  }
  return found->second;
}

std::uint32_t Sets::single(unsigned i) {
  if (x_singles.empty()) x_singles.assign(x_size, kNone);
  if (x_singles[i] == kNone) {
    Words words((x_size + 63) / 64, 0);
    words[i / 64] |= std::uint64_t{1} << (i % 64);
    x_singles[i] = intern(words);
  }
  return x_singles[i];
}

std::uint32_t Sets::range(unsigned begin, unsigned end) {
  Words words((x_size + 63) / 64, 0);
  for (unsigned i = begin; i < end; ++i) words[i / 64] |= std::uint64_t{1} << (i % 64);
  return intern(words);
}

std::uint32_t Sets::all() { return range(0, x_size); }

std::uint32_t Sets::join(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  const std::uint64_t pair = std::uint64_t{a} << 32 | b;
  const auto found = x_joined.find(pair);
  if (found != x_joined.end()) return found->second;
  Words words = x_sets[a];
  bool apart = true;
  for (std::size_t w = 0; w < words.size(); ++w) {
    apart = apart && (words[w] & x_sets[b][w]) == 0;
    words[w] |= x_sets[b][w];
  }
  return x_joined[pair] = apart ? intern(words) : kNone;
}

// Attention.

namespace {

float element_at(const void* memory, DType type, std::int64_t i) {
  std::uint16_t bits = 0;
  switch (type) {
    case DType::kFp32:
      return static_cast<const float*>(memory)[i];
    case DType::kFp64:
      return static_cast<float>(static_cast<const double*>(memory)[i]);
    default:
      std::memcpy(&bits, static_cast<const std::byte*>(memory) + 2 * i, sizeof bits);
      return type == DType::kFp16 ? widen_fp16(bits) : widen_bf16(bits);
  }
}

// Rows of a tensor in (batch, head, position) order.
std::vector<float> rows_of(const void* memory, DType type, Layout layout, std::int64_t batch,
                           std::int64_t heads, std::int64_t positions, std::int64_t dim) {
  std::vector<float> out(static_cast<std::size_t>(batch * heads * positions * dim));
  const Strides s = dense_strides(layout, heads, positions, dim);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < positions; ++i)
        for (std::int64_t d = 0; d < dim; ++d)
          out[at++] = element_at(memory, type, b * s.batch + h * s.head + i * s.seq + d);
  return out;
}

void locate_in(Layout layout, std::int64_t heads, std::int64_t positions, std::int64_t dim,
               std::uint64_t element, std::uint32_t& row, std::uint32_t& column) {
  const auto e = static_cast<std::int64_t>(element);
  column = static_cast<std::uint32_t>(e % dim);
  const std::int64_t outer = e / dim;
  if (layout == Layout::kBHSD) {
    row = static_cast<std::uint32_t>(outer);
    return;
  }
  const std::int64_t h = outer % heads, i = outer / heads % positions,
                     b = outer / heads / positions;
  row = static_cast<std::uint32_t>((b * heads + h) * positions + i);
}

}  // namespace

Attention::Attention(const Problem& problem, const void* q, const void* k, const void* v,
                     reference::Extras extras)
    : x_problem(problem),
      x_extras(std::move(extras)),
      x_q(rows_of(q, problem.dtype, problem.layout, problem.batch, problem.heads, problem.seqlen_q,
                  problem.head_dim)),
      x_k(rows_of(k, problem.dtype, problem.layout, problem.batch, problem.kv_heads,
                  problem.seqlen_k, problem.head_dim)),
      x_v(rows_of(v, problem.dtype, problem.layout, problem.batch, problem.kv_heads,
                  problem.seqlen_k, problem.head_dim_v)) {}

void Attention::set_coded(int buffer, std::vector<float> scale_of_row) {
  x_scales[static_cast<std::size_t>(buffer)] = std::move(scale_of_row);
}

std::uint32_t Attention::q_rows() const {
  return static_cast<std::uint32_t>(x_problem.batch * x_problem.heads * x_problem.seqlen_q);
}
std::uint32_t Attention::k_rows() const {
  return static_cast<std::uint32_t>(x_problem.batch * x_problem.kv_heads * x_problem.seqlen_k);
}

void Attention::locate(int buffer, std::uint64_t element, std::uint32_t& row,
                       std::uint32_t& column) const {
  const Problem& p = x_problem;
  if (buffer == 0)
    return locate_in(p.layout, p.heads, p.seqlen_q, p.head_dim, element, row, column);
  locate_in(p.layout, p.kv_heads, p.seqlen_k, buffer == 1 ? p.head_dim : p.head_dim_v, element, row,
            column);
}

void Attention::locate_output(std::uint64_t element, std::uint32_t& row,
                              std::uint32_t& column) const {
  const Problem& p = x_problem;
  locate_in(p.layout, p.heads, p.seqlen_q, p.head_dim_v, element, row, column);
}

double Attention::element(int buffer, std::uint32_t row, std::uint32_t column) const {
  const auto dim =
      static_cast<std::size_t>(buffer == 2 ? x_problem.head_dim_v : x_problem.head_dim);
  return (buffer == 0 ? x_q : buffer == 1 ? x_k : x_v)[row * dim + column];
}

bool Attention::same_head(std::uint32_t row, std::uint32_t key_row) const {
  const auto head = row / static_cast<std::uint32_t>(x_problem.seqlen_q);
  const auto heads = static_cast<std::uint32_t>(x_problem.heads);
  const auto kv_heads = static_cast<std::uint32_t>(x_problem.kv_heads);
  const std::uint32_t expected =
      head / heads * kv_heads + head % heads / static_cast<std::uint32_t>(group_size(x_problem));
  return key_row / static_cast<std::uint32_t>(x_problem.seqlen_k) == expected;
}

bool Attention::visible(std::uint32_t row, std::uint32_t key) const {
  return reference::visible(x_problem, static_cast<std::int32_t>(query_of(row)),
                            static_cast<std::int32_t>(key));
}

double Attention::bias(std::uint32_t row, std::uint32_t key_row) const {
  if (x_extras.bias.empty()) return 0;
  const auto heads = static_cast<std::uint32_t>(x_problem.heads);
  const std::uint32_t head = row / static_cast<std::uint32_t>(x_problem.seqlen_q);
  const std::uint32_t b = x_extras.bias_batch == 1 ? 0 : head / heads;
  const std::uint32_t h = x_extras.bias_heads == 1 ? 0 : head % heads;
  const std::size_t of_head = std::size_t{b} * static_cast<std::uint32_t>(x_extras.bias_heads) + h;
  const auto queries = static_cast<std::size_t>(x_problem.seqlen_q);
  const auto keys = static_cast<std::size_t>(x_problem.seqlen_k);
  return x_extras.bias[(of_head * queries + query_of(row)) * keys + key_of(key_row)];
}

double Attention::raw(std::uint32_t row, std::uint32_t key_row) {
  std::vector<double>& known = x_raw[row];
  if (known.empty()) known.assign(k_rows(), std::nan(""));
  double& sum = known[key_row];
  if (std::isnan(sum)) {
    sum = 0;
    const auto dim = static_cast<std::size_t>(x_problem.head_dim);
    for (std::size_t d = 0; d < dim; ++d)
      sum += double{x_q[row * dim + d]} * x_k[key_row * dim + d];
  }
  return sum;
}

double Attention::lse(std::uint32_t row) {
  const auto found = x_lse.find(row);
  if (found != x_lse.end()) return found->second;
  const auto sk = static_cast<std::uint32_t>(x_problem.seqlen_k);
  double most = -INFINITY, sum = 0;
  std::uint32_t first = 0;
  while (!same_head(row, first)) first += sk;
  for (std::uint32_t j = 0; j < sk; ++j)
    if (visible(row, j)) most = std::max(most, score(row, first + j));
  for (std::uint32_t j = 0; j < sk; ++j)
    if (visible(row, j)) sum += std::exp(score(row, first + j) - most);
  return x_lse[row] = most + std::log(sum);
}

// Terms.

namespace {

// What rounding of a weight to 16 bits, and sums of such, may move a frame by.
constexpr float kFrameSlack = 0.02F;
constexpr float kFactorSlack = 0.01F;

bool near(float a, float b, float slack) {
  return std::fabs(a - b) <= slack * std::max({1.0F, std::fabs(a), std::fabs(b)});
}
bool near_factor(float a, float b) {
  return std::fabs(a - b) <= kFactorSlack * std::max(std::fabs(a), std::fabs(b));
}

bool is_same_element(const Term& a, const Term& b) {
  return a.buffer == b.buffer && a.row == b.row && a.column == b.column;
}

std::uint64_t pair_of(std::uint32_t row, std::uint32_t key) {
  return std::uint64_t{row} << 32 | key;
}

}  // namespace

bool same_frame(const Term& a, const Term& b) { return near(a.x, b.x, kFrameSlack); }

Terms::Terms(const host::ValueGraph& graph, Attention& attention)
    : x_graph(graph),
      x_attention(attention),
      x_columns(static_cast<unsigned>(attention.problem().head_dim)),
      x_keys(static_cast<unsigned>(attention.problem().seqlen_k)) {
  x_terms.resize(graph.nodes.size());
  auto unwatched = graph.unwatched.begin();
  for (std::uint32_t n = 1; n < graph.nodes.size(); ++n) {
    const bool unknown = unwatched != graph.unwatched.end() && *unwatched == n;
    x_terms[n] = unknown ? ill(Ill::kUnwatched, n) : of(n);
    if (unknown) ++unwatched;
  }
}

std::uint32_t Terms::masked_at(std::uint32_t row, std::uint32_t key) const {
  const auto found = x_masked.find(pair_of(row, key));
  return found == x_masked.end() ? 0 : found->second;
}

Term Terms::ill(Ill why, std::uint32_t node) const {
  Term out;
  out.kind = TermKind::kIll;
  out.ill = why;
  out.root = node;
  return out;
}

Term Terms::worse(const Term& a, const Term& b) {
  if (a.kind != TermKind::kIll) return b;
  if (b.kind != TermKind::kIll) return a;
  return a.root <= b.root ? a : b;
}

Term Terms::of(std::uint32_t n) {
  const ValueNode& node = x_graph.nodes[n];
  if (node.site == 0) return Term{};
  const ValueOp op = x_graph.sites[node.site].op;
  const auto is_code = [&](std::uint32_t operand) {
    const Term& of = x_terms[operand];
    return operand != 0 && of.kind == TermKind::kElement && x_attention.is_coded(of.buffer);
  };
  const auto term = [&](unsigned i) -> const Term& { return x_terms[node.operand[i]]; };
  const auto value = [&](unsigned i) { return x_graph.nodes[node.operand[i]].value; };
  switch (op) {
    case ValueOp::kProduct:
      return product(n);
    case ValueOp::kPick: {
      if (node.operand[0] == 0) return Term{};
      const Term chosen = term(0);
      // A score that a condition replaced by a number is masked.
      if (chosen.kind == TermKind::kNumber) {
        const Term& other = x_terms[node.operand[1]];
        if (node.operand[1] != 0 &&
            (other.kind == TermKind::kScore || other.kind == TermKind::kWeight)) {
          const bool score = other.kind == TermKind::kScore;
          if (score)
            x_masked[pair_of(other.row, x_attention.key_of(other.column))] = n;
          else if (x_keys.count(other.set) == 1 && other.column == kNone)
            for (unsigned j = 0; j < x_keys.size(); ++j)
              if (x_keys.has(other.set, j)) x_masked[pair_of(other.row, j)] = n;
        }
      }
      return chosen;
    }
    default:
      break;
  }
  if (op == ValueOp::kInput || op == ValueOp::kLoad || op == ValueOp::kLoadNumber) {
    if (node.is_input()) {
      Term element;
      element.kind = TermKind::kElement;
      element.buffer = static_cast<std::uint8_t>(node.operand[0] - 1);
      x_attention.locate(element.buffer, node.operand[1], element.row, element.column);
      if (x_attention.is_coded(element.buffer))
        element.x = 1 / x_attention.scale_of_code(element.buffer, element.row);
      return element;
    }
    return node.operand[0] == 0 ? Term{} : term(0);
  }
  if (leaves_nothing(n)) return Term{};
  const bool computes = op != ValueOp::kStore && op != ValueOp::kRound && op != ValueOp::kBits;
  for (const std::uint32_t operand : node.operand)
    if (operand != 0 && x_terms[operand].kind == TermKind::kIll) {
      // The larger of NaN and a number is the number.
      if (op == ValueOp::kMaximum || op == ValueOp::kMinimum) continue;
      Term all = x_terms[operand];
      for (const std::uint32_t other : node.operand)
        if (other != 0) all = worse(all, x_terms[other]);
      return all;
    }
  for (const std::uint32_t operand : node.operand)
    if (operand != 0 && computes && x_terms[operand].kind == TermKind::kNumber &&
        std::isnan(x_graph.nodes[operand].value) && op != ValueOp::kMaximum &&
        op != ValueOp::kMinimum)
      return ill(Ill::kUnwritten, n);
  switch (op) {
    case ValueOp::kStore:
      return term(0);
    case ValueOp::kRound:
      return decoded(term(0), n);
    case ValueOp::kBits:
      return node.operand[1] == 0 ? decoded(term(0), n) : ill(Ill::kUnknown, n);
    case ValueOp::kAdd:
    case ValueOp::kAtomicAdd:
      // A code, less a number that stands for 0 or made its bits a number's.
      for (const unsigned i : {0u, 1u})
        if (is_code(node.operand[i]) && term(1 - i).kind == TermKind::kNumber)
          return decoded(term(i), n);
      for (const unsigned i : {0u, 1u})
        if (term(i).kind == TermKind::kScore && term(1 - i).kind == TermKind::kNumber &&
            value(1 - i) <= -1e4F && x_graph.whole_blocks)
          x_masked[pair_of(term(i).row, x_attention.key_of(term(i).column))] =
              x_graph.is_constant(node.operand[1 - i]) ? n : node.operand[1 - i];
      return add(term(0), value(0), term(1), value(1), n);
    case ValueOp::kSubtract:
      if (is_code(node.operand[0]) && term(1).kind == TermKind::kNumber) return decoded(term(0), n);
      return subtract(term(0), value(0), term(1), value(1), node.value, n);
    case ValueOp::kMultiply:
      return multiply(term(0), value(0), term(1), value(1), node.value, n);
    case ValueOp::kDivide:
      return divide(term(0), value(0), term(1), value(1), node.value, n);
    case ValueOp::kFma: {
      const float made = value(0) * value(1);
      const Term both = multiply(term(0), value(0), term(1), value(1), made, n);
      if (both.kind == TermKind::kIll) return both;
      return add(both, made, term(2), value(2), n);
    }
    case ValueOp::kNegate: {
      Term minus;
      return multiply(term(0), value(0), minus, -1, node.value, n);
    }
    case ValueOp::kAbsolute:
      return term(0).kind == TermKind::kNumber ? Term{} : ill(Ill::kUnknown, n);
    case ValueOp::kMaximum:
    case ValueOp::kMinimum:
      return choose(term(0), value(0), term(1), value(1), node.value, n);
    case ValueOp::kExp:
      return exponential(term(0), value(0), node.value, false, n);
    case ValueOp::kExp2:
      return exponential(term(0), value(0), node.value, true, n);
    case ValueOp::kLog:
    case ValueOp::kLog2: {
      Term out = term(0);
      if (out.kind == TermKind::kNumber) return Term{};
      if (out.kind == TermKind::kWeight && out.column == kNone) {
        out.kind = TermKind::kLog;
        return out;
      }
      return ill(Ill::kMeaningless, n);
    }
    case ValueOp::kFunction: {
      bool numbers = true;
      for (const std::uint32_t operand : node.operand)
        numbers = numbers && (operand == 0 || x_terms[operand].kind == TermKind::kNumber);
      return numbers ? Term{} : ill(Ill::kUnknown, n);
    }
    default:
      return ill(Ill::kUnknown, n);
  }
}

Term Terms::decoded(Term element, std::uint32_t node) const {
  if (element.kind != TermKind::kElement || !x_attention.is_coded(element.buffer)) return element;
  const double means = x_attention.element(element.buffer, element.row, element.column);
  const float number = x_graph.nodes[node].value;
  if (means != 0 && number != 0) element.x = static_cast<float>(number / means);
  return element;
}

// A mask or a weight of 0 hides whatever was there: what lies behind the last key, say.
bool Terms::leaves_nothing(std::uint32_t n) const {
  const ValueNode& node = x_graph.nodes[n];
  const auto is_zero = [&](std::uint32_t operand) {
    return operand != 0 && operand < n && x_terms[operand].kind == TermKind::kNumber &&
           x_graph.nodes[operand].value == 0;
  };
  switch (x_graph.sites[node.site].op) {
    case ValueOp::kExp:
    case ValueOp::kExp2:
      return node.value == 0;
    case ValueOp::kMultiply:
      return node.value == 0 && (is_zero(node.operand[0]) || is_zero(node.operand[1]));
    default:
      return false;
  }
}

namespace {

// A number beside which no weight is anything: the 0 of a mask, or exp(-87) where a kernel lets no exponent be smaller.
bool is_nothing(const Term& of, float x) {
  return of.kind == TermKind::kNumber && std::fabs(x) < 1e-30F;
}

}  // namespace

Term Terms::multiply(const Term& a, float x, const Term& b, float y, float result,
                     std::uint32_t node) {
  if (a.kind == TermKind::kNumber && b.kind == TermKind::kNumber) return Term{};
  // Nothing is left of it.
  if (is_nothing(a, x) || is_nothing(b, y)) return Term{};
  const bool swap =
      a.kind == TermKind::kNumber ||
      (b.kind == TermKind::kWeight && b.column != kNone && a.kind == TermKind::kWeight) ||
      (a.kind == TermKind::kInverse && b.kind == TermKind::kWeight) ||
      (a.kind == TermKind::kElement && b.kind == TermKind::kElement && a.buffer > b.buffer) ||
      (a.kind == TermKind::kElement && b.kind == TermKind::kWeight);
  if (swap) return multiply_ordered(b, y, a, x, result, node);
  return multiply_ordered(a, x, b, y, result, node);
}

Term Terms::multiply_ordered(const Term& a, float, const Term& b, float y, float result,
                             std::uint32_t node) {
  Term out = a;
  switch (a.kind) {
    case TermKind::kElement:
      if (b.kind == TermKind::kNumber) {
        out.x *= y;
        return out;
      }
      if (b.kind == TermKind::kElement && a.buffer == 0 && b.buffer == 1) {
        if (!x_attention.same_head(a.row, b.row)) return ill(Ill::kHeads, node);
        if (a.column != b.column) return ill(Ill::kColumns, node);
        out.kind = TermKind::kScore;
        out.set = x_columns.single(a.column);
        out.column = b.row;
        out.x = a.x * b.x;
        return out;
      }
      return ill(Ill::kMeaningless, node);
    case TermKind::kScore:
      if (b.kind != TermKind::kNumber) {
        // A number of the same row: a maximum that is multiplied with -1, say, is none.
        return ill(Ill::kMeaningless, node);
      }
      out.x *= y;
      return out;
    case TermKind::kWeight: {
      if (b.kind == TermKind::kElement) {
        if (b.buffer != 2 || a.column != kNone) return ill(Ill::kMeaningless, node);
        if (!x_attention.same_head(a.row, b.row)) return ill(Ill::kHeads, node);
        const std::uint32_t key = x_attention.key_of(b.row);
        if (x_keys.count(a.set) != 1 || !x_keys.has(a.set, key)) return ill(Ill::kKeys, node);
        out.column = b.column;
        // v that was multiplied by a number before.
        if (b.x > 0 && b.x != 1 && std::isfinite(b.x)) out.x = a.x - std::log(b.x);
        return out;
      }
      if (b.kind == TermKind::kScore || b.kind == TermKind::kLog)
        return ill(Ill::kMeaningless, node);
      if (b.kind != TermKind::kNumber && b.row != a.row) return ill(Ill::kRows, node);
      if (b.kind == TermKind::kInverse && x_keys.words(b.set) != x_keys.words(a.set) &&
          a.column != kNone) {
        // Told where the output is looked at: which of the two lacks keys.
      }
      if (b.kind == TermKind::kWeight && a.column == kNone &&
          x_keys.count(b.set) > x_keys.count(a.set))
        out.set = b.set;
      if (y == 0) return Term{};  // exp(-inf): nothing was there before
      if (!(y > 0) || !std::isfinite(y)) return ill(Ill::kSign, node);
      out.x = a.x - std::log(y);
      if (b.kind == TermKind::kWeight && a.column == kNone && out.set == b.set && out.set != a.set)
        out.x = b.x - std::log(result / y);
      return out;
    }
    case TermKind::kInverse:
      if (b.kind == TermKind::kNumber && y > 0) {
        out.x = a.x + std::log(y);
        return out;
      }
      if (b.kind == TermKind::kInverse) return ill(Ill::kMeaningless, node);
      return ill(Ill::kMeaningless, node);
    case TermKind::kLog:
      if (b.kind == TermKind::kNumber) return out;
      return ill(Ill::kMeaningless, node);
    default:
      return ill(Ill::kMeaningless, node);
  }
}

Term Terms::add(const Term& a, float x, const Term& b, float y, std::uint32_t node) {
  if (a.kind == TermKind::kNumber && b.kind == TermKind::kNumber) return Term{};
  if (is_nothing(a, x)) return b;
  if (is_nothing(b, y)) return a;
  if (a.kind == TermKind::kNumber) return add(b, y, a, x, node);
  Term out = a;
  switch (a.kind) {
    case TermKind::kScore:
      if (b.kind == TermKind::kNumber) {
        if (x_columns.count(a.set) < x_columns.size()) return ill(Ill::kOffset, node);
        out.shifted = true;
        return out;
      }
      // lse = m + ln l
      if (b.kind == TermKind::kLog) return b.row == a.row ? b : ill(Ill::kRows, node);
      if (b.kind != TermKind::kScore) return ill(Ill::kMeaningless, node);
      if (a.row != b.row) return ill(Ill::kRows, node);
      if (a.shifted || b.shifted || x_columns.count(a.set) == x_columns.size()) {
        // -m + s, written as a sum.
        if (a.x * b.x < 0) {
          out = a.x > 0 ? a : b;
          out.shifted = true;
          return out;
        }
        return ill(Ill::kSumOfScores, node);
      }
      if (a.column != b.column) return ill(Ill::kSumOfScores, node);
      if (!near_factor(a.x, b.x)) return ill(Ill::kFactors, node);
      out.set = x_columns.join(a.set, b.set);
      return out.set == kNone ? ill(Ill::kTwice, node) : out;
    case TermKind::kWeight: {
      // "l + 1e-6f" keeps a divisor from being 0.
      constexpr float kNothing = 2e-5f;
      if (b.kind == TermKind::kNumber)
        return a.column == kNone && std::fabs(y) <= kNothing * std::fabs(x)
                   ? out
                   : ill(Ill::kOffset, node);
      if (b.kind != TermKind::kWeight) return ill(Ill::kMeaningless, node);
      if (a.row != b.row) return ill(Ill::kRows, node);
      if (a.column != b.column)
        return ill(a.column == kNone || b.column == kNone ? Ill::kMeaningless : Ill::kColumns,
                   node);
      if (!same_frame(a, b)) return ill(Ill::kFrames, node);
      out.set = x_keys.join(a.set, b.set);
      return out.set == kNone ? ill(Ill::kTwice, node) : out;
    }
    case TermKind::kLog:
      if (b.kind == TermKind::kNumber) return out;
      if (b.kind == TermKind::kScore) return b.row == a.row ? out : ill(Ill::kRows, node);
      return ill(Ill::kMeaningless, node);
    case TermKind::kElement:
      // An element in two parts, of which each is rounded.
      if (b.kind == TermKind::kElement && is_same_element(a, b)) return out;
      return ill(Ill::kMeaningless, node);
    default:
      return ill(Ill::kMeaningless, node);
  }
}

Term Terms::subtract(const Term& a, float x, const Term& b, float y, float, std::uint32_t node) {
  if (a.kind == TermKind::kNumber && b.kind == TermKind::kNumber) return Term{};
  if (b.kind == TermKind::kNumber && y == 0) return a;
  Term out = a;
  if (a.kind == TermKind::kElement && b.kind == TermKind::kElement && is_same_element(a, b))
    return out;
  if (a.kind == TermKind::kScore) {
    if (b.kind == TermKind::kNumber) {
      out.shifted = true;
      return out;
    }
    if (b.kind == TermKind::kScore || b.kind == TermKind::kLog) {
      if (a.row != b.row) return ill(Ill::kRows, node);
      out.shifted = true;
      return out;
    }
    return ill(Ill::kMeaningless, node);
  }
  // A maximum that nobody has raised yet, less one.
  if (a.kind == TermKind::kNumber && (b.kind == TermKind::kScore || b.kind == TermKind::kLog)) {
    if (x <= -1e4F) return Term{};
    Term minus = b;
    const std::uint32_t zero = x_graph.nodes[node].operand[0];
    const bool computed = x_graph.whole_blocks && zero != 0 && !x_graph.is_constant(zero);
    if (x == 0 && b.kind == TermKind::kScore && !computed) {
      minus.x = -minus.x;
      minus.buffer = 1;
      return minus;
    }
    return Term{};
  }
  if (a.kind == TermKind::kLog &&
      (b.kind == TermKind::kNumber || b.kind == TermKind::kScore || b.kind == TermKind::kLog))
    return b.kind == TermKind::kNumber || a.row == b.row ? out : ill(Ill::kRows, node);
  return ill(Ill::kMeaningless, node);
}

Term Terms::divide(const Term& a, float x, const Term& b, float y, float result,
                   std::uint32_t node) {
  if (a.kind == TermKind::kNumber && b.kind == TermKind::kNumber) return Term{};
  if (is_nothing(a, x)) return Term{};
  if (b.kind == TermKind::kNumber) {
    const Term number;
    return multiply(a, x, number, 1 / y, result, node);
  }
  if (b.kind == TermKind::kWeight && b.column == kNone) {
    if (a.kind == TermKind::kNumber) {
      Term out = b;
      out.kind = TermKind::kInverse;
      if (x != 1 && x > 0) out.x += std::log(x);
      return out;
    }
    if (a.kind == TermKind::kWeight) {
      if (a.row != b.row) return ill(Ill::kRows, node);
      if (!(y > 0)) return ill(Ill::kSign, node);
      Term out = a;
      out.x = a.x + std::log(y);
      return out;
    }
  }
  return ill(Ill::kMeaningless, node);
}

Term Terms::exponential(const Term& a, float x, float result, bool base2, std::uint32_t node) {
  if (a.kind == TermKind::kNumber) return Term{};
  const auto natural = [&](float number) { return base2 ? number * 0.69314718F : number; };
  if (a.kind == TermKind::kLog) {
    // exp(lse_part - lse): a number of the row that scales.
    Term out = a;
    out.kind = TermKind::kWeight;
    out.x = static_cast<float>(row_log_sum(a) - natural(x));
    return out;
  }
  if (a.kind != TermKind::kScore) return ill(Ill::kMeaningless, node);
  if (result == 0) return Term{};  // nothing is left, as of masked keys
  if (x_columns.count(a.set) != x_columns.size()) return ill(Ill::kPartial, node);
  const auto scale = static_cast<float>(x_attention.problem().softmax_scale);
  if (!near_factor(natural(a.x), scale))
    return ill(a.buffer == 1 && near_factor(natural(-a.x), scale) ? Ill::kNoScore : Ill::kScale,
               node);
  Term out;
  out.kind = TermKind::kWeight;
  out.row = a.row;
  out.set = x_keys.single(x_attention.key_of(a.column));
  out.x = static_cast<float>(x_attention.score(a.row, a.column) - double{natural(x)});
  if (!std::isfinite(out.x) || !std::isfinite(result)) return ill(Ill::kSign, node);
  return out;
}

double Terms::row_log_sum(const Term& of) {
  // ln of the sum over the set of exp(s - 0).
  double most = -INFINITY, sum = 0;
  const auto sk = static_cast<std::uint32_t>(x_attention.problem().seqlen_k);
  std::uint32_t first = 0;
  while (!x_attention.same_head(of.row, first)) first += sk;
  for (unsigned j = 0; j < sk; ++j)
    if (x_keys.has(of.set, j)) most = std::max(most, x_attention.score(of.row, first + j));
  for (unsigned j = 0; j < sk; ++j)
    if (x_keys.has(of.set, j)) sum += std::exp(x_attention.score(of.row, first + j) - most);
  return most + std::log(sum);
}

Term Terms::choose(const Term& a, float x, const Term& b, float y, float result,
                   std::uint32_t node) {
  if (a.kind == TermKind::kScore && b.kind == TermKind::kScore && a.row != b.row)
    return ill(Ill::kRows, node);
  const bool first = result == x || (a.kind != TermKind::kIll && b.kind == TermKind::kIll);
  (void)y;
  return first ? a : b;
}

Term Terms::product(std::uint32_t n) {
  const ValueNode& node = x_graph.nodes[n];
  Term sum = x_terms[node.operand[0]];
  float value = x_graph.nodes[node.operand[0]].value;
  for (const auto& [left, right] : x_graph.pairs_of(node)) {
    const Term &a = x_terms[left], &b = x_terms[right];
    const float x = x_graph.nodes[left].value, y = x_graph.nodes[right].value;
    if (a.kind == TermKind::kIll || b.kind == TermKind::kIll || sum.kind == TermKind::kIll)
      return worse(worse(a, b), sum);
    if ((a.kind == TermKind::kNumber && std::isnan(x)) ||
        (b.kind == TermKind::kNumber && std::isnan(y)))
      return ill(Ill::kUnwritten, n);
    const Term made = multiply(a, x, b, y, x * y, n);
    if (made.kind == TermKind::kIll) return made;
    sum = add(sum, value, made, made.kind == TermKind::kNumber ? x * y : 1, n);
    if (sum.kind == TermKind::kIll) return sum;
    value = sum.kind == TermKind::kNumber ? value + x * y : 1;
  }
  return sum;
}

}  // namespace attn_diag::lines
