#include "harness/shrink/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace attn_diag::shrink {
namespace {

WrongAs wrong_as(const FirstDivergence& first, std::int64_t nan) {
  if (first.writes) return *first.writes == 0 ? WrongAs::kNeverWritten : WrongAs::kWrittenTwice;
  if (nan > 0 || std::isnan(first.actual)) return WrongAs::kNaN;
  return std::isinf(first.actual) ? WrongAs::kInfinite : WrongAs::kNumbers;
}

bool is_number_at(const std::string& text, std::size_t i) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  return is_digit(i) || (text[i] == '-' && is_digit(i + 1));
}

const char* words(WrongAs as) {
  switch (as) {
    case WrongAs::kNumbers:
      return "is wrong";
    case WrongAs::kNaN:
      return "is NaN";
    case WrongAs::kInfinite:
      return "is infinite";
    case WrongAs::kNeverWritten:
      return "has cells that are never written";
    case WrongAs::kWrittenTwice:
      return "has cells that are written more than once";
  }
  return "";
}

}  // namespace

bool Failure::same_as(const Failure& other) const {
  return kind == other.kind && moves == other.moves &&
         (kind != FailureKind::kWrong || (tensor == other.tensor && as == other.as)) &&
         error_kind == other.error_kind && (line.empty() || line == other.line);
}

Failure failure_of(const TraceResult& r) {
  Failure out;
  out.moves = r.sanity.unsound();
  if (r.first) {
    out.kind = FailureKind::kWrong;
    out.row = {r.first->batch, r.first->head, r.first->query};
    out.tensor = r.first->tensor;
    std::int64_t nan = 0;
    const auto count = [&](const Comparison& comparison) {
      for (const TensorComparison& t : comparison.tensors)
        if (t.tensor == out.tensor) nan += t.nan_actual;
    };
    count(r.production);
    for (const StageReport& stage : r.stages) count(stage.prefix);
    out.as = wrong_as(*r.first, nan);
    out.what = fmt::format("{} {}", name(out.tensor), words(out.as));
  } else if (!r.capture.input_writes.empty()) {
    out.kind = FailureKind::kWritesInputs;
    out.what = "q, k or v is written";
  } else if (r.answer() == Answer::kDiverges) {
    out.kind = FailureKind::kMoves;
    out.what = "the result is not the same in every run";
  }
  return out;
}

Failure failure_of(const Capture& capture, const Comparison& comparison) {
  Failure out;
  const Repetition& again = capture.repetition;
  out.moves = again.moved() && !again.within_rounding;
  const auto wrong = std::find_if(comparison.tensors.begin(), comparison.tensors.end(),
                                  [](const TensorComparison& t) { return t.mismatched > 0; });
  if (wrong != comparison.tensors.end() && wrong->first) {
    const Mismatch& first = *wrong->first;
    out.kind = FailureKind::kWrong;
    out.tensor = wrong->tensor;
    out.row = {first.index[0], first.index[1], first.index[2]};
    out.as = wrong->nan_actual > 0 || std::isnan(first.actual) ? WrongAs::kNaN
             : std::isinf(first.actual)                        ? WrongAs::kInfinite
                                                               : WrongAs::kNumbers;
    out.what = fmt::format("{} {}", name(out.tensor), words(out.as));
  } else if (!capture.input_writes.empty()) {
    out.kind = FailureKind::kWritesInputs;
    out.what = "q, k or v is written";
  } else if (out.moves) {
    out.kind = FailureKind::kMoves;
    out.what = "the result is not the same in every run";
  }
  return out;
}

Failure failure_of(const Error& refused) {
  Failure out;
  out.kind = FailureKind::kRefused;
  out.what = refused.what();
  out.error_kind = kind_of_error(out.what);
  return out;
}

std::string kind_of_error(const std::string& message) {
  std::string kind;
  int depth = 0;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto is_between = [](char c) { return c == '-' || c == '.' || c == ','; };
  for (std::size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    if (c == '(' || c == ')') {
      depth = std::max(0, depth + (c == '(' ? 1 : -1));
    } else if (depth > 0) {
      continue;
    } else if (c == '.' && (i + 1 == message.size() || message[i + 1] == ' ')) {
      break;
    } else if (is_number_at(message, i) && (i == 0 || !is_word(message[i - 1]))) {
      // "-8", "0x7f3a", "32-63", "1.5": as long as it is a number, or several.
      while (i + 1 < message.size() &&
             (is_word(message[i + 1]) ||
              (is_between(message[i + 1]) && i + 2 < message.size() && is_word(message[i + 2]))))
        ++i;
      if (kind.ends_with("#, ")) kind.resize(kind.size() - 2);
      if (!kind.ends_with('#')) kind += '#';
    } else if (!(c == ' ' && !kind.empty() && kind.back() == ' ')) {
      kind += c;
    }
  }
  return kind;
}

Bytes to_bytes(const Failure& failure) {
  WireWriter to;
  to.number(static_cast<std::uint64_t>(failure.kind));
  to.number(static_cast<std::uint64_t>(failure.tensor));
  to.number(static_cast<std::uint64_t>(failure.as));
  to.truth(failure.moves);
  to.text(failure.error_kind).text(failure.line).text(failure.what);
  for (const std::int64_t i : failure.row) to.number(static_cast<std::uint64_t>(i));
  return to.take();
}

Failure failure_from(WireReader& from) {
  Failure failure;
  failure.kind = static_cast<FailureKind>(from.number());
  failure.tensor = static_cast<Tensor>(from.number());
  failure.as = static_cast<WrongAs>(from.number());
  failure.moves = from.truth();
  failure.error_kind = from.text();
  failure.line = from.text();
  failure.what = from.text();
  for (std::int64_t& i : failure.row) i = from.signed_number();
  return failure;
}

}  // namespace attn_diag::shrink
