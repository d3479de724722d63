#include "harness/lines/judged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_set>

#include "attn_diag/reference/reference.h"
#include "harness/capture/element.h"
#include "harness/capture/oracle.h"
#include "harness/lines/explain.h"
#include "harness/lines/finding_suspects.h"
#include "harness/lines/roles.h"
#include "harness/lines/source_text.h"
#include "harness/lines/text_suspects.h"

namespace attn_diag::lines {

double o_element(const WatchedRun& run, std::size_t i) {
  if (run.o_type == DType::kFp32) {
    float value;
    std::memcpy(&value, run.o.data() + 4 * i, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, run.o.data() + 2 * i, sizeof bits);
  return run.o_type == DType::kFp16 ? widen_fp16(bits) : widen_bf16(bits);
}

ExpectedRows::ExpectedRows(const Capture& of, const reference::Extras& extras) : x_of(of) {
  if (!extras.bias.empty() || extras.softcap != 0)
    x_case.emplace(of.problem, of.geometry, of.arithmetic,
                   reference::Inputs{of.q.data(), of.k.data(), of.v.data()}, extras);
}

bool ExpectedRows::is_wrong(std::uint32_t row, std::uint32_t column, double actual) {
  const Row& expected = row_of(row);
  const double value = expected.value[column], bound = expected.bound[column];
  if (std::isinf(bound)) return false;
  return !(std::fabs(actual - value) <= bound);
}

bool ExpectedRows::is_wrong_lse(std::uint32_t row, double actual) {
  const Row& expected = row_of(row);
  if (std::isinf(expected.lse_bound) || actual == expected.lse) return false;
  return !(std::fabs(actual - expected.lse) <= expected.lse_bound);
}

const ExpectedRows::Row& ExpectedRows::row_of(std::uint32_t row) {
  if (const auto found = x_rows.find(row); found != x_rows.end()) return found->second;
  const std::uint32_t head = row / static_cast<std::uint32_t>(x_of.problem.seqlen_q);
  if (x_case)
    predict_head(head);
  else
    compute_head(head);
  return x_rows[row];
}

void ExpectedRows::compute_head(std::uint32_t head) {
  const auto queries = static_cast<std::uint32_t>(x_of.problem.seqlen_q);
  const auto heads = static_cast<std::uint32_t>(x_of.problem.heads);
  reference::Options options;
  options.tensors = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);
  options.batch_begin = static_cast<std::int32_t>(head / heads);
  options.batch_end = options.batch_begin + 1;
  options.head_begin = static_cast<std::int32_t>(head % heads);
  options.head_end = options.head_begin + 1;
  const std::int64_t dim = x_of.problem.head_dim_v;
  const auto o = static_cast<std::size_t>(Tensor::kO);
  const auto lse = static_cast<std::size_t>(Tensor::kLse);
  std::mutex mutex;
  for_each_row_block(x_of, options, [&](const reference::RowBlock& block) {
    const std::lock_guard lock(mutex);
    for (std::int32_t r = 0; r < block.rows; ++r) {
      Row& one = x_rows[head * queries + static_cast<std::uint32_t>(block.query_begin + r)];
      one.lse = block.value[lse][r];
      one.lse_bound = block.bound[lse][r];
      one.value.assign(block.value[o] + r * dim, block.value[o] + (r + 1) * dim);
      one.bound.assign(block.bound[o] + r * dim, block.bound[o] + (r + 1) * dim);
    }
  });
}

void ExpectedRows::predict_head(std::uint32_t head) {
  const Problem& p = x_of.problem;
  const auto queries = static_cast<std::uint32_t>(p.seqlen_q);
  std::vector<reference::RowIndex> rows;
  for (std::uint32_t q = 0; q < queries; ++q)
    rows.push_back({static_cast<std::int32_t>(head) / p.heads,
                    static_cast<std::int32_t>(head) % p.heads, static_cast<std::int32_t>(q)});
  reference::Prediction all;
  reference::predict(*x_case, rows, {}, tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse), all);
  const auto &o = all[Tensor::kO], &lse = all[Tensor::kLse];
  const auto dim = static_cast<std::ptrdiff_t>(p.head_dim_v);
  for (std::uint32_t q = 0; q < queries; ++q) {
    Row& one = x_rows[head * queries + q];
    one.lse = lse.value[q];
    one.lse_bound = lse.bound[q];
    const std::ptrdiff_t begin = q * dim;
    one.value.assign(o.value.begin() + begin, o.value.begin() + begin + dim);
    one.bound.assign(o.bound.begin() + begin, o.bound.begin() + begin + dim);
  }
}

Chosen chosen_elements(const WatchedRun& run, const Attention& attention, ExpectedRows& expected) {
  const Problem& p = attention.problem();
  Chosen chosen;
  std::vector<std::size_t> wrong, right;
  const std::size_t count = run.graph.outputs[0].size();
  const auto dim = static_cast<std::size_t>(p.head_dim_v);
  for (std::size_t first = 0; first < count; first += dim) {
    std::uint32_t row = 0, column = 0;
    attention.locate_output(first, row, column);
    bool is_wrong = false;
    for (std::size_t d = 0; d < dim; ++d)
      is_wrong = is_wrong ||
                 expected.is_wrong(row, static_cast<std::uint32_t>(d), o_element(run, first + d));
    (is_wrong ? wrong : right).push_back(first);
  }
  if (wrong.empty()) {
    std::vector<std::size_t> right_lse;
    for (std::size_t row = 0; row < run.lse.size(); ++row)
      (expected.is_wrong_lse(static_cast<std::uint32_t>(row), run.lse[row]) ? wrong : right_lse)
          .push_back(row);
    chosen.of_lse = !wrong.empty();
    if (chosen.of_lse) right = right_lse;
  }
  const auto take = [&](const std::vector<std::size_t>& rows, std::size_t i) {
    if (i < rows.size() &&
        std::find(chosen.elements.begin(), chosen.elements.end(), rows[i]) == chosen.elements.end())
      chosen.elements.push_back(rows[i]);
  };
  take(wrong, 0);
  take(wrong, wrong.size() / 2);
  take(wrong, wrong.empty() ? 0 : wrong.size() - 1);
  take(right, right.size() / 2);
  return chosen;
}

std::vector<OutputElement> judged_elements(const WatchedRun& run, const Attention& attention,
                                           ExpectedRows& expected, bool of_lse,
                                           const std::vector<std::uint32_t>& blocks) {
  std::vector<OutputElement> elements;
  const std::unordered_set<std::uint32_t> watched(blocks.begin(), blocks.end());
  std::size_t unstored = 0;
  const auto& outputs = run.graph.outputs[of_lse ? 1 : 0];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::uint32_t block = outputs[i].block;
    const bool nobody = block == ~0u;
    if (nobody ? ++unstored > 4096 : watched.count(block) == 0) continue;
    std::uint32_t row = static_cast<std::uint32_t>(i), column = 0;
    if (!of_lse) attention.locate_output(i, row, column);
    const float value = of_lse ? run.lse[i] : o_element(run, i);
    const bool wrong =
        of_lse ? expected.is_wrong_lse(row, value) : expected.is_wrong(row, column, value);
    const double bound = of_lse ? expected.bound_lse(row) : expected.bound(row, column);
    elements.push_back({i, wrong, of_lse, bound, value});
  }
  return elements;
}

void add_source_text(LineDivergence& out) {
  SourceText text;
  const auto fill = [&](LinePlace& place) { place.text = text.trimmed(place.file, place.line); };
  // The first line of a statement of several says little.
  constexpr std::size_t kLong = 200;
  const auto fill_whole = [&](LinePlace& place) {
    fill(place);
    const std::string& statement = text.statement(place.file, place.line);
    if (statement != text.line(place.file, place.line) && statement.size() <= kLong &&
        !text.has_assembly(place.file, place.line))
      place.text = statement;
  };
  for (LineSuspect& suspect : out.suspects) fill_whole(suspect.place);
  for (LineRole& role : out.roles) fill(role.place);
  for (LineReads& read : out.reads) fill(read.place);
}

void finish(const WatchedRun& run, const Terms& terms, LineDivergence& out) {
  out.numbers = static_cast<std::int64_t>(run.graph.nodes.size()) - 1;
  describe(terms, out);
  out.fault_is_firm = out.fault_is_firm && !run.graph.full && run.reason.empty();
  if (run.graph.full) {
    out.answer = LineAnswer::kUnsure;
    out.reason = fmt::format(
        "there were more than {} numbers, what came later was not seen: take fewer keys or a "
        "smaller head dimension",
        out.numbers);
  }
  if (!run.reason.empty() && out.answer == LineAnswer::kLine) {
    out.answer = LineAnswer::kUnsure;
    out.reason = run.reason;
  }
  SourceText text;
  suggest_by_text(text, run.graph, out);
  // What launches a kernel says least of it, but for the size of its memory, and how many blocks there are.
  std::stable_partition(out.suspects.begin(), out.suspects.end(), [&](const LineSuspect& one) {
    return one.why == kSizeAtLaunch || one.why == kBlocksAtLaunch ||
           !text.launches_within(one.place.file, one.place.line);
  });
  // Inline assembly that others call as well is seldom what is wrong.
  const auto is_assembly = [&](const LineSuspect& one) {
    return text.has_assembly(one.place.file, one.place.line);
  };
  if (out.answer != LineAnswer::kLine && out.suspects.size() > 1 && is_assembly(out.suspects[0]) &&
      !is_assembly(out.suspects[1]))
    std::swap(out.suspects[0], out.suspects[1]);
  add_source_text(out);
}

LineDivergence tell_lines(const WatchedRun& run, const Capture& of, const reference::Extras& extras,
                          const host::CheckReport& found) {
  Attention attention(of.problem, of.q.data(), of.k.data(), of.v.data(), extras);
  ExpectedRows expected(of, extras);
  const Chosen chosen = chosen_elements(run, attention, expected);
  std::set<std::uint32_t> blocks;
  for (const auto& output : run.graph.outputs)
    for (const host::ValueOutput& element : output) blocks.insert(element.block);
  blocks.erase(~0u);
  const Terms terms(run.graph, attention);
  const std::vector<OutputElement> elements =
      judged_elements(run, attention, expected, chosen.of_lse, {blocks.begin(), blocks.end()});
  LineDivergence out;
  const bool wrong = std::any_of(elements.begin(), elements.end(),
                                 [](const OutputElement& element) { return element.wrong; });
  if (wrong) FindingSuspects(terms, elements, out).suspect(found);
  for (const host::CheckFinding& finding : found.findings)
    if (!wrong)
      out.unread.push_back(
          fmt::format("line {} {}", finding.access.places.front().line, finding.message));
  const std::string finding = out.what;
  explain(terms, elements, out);
  if (!finding.empty()) {
    out.what = finding;
    out.where.clear();
    out.answer = LineAnswer::kUnsure;
    out.reason = "the access is wrong by itself; the fault may be what makes an index there";
  }
  finish(run, terms, out);
  return out;
}

}  // namespace attn_diag::lines
